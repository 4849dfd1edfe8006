import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Mutant } from "./rules-instrument.ts";

/** What is known of a mutant. */
export interface Known {
  /** Of its file. */
  hash: string;
  /** The schedule or the test that notices it; absent: none. */
  killer: string | undefined;
}

/** Not committed. */
const KNOWN = "node_modules/.cache/mutate-rules.json";

/** Why a mutant that survives changes nothing observable, by its key. A survivor without a reason is a hole. */
const REASONS = "tools/mutate/rules-equivalent.json";
const REPORT = "tools/mutate/rules.md";

export function readKnown(root: string): Map<string, Known> {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(join(root, KNOWN), "utf8"))));
  } catch {
    return new Map();
  }
}

/** Adds to what is known. Another run may do so at the same time. */
export function addKnown(root: string, key: string, one: Known): void {
  mkdirSync(dirname(join(root, KNOWN)), { recursive: true });
  const known = Object.fromEntries(readKnown(root).set(key, one));
  writeFileSync(join(root, `${KNOWN}.${process.pid}`), JSON.stringify(known));
  renameSync(join(root, `${KNOWN}.${process.pid}`), join(root, KNOWN));
}

/** Writes the score of each file, and each survivor with the reason or as a hole. */
export function writeReport(root: string, mutants: readonly Mutant[], known: ReadonlyMap<string, Known>): void {
  const reasons = JSON.parse(readFileSync(join(root, REASONS), "utf8")) as Record<string, string>;
  const checked = mutants.filter(({ key }) => known.has(key));
  const isKilled = ({ key }: Mutant) => known.get(key)?.killer !== undefined;
  const row = (name: string, some: readonly Mutant[]) => {
    const killed = some.filter(isKilled).length;
    const survivors = some.filter((one) => !isKilled(one));
    const equivalent = survivors.filter(({ key }) => reasons[key]).length;
    const schedules = some.filter(({ key }) => known.get(key)?.killer?.startsWith("seed ")).length;
    const score = ((100 * killed) / some.length).toFixed(1);
    const holes = survivors.length - equivalent;
    return `| ${name} | ${some.length} | ${killed} | ${schedules} | ${score} % | ${equivalent} | ${holes} |`;
  };
  const files = [...Map.groupBy(checked, ({ file }) => file)];
  const lines = [
    "# Mutants of the rules of admission",
    "",
    "Written by `npm run mutate:rules`; see [the decision](../../docs/decisions/mutants.md). Calls of logs and",
    "metrics, and texts of errors, are not mutated.",
    "",
    "| file | mutants | killed | of them by a schedule | score | equivalent | holes |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...files.map(([file, some]) => row(file.replace("src/admission/", ""), some)),
    row("all", checked),
    ...survivorLines(files, isKilled, reasons),
  ];
  writeFileSync(join(root, REPORT), `${lines.join("\n")}\n`);
}

function survivorLines(
  files: readonly [string, readonly Mutant[]][],
  isKilled: (mutant: Mutant) => boolean,
  reasons: Readonly<Record<string, string>>,
): string[] {
  const lines = ["", "## Survivors", ""];
  const code = (text: string) => `\`${text.replaceAll("|", "\\|") || " "}\``;
  lines.push("| place | change | verdict |", "| --- | --- | --- |");
  for (const [file, mutants] of files) {
    for (const mutant of mutants.filter((one) => !isKilled(one))) {
      const reason = reasons[mutant.key];
      const verdict = reason ? `equivalent: ${reason}` : "hole";
      const place = `${file.replace("src/admission/", "")}:${mutant.line}`;
      lines.push(`| ${place} | ${code(mutant.original)} → ${code(mutant.replacement)} | ${verdict} |`);
    }
  }
  return lines;
}
