/**
 * Runs schedules of the simulation and tests against one mutant after the other, in one process. Messages of the
 * parent: `{ explore: true }` runs all tests without a mutant, `{ mutant, tests, schedules }` runs the given ones.
 */
import { globSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { activate, explore } from "./rules-switch.ts";
import { type RegisteredTest, registered } from "./rules-vitest.ts";

/** What a test reaches, and how long it takes. */
export interface Explored {
  test: string;
  ms: number;
  reached: string[];
  error?: string;
}

export type Job = { explore: true } | { mutant: string; tests: { test: string; ms: number }[]; schedules: number };

/** What has noticed a mutant; undefined: nothing. `isDirty`: what the mutant has left behind disturbs others. */
export interface Verdict {
  killer: string | undefined;
  isDirty: boolean;
}

const FOLDER = process.env.CHORUS_MUTATE_FOLDER ?? "";
const SHIM = new URL("./rules-vitest.ts", import.meta.url).href;

/** Questions about mutants in a schedule or a test, from which it is endless; they ask less than a tenth. */
const MOST_ASKED = { schedule: 3_000_000, test: 30_000_000 };

/** Longest time of a test that runs before schedules, in milliseconds. */
const QUICK_MS = 100;

registerHooks({
  resolve: (name, context, next) => (name === "vitest" ? { url: SHIM, shortCircuit: true } : next(name, context)),
});

let thrown: unknown;
for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, (error) => (thrown ??= error));

explore(true);
const { runSchedule } = await import(pathToFileURL(join(FOLDER, "test/simulation/schedule.ts")).href);
const tests = new Map<string, RegisteredTest>();
for (const file of globSync("test/admission/**/*.test.ts", { cwd: FOLDER }).toSorted()) {
  if (!file.includes(process.env.CHORUS_MUTATE_TESTS ?? "")) continue;
  // Their service is a process of its own, which no switch reaches.
  if (readFileSync(join(FOLDER, file), "utf8").includes("helpers/fixtures.ts")) continue;
  await import(pathToFileURL(join(FOLDER, file)).href);
  const name = relative("test/admission", file).replace(".test.ts", "");
  for (const one of registered.splice(0)) tests.set(`${name}: ${one.name}`, one);
}
const atStart = explore(false);

process.on("message", async (job: Job) => {
  if ("explore" in job) process.send?.(await exploreAll());
  else process.send?.(await check(job));
});
process.send?.({ isReady: true, atStart: [...atStart] });

/** @returns why a test fails; undefined: it passes */
async function failureOf(test: string, ms: number, mutant: string): Promise<string | undefined> {
  activate(mutant, MOST_ASKED.test);
  thrown = undefined;
  const timer = Promise.withResolvers<string>();
  const timeout = setTimeout(() => timer.resolve("time"), 2_000 + 6 * ms);
  const run = tests.get(test)?.run() ?? Promise.reject(new Error(`no test ${test}`));
  const failure = await Promise.race([
    run.then(() => (thrown === undefined ? undefined : String(thrown))).catch(String),
    timer.promise,
  ]);
  clearTimeout(timeout);
  return failure;
}

async function exploreAll(): Promise<Explored[]> {
  const explored: Explored[] = [];
  for (const test of tests.keys()) {
    explore(true);
    const start = performance.now();
    const error = await failureOf(test, 60_000, "");
    const ms = performance.now() - start;
    explored.push({ test, ms, reached: [...explore(false)], ...(error ? { error } : {}) });
  }
  return explored;
}

/** Quick tests first, then schedules, then the others. */
async function check(job: Extract<Job, { mutant: string }>): Promise<Verdict> {
  const [quick, slow] = [true, false].map((isQuick) => job.tests.filter(({ ms }) => ms < QUICK_MS === isQuick));
  const early = await runTests(job.mutant, quick ?? []);
  if (early) return early;
  const seed = simulate(job.mutant, job.schedules);
  if (seed !== undefined) return { killer: `seed ${seed}`, isDirty: false };
  const late = await runTests(job.mutant, slow ?? []);
  return late ?? { killer: undefined, isDirty: false };
}

async function runTests(mutant: string, tests: { test: string; ms: number }[]): Promise<Verdict | undefined> {
  for (const { test, ms } of tests) {
    const failure = await failureOf(test, ms, mutant);
    if (failure === undefined) continue;
    // Without the mutant it passes again, or what the mutant has left behind is in the way.
    const isDirty = failure === "time" || (await failureOf(test, ms, "")) !== undefined;
    return { killer: failure === "time" ? `${test} (endless)` : test, isDirty };
  }
  return undefined;
}

/** @returns the first seed whose schedule fails */
function simulate(mutant: string, schedules: number): number | undefined {
  for (let seed = 1; seed <= schedules; seed++) {
    activate(mutant, MOST_ASKED.schedule);
    try {
      runSchedule(seed);
    } catch {
      return seed;
    }
  }
  return undefined;
}
