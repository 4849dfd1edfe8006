/** Measures the speed of Chorus beside other gateways. See `USAGE` in options.ts. */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { measureAdmission } from "./admission.ts";
import { measureConsole } from "./console.ts";
import { measureDoors } from "./doors.ts";
import { type Contestant, type Environment, startEnvironment } from "./environment.ts";
import type { Results } from "./figures.ts";
import { measureMemory, measurePanelMemory } from "./memory.ts";
import { type Options, PARTS, type Part, parseOptions, USAGE } from "./options.ts";
import { measurePanel } from "./panel.ts";
import { report } from "./report.ts";
import { openAiTarget } from "./requests.ts";
import { type Entry, type Rounds, takeTurns } from "./rounds.ts";
import { measureRpc } from "./rpc.ts";
import { measureRuns } from "./runs.ts";
import { pinSelf } from "./server.ts";
import { measureWorkers } from "./workers.ts";

const RESULTS = fileURLToPath(new URL("results.md", import.meta.url));
/** Parts in which all servers take turns. */
const TURNS = ["unary", "burst", "paced", "latency"] as const;

/** Runs the parts, prints the report and stops everything. Writes the report to a file if all parts ran. */
async function bench(options: Options, signal: AbortSignal): Promise<void> {
  pinSelf();
  const results: Results = { samples: [], memory: [], panelMemory: undefined, admission: [], console: undefined };
  if (options.parts.some((part) => part !== "admission")) await measureServers(results, options, signal);
  if (options.parts.includes("admission")) {
    console.log("Admission, CPU of service + Postgres:");
    results.admission = await measureAdmission(options.seconds, signal);
  }
  const text = report(results, options);
  console.log(`\n${text}`);
  if (options.parts.length < PARTS.length) return;
  await writeFile(RESULTS, text);
  console.log("Written to bench/results.md.");
}

/** Runs all parts that need the upstream. */
async function measureServers(results: Results, options: Options, signal: AbortSignal): Promise<void> {
  const runs = (part: Part) => options.parts.includes(part);
  console.log("Starting the upstream and Postgres.");
  await using environment = await startEnvironment(signal);
  if (!environment.startNginx) console.log("nginx is not installed; its figures are left out.");
  const how: Rounds = { ...options, upstream: environment.upstream, signal };
  if (runs("console")) {
    console.log("Console:");
    await using chorus = await environment.startChorus();
    results.console = await measureConsole(chorus.server.port);
  }
  if (TURNS.some(runs)) results.samples.push(...(await measureTurns(environment, runs, how)));
  if (runs("rpc")) {
    console.log("RPC, processor time per answer or token:");
    results.samples.push(...(await measureRpc(environment, how)));
  }
  if (runs("doors")) {
    console.log("Doors, processor time per answer or token:");
    results.samples.push(...(await measureDoors(environment, how)));
  }
  if (runs("runs")) {
    console.log("With and without runs, processor time per answer:");
    results.samples.push(...(await measureRuns(environment, how)));
  }
  if (runs("workers")) {
    console.log("Workers, processor time per answer or token:");
    results.samples.push(...(await measureWorkers(environment, how)));
  }
  if (runs("panel")) {
    console.log("Panels of three models, processor time per answer:");
    results.samples.push(...(await measurePanel(environment, how)));
    results.panelMemory = await measurePanelMemory(environment.startPanel, signal);
  }
  if (!runs("memory")) return;
  console.log("Memory for an open stream:");
  const { startNginx, startRelay, startPortkey, startChorus } = environment;
  for (const start of [startNginx, startRelay, startPortkey, startChorus])
    if (start) results.memory.push(...(await measureMemory(start, signal)));
}

async function measureTurns(environment: Environment, runs: (part: Part) => boolean, how: Rounds) {
  await using stack = new AsyncDisposableStack();
  const { upstream, startNginx, startRelay, startChorus, startUngoverned, startPortkey } = environment;
  const contestants: Contestant[] = [];
  for (const start of [startNginx, startRelay, startChorus, startUngoverned, startPortkey])
    if (start) contestants.push(stack.use(await start()));
  const samples = [];
  for (const kind of TURNS.filter(runs)) {
    console.log(`${kind}, processor time per ${{ burst: "stream", paced: "token" }[kind as string] ?? "answer"}:`);
    const shape = kind === "latency" ? "unary" : kind;
    const entries = contestants.map(({ name, server, target }): Entry => ({ name, server, target: target(shape) }));
    // Without a server under test: the maximum of the load generator.
    if (kind !== "latency")
      entries.push({ name: "upstream alone", server: upstream, target: openAiTarget(upstream.port, shape) });
    samples.push(...(await takeTurns(kind, entries, how)));
  }
  return samples;
}

const stopping = new AbortController();
// A terminal's Ctrl-C arrives twice: from the terminal and from npm.
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => stopping.abort(new Error("Stopped.")));
try {
  if (process.argv.includes("--help")) console.log(USAGE);
  else await bench(parseOptions(process.argv.slice(2)), stopping.signal);
} catch (error) {
  console.error(stopping.signal.aborted ? "Stopped." : error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
