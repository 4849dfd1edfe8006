import { parseArgs } from "node:util";

/** Parts of the benchmark, in the order in which they run. */
export const PARTS = [
  "console",
  "unary",
  "burst",
  "paced",
  "latency",
  "rpc",
  "doors",
  "runs",
  "workers",
  "panel",
  "memory",
  "admission",
] as const;
export type Part = (typeof PARTS)[number];

export interface Options {
  parts: readonly Part[];
  /** Length of one measurement, in seconds. */
  seconds: number;
  rounds: number;
}

export const USAGE = `npm run bench -- [--only PART[,PART]] [--seconds N] [--rounds N]

  --only PART   Run only these parts: ${PARTS.join(", ")}.
                Without it, all parts run and bench/results.md is written.
  --seconds N   Length of one measurement. Default 3.
  --rounds N    Number of rounds. Default 5. Each figure is the median of the rounds.`;

/** Reads the command line. @throws Error if an option is wrong */
export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: "string" },
      seconds: { type: "string", default: "3" },
      rounds: { type: "string", default: "5" },
    },
  });
  const names = values.only?.split(",") ?? PARTS;
  const unknown = names.find((name) => !(PARTS as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`There is no part "${unknown}". The parts are: ${PARTS.join(", ")}.`);
  const seconds = Number(values.seconds);
  const rounds = Number(values.rounds);
  if (!(seconds > 0)) throw new Error("--seconds must be a number above 0.");
  if (!(Number.isInteger(rounds) && rounds > 0)) throw new Error("--rounds must be a whole number above 0.");
  return { parts: PARTS.filter((part) => names.includes(part)), seconds, rounds };
}
