/** Attacks a service beside a well-behaved workspace. See `USAGE` in options.ts. */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { pinSelf } from "../bench/server.ts";
import { type Environment, startEnvironment } from "./environment.ts";
import { type Options, parseOptions, USAGE } from "./options.ts";
import { problemsOf, type Result, report } from "./report.ts";
import { runAttack } from "./run.ts";
import type { Scenario } from "./scenario.ts";

const RESULTS = fileURLToPath(new URL("results.md", import.meta.url));

/** Runs the scenarios and prints the report. @returns whether all passed */
async function run({ scenarios, full, write }: Options, signal: AbortSignal): Promise<boolean> {
  pinSelf();
  await using environment = await startEnvironment();
  const results: Result[] = [];
  for (const scenario of scenarios) {
    if (signal.aborted) break;
    // One scenario that cannot run must not cost the report of the others.
    const result = await runOne(environment, scenario, full).catch((error: Error): Result => {
      return { name: scenario.name, outcome: "did not run", wrong: [error.message] };
    });
    results.push(result);
    console.log(`${scenario.name}: ${problemsOf(result).join("; ").slice(0, 500) || "passed"}`);
  }
  const text = report(results);
  console.log(`\n${text}`);
  if (write) await writeFile(RESULTS, text);
  return results.every((one) => problemsOf(one).length === 0);
}

async function runOne(environment: Environment, scenario: Scenario, full: boolean): Promise<Result> {
  if (!("run" in scenario)) return runAttack(environment, scenario);
  await using stack = new AsyncDisposableStack();
  const { outcome, problems } = await scenario.run({ database: environment.database, full, stack });
  return { name: scenario.name, outcome, wrong: problems };
}

const stopping = new AbortController();
// A terminal's Ctrl-C arrives twice: from the terminal and from npm.
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => stopping.abort());
try {
  if (process.argv.includes("--help")) console.log(USAGE);
  else if (!(await run(parseOptions(process.argv.slice(2)), stopping.signal))) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
