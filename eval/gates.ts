import type { ServedRow } from "./served.ts";

/** A figure that a file of the published reference must reach. */
interface Gate {
  file: string;
  /** What must hold, for the report. */
  holds: string;
  isMet(served: ReadonlyMap<string, ServedRow>): boolean;
}

const auto = (served: ReadonlyMap<string, ServedRow>) => served.get("auto");

/** Holds for the models that `npm run eval` chooses for these files. */
const GATES: readonly Gate[] = [
  {
    file: "mmlu-pro",
    holds: "auto: accuracy of at least .725 with at most 40 % strong calls",
    isMet: (served) => (auto(served)?.accuracy ?? 0) >= 0.725 && (auto(served)?.strong_share ?? 1) <= 0.4,
  },
  {
    file: "gsm8k",
    holds: "auto: accuracy of at least .965 with at most 10 % strong calls",
    isMet: (served) => (auto(served)?.accuracy ?? 0) >= 0.965 && (auto(served)?.strong_share ?? 1) <= 0.1,
  },
  {
    file: "crux",
    holds: "auto: at most 2 points below the strong model alone",
    isMet: (served) => (auto(served)?.accuracy ?? 0) >= (served.get("gpt-4o-2024-08-06")?.accuracy ?? 1) - 0.02,
  },
];

/** The gates that a file misses, as sentences. Files without a gate miss none. */
export function missedGates(file: string, served: readonly ServedRow[]): string[] {
  const byName = new Map(served.map((row) => [row.served, row]));
  return GATES.filter((gate) => gate.file === file && !gate.isMet(byName)).map(
    ({ holds }) => `${file} misses a gate. Expected ${holds}.`,
  );
}
