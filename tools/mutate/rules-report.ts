import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./rules-instrument.ts";

/** What is known of the mutants of a file, which the instrumenter numbers from 0 in the order of the source. */
export interface Known {
  /** Of the file. What is known of another source counts no more. */
  hash: string;
  /** Number of mutants that were run: the first ones. */
  run: number;
  /** How many of them a schedule notices. */
  bySchedule: number;
  /** Numbers of those that nothing notices. */
  survivors: ReadonlySet<number>;
}

/** Committed, so that a run on another machine continues. A line has the fields of `Known` after the name of a file. */
const KNOWN = "tools/mutate/rules-known.txt";

/**
 * Why a mutant that survives changes nothing observable: a line with its key, and an indented one with the reason. A
 * survivor without a reason is a hole.
 */
const REASONS = "tools/mutate/rules-equivalent.txt";
const REPORT = "tools/mutate/rules.md";

/** @returns what is known, by the path of a file */
export function readKnown(root: string): Map<string, Known> {
  const lines = readFileSync(join(root, KNOWN), "utf8").trim().split("\n");
  return new Map(
    lines.map((line) => {
      const [file = "", hash = "", run, bySchedule, ...survivors] = line.split(" ");
      return [
        file,
        { hash, run: Number(run), bySchedule: Number(bySchedule), survivors: new Set(survivors.map(Number)) },
      ];
    }),
  );
}

/** Replaces what is known of a file. Another run may do so with another file at the same time. */
export function saveKnown(root: string, file: string, known: Known): void {
  const lines = [...readKnown(root).set(file, known)].map(([name, { hash, run, bySchedule, survivors }]) =>
    [name, hash, run, bySchedule, ...[...survivors].sort((a, b) => a - b)].join(" "),
  );
  writeFileSync(join(root, `${KNOWN}.${process.pid}`), `${lines.sort().join("\n")}\n`);
  renameSync(join(root, `${KNOWN}.${process.pid}`), join(root, KNOWN));
}

/**
 * Writes the score of each file, and each survivor with the reason or as a hole.
 * @param mutants of all files, by file
 * @param known only what counts for the sources as they are
 */
export function writeReport(
  root: string,
  mutants: ReadonlyMap<string, readonly Mutant[]>,
  known: ReadonlyMap<string, Known>,
): void {
  const lines = readFileSync(join(root, REASONS), "utf8").matchAll(/^(\S.*)\n {2}(.+)$/gm);
  const reasons = Object.fromEntries([...lines].map(([, key = "", reason = ""]) => [key, reason]));
  const rows = [...mutants].map(([file, some]) => {
    const { run = 0, bySchedule = 0, survivors = new Set() } = known.get(file) ?? {};
    const equivalent = some.filter(({ key }, i) => survivors.has(i) && reasons[key]).length;
    const killed = run - survivors.size;
    const name = file.replace("src/admission/", "");
    return {
      name,
      counts: [some.length, some.length - run, killed, bySchedule, equivalent, survivors.size - equivalent],
    };
  });
  const sums = rows.map(({ counts }) => counts).reduce((sum, counts) => sum.map((one, i) => one + (counts[i] ?? 0)));
  const text = [
    "# Mutants of the rules of admission",
    "",
    "Written by `npm run mutate:rules`; see [the decision](../../docs/decisions/mutants.md). Calls of logs and",
    "metrics, and texts of errors, are not mutated. The score is the share of all mutants that is killed.",
    "",
    "| file | mutants | not run | killed | of them by a schedule | equivalent | holes | score |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ...[...rows, { name: "all", counts: sums }].map(rowOf),
    ...survivorLines(mutants, known, reasons),
  ];
  writeFileSync(join(root, REPORT), `${text.join("\n")}\n`);
}

function rowOf({ name, counts }: { name: string; counts: number[] }): string {
  const [all = 0, , killed = 0] = counts;
  return `| ${name} | ${counts.join(" | ")} | ${((100 * killed) / all).toFixed(1)} % |`;
}

function survivorLines(
  mutants: ReadonlyMap<string, readonly Mutant[]>,
  known: ReadonlyMap<string, Known>,
  reasons: Readonly<Record<string, string>>,
): string[] {
  const lines = ["", "## Survivors", ""];
  const code = (text: string) => `\`${text.replaceAll("|", "\\|") || " "}\``;
  lines.push("| place | change | verdict |", "| --- | --- | --- |");
  for (const [file, some] of mutants) {
    for (const { key, line, original, replacement } of some.filter((_, i) => known.get(file)?.survivors.has(i))) {
      const reason = reasons[key];
      const verdict = reason ? `equivalent: ${reason}` : "hole";
      const place = `${file.replace("src/admission/", "")}:${line}`;
      lines.push(`| ${place} | ${code(original)} → ${code(replacement)} | ${verdict} |`);
    }
  }
  return lines;
}
