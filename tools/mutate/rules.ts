/**
 * Plants mutants in the rules of admission, one at a time, and finds out which of them no schedule of the simulation
 * and no test of admission notices:
 *     npm run mutate:rules -- [--only PATTERN] [--schedules N] [--fresh] [--tests PART_OF_PATH]
 * A run continues an earlier one: what was noticed before is checked again only if its file has changed. Writes what
 * is known to tools/mutate/rules-known.txt and the report to tools/mutate/rules.md.
 */
import { createHash } from "node:crypto";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import setUp from "../../test/helpers/setup.ts";
import { instrument, type Mutant } from "./rules-instrument.ts";
import { MutantProcess } from "./rules-process.ts";
import { type Known, readKnown, saveKnown, writeReport } from "./rules-report.ts";
import type { Explored } from "./rules-worker.ts";

const ROOT = resolve(import.meta.dirname, "../..");

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    schedules: { type: "string", default: "4000" },
    fresh: { type: "boolean", default: false },
    tests: { type: "string", default: "" },
  },
});

/** Longest test that is run against mutants, in milliseconds. */
const LONGEST_TEST_MS = 5_000;

/** The rules first. What stands before others is run before them. */
const ORDER = ["escrow/", "grants", "batch", "poster", "journal", "post-journal", "lease"];

function rank(file: string): number {
  const place = ORDER.findIndex((name) => file.includes(`admission/${name}`));
  return place < 0 ? ORDER.length : place;
}

/** Schedules reach the rules without input and output, and what they import. */
function isSimulated(file: string): boolean {
  return file.includes("/escrow/") && !/execute|refusal/.test(file);
}

/**
 * The tests that reach a mutant, those first that have noticed the last ones of its file, then the quickest first; for
 * one that is reached at start, those that reach its file.
 */
function testsOf({ id }: Mutant, inFile: ReadonlySet<string>, isAtStart: boolean, explored: readonly Explored[]) {
  const isReached = ({ reached }: Explored) =>
    isAtStart ? reached.some((one) => inFile.has(one)) : reached.includes(id);
  const isKiller = (one: Explored) => !one.error && one.ms < LONGEST_TEST_MS && isReached(one);
  return explored.filter(isKiller).map(({ test, ms }) => ({ test, ms }));
}

/** Puts the test first that has noticed a mutant, because it often notices the next one, too. */
function promote(explored: Explored[], killer: string | undefined): void {
  const place = explored.findIndex(({ test }) => test === killer);
  if (place > 0) explored.unshift(...explored.splice(place, 1));
}

/** @returns the schedule or the test that notices a mutant; undefined: none */
async function check(mutant: Mutant, inFile: ReadonlySet<string>, atStart: readonly string[], explored: Explored[]) {
  const { id, file, line, original, replacement } = mutant;
  const isAtStart = atStart.includes(id);
  const tests = testsOf(mutant, inFile, isAtStart, explored);
  const schedules = isSimulated(file) ? Number(values.schedules) : 0;
  const start = performance.now();
  const { killer } = await runner.check({ mutant: id, tests, schedules }, isAtStart);
  promote(explored, killer?.replace(/ \(endless\)$/, ""));
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  const where = `${file}:${line} ${original} => ${replacement}`;
  process.stdout.write(
    `${killer === undefined ? "SURVIVES" : "killed"} ${seconds} s ${where} (${killer ?? tests.length})\n`,
  );
  return killer;
}

const files = globSync("src/admission/**/*.ts", { cwd: ROOT }).toSorted((a, b) => rank(a) - rank(b));
const hashes = new Map(
  files.map((file) => [
    file,
    createHash("sha256")
      .update(readFileSync(join(ROOT, file)))
      .digest("hex")
      .slice(0, 16),
  ]),
);
const folder = mkdtempSync(join(tmpdir(), "chorus-mutate-"));
const tearDown = await setUp();
const runner = new MutantProcess(folder, values.tests);
try {
  const mutants = await instrument(ROOT, folder, files);
  const { atStart, explored } = await runner.explore();
  for (const { test, error } of explored)
    if (error) process.stderr.write(`fails without a mutant: ${test}: ${error}\n`);
  const healthy = await runner.check({ mutant: "", tests: [], schedules: Number(values.schedules) }, false);
  if (healthy.killer !== undefined) throw new Error(`a schedule fails without a mutant: ${healthy.killer}`);
  explored.sort((a, b) => a.ms - b.ms);
  const byFile = Map.groupBy(mutants, ({ file }) => file);
  const selected = new RegExp(values.only);
  const isKnown = (file: string, { hash }: Known) =>
    hash === hashes.get(file) && !(values.fresh && selected.test(file));
  const known = new Map([...readKnown(ROOT)].filter(([file, one]) => isKnown(file, one)));
  for (const [file, inFile] of byFile) {
    if (!selected.test(file)) continue;
    const ids = new Set(inFile.map(({ id }) => id));
    for (const [i, mutant] of inFile.entries()) {
      const before = known.get(file) ?? { hash: hashes.get(file) ?? "", run: 0, bySchedule: 0, survivors: new Set() };
      if (i < before.run && !before.survivors.has(i)) continue;
      const killer = await check(mutant, ids, atStart, explored);
      const { hash, run, bySchedule, survivors } = before;
      const found: Known = {
        hash,
        run: Math.max(run, i + 1),
        bySchedule: bySchedule + (killer?.startsWith("seed ") ? 1 : 0),
        survivors: new Set(killer === undefined ? [...survivors, i] : [...survivors].filter((one) => one !== i)),
      };
      known.set(file, found);
      saveKnown(ROOT, file, found);
    }
  }
  writeReport(ROOT, byFile, known);
} finally {
  runner.stop();
  await tearDown();
  rmSync(folder, { recursive: true, force: true });
}
