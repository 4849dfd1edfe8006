import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "../src/store/embedded/embedded.ts";
import { openPool } from "../src/store/pool.ts";
import { measureConsole } from "./console.ts";
import { measureLeases } from "./leases.ts";
import { type Load, load, type Target } from "./load.ts";
import { type Phase, report } from "./report.ts";
import { freePorts, pinSelf, type Server, startServer } from "./server.ts";
import { chorusTarget, type Mode, openAiTarget, relayStreamTarget } from "./targets.ts";

/**
 * Connections of the load generator. With fewer, Portkey does not use its whole core; with more, requests only wait
 * longer.
 */
const CONNECTIONS = 64;
const ROUNDS = 3;
/** In seconds. A server that has already been measured needs only a short warm-up. */
const WARM_UP = { first: 3, later: 1 };
const MEASURED = 8;
const CEILING = { warmUp: 2, measured: 3 };
/** A rate far below the maximum of all servers, to measure the latency that each adds. */
const PACED = { perSecond: 200, warmUp: 1, measured: 8 };
const API_KEY = "ck_bench_bench_bench";
/**
 * Portkey's start script. bench/package.json pins @hono/node-server to 1.14.1: with newer versions, which Portkey
 * allows, every stream fails with status 500 (https://github.com/Portkey-AI/gateway/issues/1389).
 */
const PORTKEY = fileURLToPath(import.meta.resolve("@portkey-ai/gateway/build/start-server.js"));

interface Contestant {
  name: Phase["name"];
  server: Server;
  targets: Record<Mode, Target>;
}

/** Starts the upstream and the servers, measures them in turn, writes the report and stops everything. */
async function bench(signal: AbortSignal): Promise<void> {
  pinSelf();
  await using running = new AsyncDisposableStack();
  const [upstreamPort = 0, relayPort = 0, portkeyPort = 0, chorusPort = 0, rpcPort = 0, ungovernedPort = 0] =
    await freePorts(6);
  const upstreamUrl = `http://127.0.0.1:${upstreamPort}`;
  const start = async (file: string, args: string[], port: number, place: "server" | "rest", env = {}) =>
    running.use(await startServer(file, args, { port, place, env, signal }));

  console.log("Starting the upstream, the relay, Portkey and Chorus:");
  const upstream = await start(here("upstream.ts"), [String(upstreamPort)], upstreamPort, "rest");
  const relay = await start(here("relay.ts"), [String(relayPort), upstreamUrl], relayPort, "server");
  const portkey = await start(PORTKEY, [`--port=${portkeyPort}`, "--headless"], portkeyPort, "server", {
    NODE_ENV: "production",
  });
  const folder = await mkdtemp(join(tmpdir(), "chorus-bench-"));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  // Started here so that Postgres does not run on the core of the server under test. Chorus uses the running server.
  const postgres = await startEmbedded(folder, () => undefined);
  running.defer(() => postgres.stop());
  const catalogue = join(folder, "models.json");
  await writeFile(catalogue, catalogueText(`${upstreamUrl}/v1`));
  const chorus = await start(here("../src/main.ts"), [], chorusPort, "server", {
    PORT: String(chorusPort),
    RPC_PORT: String(rpcPort),
    DATA_DIR: folder,
    CHORUS_MODELS: catalogue,
    // Every request is admitted and billed, and none is refused.
    CHORUS_TIERS: '[{"name":"free","purchased":0,"limits":{}}]',
    BOOTSTRAP_API_KEY: API_KEY,
    LOG_LEVEL: "warn",
  });
  const ungoverned = await start(here("ungoverned.ts"), [String(ungovernedPort), catalogue], ungovernedPort, "server");
  const pool = openPool(postgres.url, { max: 1 });
  // Chorus creates the workspace after both ports are open.
  const grant = "select book_credit(id, 'grant', 'bench', 1000000000000) from workspaces";
  while ((await pool.query(grant)).length === 0) await setTimeout(50);
  await pool.end();

  const portkeyHeaders = {
    Authorization: "Bearer none",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `${upstreamUrl}/v1`,
  };
  const contestants: Contestant[] = [
    {
      name: "bare relay",
      server: relay,
      targets: { unary: openAiTarget(relayPort, "unary"), sse: relayStreamTarget(relayPort) },
    },
    {
      name: "Chorus",
      server: chorus,
      targets: {
        unary: chorusTarget(chorusPort, "unary", API_KEY),
        sse: chorusTarget(chorusPort, "sse", API_KEY),
      },
    },
    {
      name: "Chorus ungoverned",
      server: ungoverned,
      targets: { unary: chorusTarget(ungovernedPort, "unary"), sse: chorusTarget(ungovernedPort, "sse") },
    },
    {
      name: "Portkey",
      server: portkey,
      targets: {
        unary: openAiTarget(portkeyPort, "unary", portkeyHeaders),
        sse: openAiTarget(portkeyPort, "sse", portkeyHeaders),
      },
    },
  ];

  const phases: Phase[] = [];
  const run = async (
    name: Phase["name"],
    mode: Phase["mode"],
    server: Server,
    target: Target,
    plan: { warmUp: number; measured: number; perSecond?: number },
  ) => {
    const phase = await measure(target, server, { connections: CONNECTIONS, ...plan, signal });
    phases.push({ name, mode, ...phase });
    console.log(`  ${name}, ${mode}: ${Math.round(phase.rate)}/s`);
  };
  console.log("Upstream alone, the maximum of the load generator:");
  for (const mode of ["unary", "sse"] as const)
    await run("upstream", mode, upstream, openAiTarget(upstreamPort, mode), CEILING);
  for (let round = 0; round < ROUNDS; round++) {
    console.log(`Round ${round + 1} of ${ROUNDS}:`);
    const order = round % 2 === 0 ? contestants : contestants.toReversed();
    for (const mode of ["unary", "sse"] as const) {
      for (const { name, server, targets } of order) {
        const warmUp = round === 0 ? WARM_UP.first : WARM_UP.later;
        await run(name, mode, server, targets[mode], { warmUp, measured: MEASURED });
      }
    }
  }
  console.log(`At ${PACED.perSecond} requests/s:`);
  for (let round = 0; round < ROUNDS; round++)
    for (const { name, server, targets } of contestants) await run(name, "paced", server, targets.unary, PACED);
  console.log("Console:");
  const page = await measureConsole(chorusPort);
  console.log("Leases:");
  const leases = await measureLeases(signal);
  const text = report(phases, leases, page, {
    rounds: ROUNDS,
    connections: CONNECTIONS,
    seconds: MEASURED,
    perSecond: PACED.perSecond,
  });
  await writeFile(here("results.md"), text);
  console.log(`\n${text}\nWritten to bench/results.md.`);
}

/** @throws Error if any response was wrong */
async function measure(
  target: Target,
  server: Server,
  plan: Parameters<typeof load>[1],
): Promise<Load & { cpuMicros: number | undefined }> {
  const marks: Array<number | undefined> = [];
  const result = await load(target, plan, () => marks.push(server.cpuMicros()));
  if (result.failed > 0) {
    throw new Error(
      `${target.path} on port ${target.port}: ${result.failed} of ${result.answers + result.failed} requests failed. ` +
        `First failure: ${result.firstFailure}`,
    );
  }
  const [from, to] = marks;
  return { ...result, cpuMicros: from === undefined || to === undefined ? undefined : (to - from) / result.answers };
}

/** A catalogue in which both tiers use the upstream. */
function catalogueText(baseUrl: string): string {
  const models = ["fast", "strong"].map((tier) => ({
    name: `bench-${tier}`,
    vendor: "openai-compatible",
    model: "bench",
    base_url: baseUrl,
    tier,
  }));
  return JSON.stringify({ models });
}

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

const stopping = new AbortController();
// A terminal's Ctrl-C arrives twice: from the terminal and from npm.
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => stopping.abort(new Error("Stopped.")));
try {
  await bench(stopping.signal);
} catch (error) {
  console.error(stopping.signal.aborted ? "Stopped." : error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
