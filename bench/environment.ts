import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "../src/store/embedded/embedded.ts";
import { openPool } from "../src/store/pool.ts";
import { PANEL_MODELS } from "./answer.ts";
import { type Door, doorTarget } from "./door-requests.ts";
import type { Target } from "./load.ts";
import { nginxVersion, prepareNginx } from "./nginx.ts";
import { type Ask, chorusTarget, openAiTarget, panelTarget, relayStreamTarget, type Shape } from "./requests.ts";
import { type Protocol, rpcTarget } from "./rpc-requests.ts";
import { freePorts, LARGE_PAGES, node, type Server, startServer, TRACE_GC } from "./server.ts";

/** A server under test. */
export interface Contestant extends AsyncDisposable {
  name: string;
  server: Server;
  target(shape: Shape): Target;
}

/** A server under test that speaks RPC. */
export interface RpcContestant extends Contestant {
  rpcTarget(protocol: Protocol, shape: Shape): Target;
}

/** Chorus whose replies name the limits of a workspace. */
export interface DoorsContestant extends AsyncDisposable {
  server: Server;
  target(door: Door, shape: Shape, hasTools: boolean): Target;
}

/** Chorus with three models. */
export interface PanelContestant extends AsyncDisposable {
  server: Server;
  target(ask: Ask): Target;
  /** Calls of models that run, as its metrics say. */
  runningCalls(): Promise<number>;
}

/** The upstream and Postgres, and the means to start the servers under test. */
export interface Environment extends AsyncDisposable {
  upstream: Server;
  startRelay(): Promise<Contestant>;
  startPortkey(): Promise<Contestant>;
  startChorus(): Promise<RpcContestant>;
  /** Chorus with that many workers, all on the core of the server under test. */
  startWorkers(count: number): Promise<Contestant>;
  startUngoverned(): Promise<Contestant>;
  /** Chorus that keeps runs, or does not. */
  startWithRuns(runs: "on" | "off"): Promise<Contestant>;
  startDoors(): Promise<DoorsContestant>;
  startPanel(): Promise<PanelContestant>;
  /** An RPC library alone, or for unary calls HTTP and the codecs alone. They have no REST. */
  startEcho(script: "echo" | "bare"): Promise<Pick<RpcContestant, "server" | "rpcTarget">>;
  /** Undefined if nginx is not installed. */
  startNginx: (() => Promise<Contestant>) | undefined;
}

const API_KEY = "ck_bench_bench_bench";
/**
 * Portkey's start script. bench/package.json pins @hono/node-server to 1.14.1: with newer versions, which Portkey
 * allows, every stream fails with status 500 (https://github.com/Portkey-AI/gateway/issues/1389).
 */
const PORTKEY = fileURLToPath(import.meta.resolve("@portkey-ai/gateway/build/start-server.js"));
const HOUR_MS = 3_600_000;
/** Limits that no benchmark reaches. Each reply names them, in the headers of its door. */
const UNREACHED = {
  requests_per_minute: 1_000_000_000,
  input_tokens_per_minute: 1_000_000_000,
  output_tokens_per_minute: 1_000_000_000,
};

/** Starts the upstream and Postgres. Both run beside the load generator, not on the core of the server under test. */
export async function startEnvironment(signal: AbortSignal): Promise<Environment> {
  await using stack = new AsyncDisposableStack();
  const [upstreamPort = 0] = await freePorts(1);
  const upstream = await startServer(node(here("upstream.ts"), upstreamPort), {
    port: upstreamPort,
    place: "rest",
    signal,
  });
  stack.use(upstream);
  const folder = await mkdtemp(join(tmpdir(), "chorus-bench-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const postgres = await startEmbedded(folder, () => undefined);
  stack.defer(() => postgres.stop());
  const catalogue = join(folder, "models.json");
  const panelCatalogue = join(folder, "panel.json");
  const baseUrl = `http://127.0.0.1:${upstreamPort}/v1`;
  await writeFile(catalogue, catalogueText(baseUrl));
  await writeFile(panelCatalogue, panelCatalogueText(baseUrl));
  const places: Places = { upstreamPort, folder, catalogue, panelCatalogue, databaseUrl: postgres.url, signal };
  const running = stack.move();
  return {
    upstream,
    startRelay: () => startRelay(places),
    startPortkey: () => startPortkey(places),
    startChorus: () => startChorus(places),
    startWorkers: (count) => startChorus(places, count),
    startDoors: () => startDoors(places),
    startPanel: () => startPanel(places),
    startUngoverned: () => startUngoverned(places),
    startWithRuns: (runs) => startWithRuns(places, runs),
    startEcho: (script) => startEcho(places, script),
    startNginx: nginxVersion() ? () => startNginx(places) : undefined,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** What the servers under test need. */
interface Places {
  upstreamPort: number;
  folder: string;
  /** Files with a model of each tier, and with the three models of a panel. */
  catalogue: string;
  panelCatalogue: string;
  databaseUrl: string;
  signal: AbortSignal;
}

async function startRelay({ upstreamPort, signal }: Places): Promise<Contestant> {
  const [port = 0] = await freePorts(1);
  const command = node(here("relay.ts"), port, `http://127.0.0.1:${upstreamPort}`);
  const server = await startServer(command, { port, place: "server", signal });
  return contestant("bare relay", server, (shape) =>
    shape === "unary" ? openAiTarget(port, shape) : relayStreamTarget(port, shape),
  );
}

async function startPortkey({ upstreamPort, signal }: Places): Promise<Contestant> {
  const [port = 0] = await freePorts(1);
  const command = node(PORTKEY, `--port=${port}`, "--headless");
  const server = await startServer(command, { port, place: "server", env: { NODE_ENV: "production" }, signal });
  const headers = {
    Authorization: "Bearer none",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`,
  };
  return contestant("Portkey", server, (shape) => openAiTarget(port, shape, headers));
}

async function startNginx({ upstreamPort, folder, signal }: Places): Promise<Contestant> {
  const [port = 0] = await freePorts(1);
  const server = await startServer(await prepareNginx(folder, port, upstreamPort), { port, place: "server", signal });
  return contestant("nginx", server, (shape) => openAiTarget(port, shape));
}

async function startUngoverned({ catalogue, signal }: Places): Promise<Contestant> {
  const [port = 0] = await freePorts(1);
  const command = node(LARGE_PAGES, here("ungoverned.ts"), port, catalogue);
  const server = await startServer(command, { port, place: "server", signal });
  return contestant("Chorus ungoverned", server, (shape) => chorusTarget(port, shape));
}

async function startChorus(places: Places, workers?: number): Promise<RpcContestant> {
  const { server, rpcPort } = await startService(places, { catalogue: places.catalogue, workers, options: [] });
  const name = workers === undefined ? "Chorus" : `${workers} ${workers === 1 ? "worker" : "workers"}`;
  return {
    ...contestant(name, server, (shape) => chorusTarget(server.port, shape, API_KEY)),
    rpcTarget: (protocol, shape) => rpcTarget(rpcPort, protocol, shape, API_KEY),
  };
}

async function startWithRuns(places: Places, runs: "on" | "off"): Promise<Contestant> {
  const { catalogue } = places;
  const { server } = await startService(places, { catalogue, options: [], more: { CHORUS_RUNS: runs } });
  return contestant(`Runs ${runs}`, server, (shape) => chorusTarget(server.port, shape, API_KEY));
}

async function startDoors(places: Places): Promise<DoorsContestant> {
  const more = { CHORUS_TIERS: JSON.stringify([{ name: "free", purchased: 0, limits: UNREACHED }]) };
  const { server } = await startService(places, { catalogue: places.catalogue, options: [], more });
  return {
    server,
    target: (door, shape, hasTools) => doorTarget(server.port, door, shape, API_KEY, hasTools),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function startPanel(places: Places): Promise<PanelContestant> {
  const { server, rpcPort } = await startService(places, { catalogue: places.panelCatalogue, options: [TRACE_GC] });
  return {
    server,
    target: (ask) => panelTarget(server.port, ask, API_KEY),
    async runningCalls() {
      const metrics = await (await fetch(`http://127.0.0.1:${rpcPort}/metrics`)).text();
      const counts = metrics.matchAll(/^chorus_model_calls\{.*state="running".*\} (\d+)$/gm);
      return counts.reduce((sum, [, count]) => sum + Number(count), 0);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/**
 * Starts the service, with credit for any number of requests.
 * @param start.options of Node
 * @param start.more variables of the service
 */
async function startService(
  { folder, databaseUrl, signal }: Places,
  start: { catalogue: string; workers?: number | undefined; options: string[]; more?: Record<string, string> },
): Promise<{ server: Server; rpcPort: number }> {
  const { catalogue, workers = 1, options, more } = start;
  const [port = 0, rpcPort = 0] = await freePorts(2);
  const env = {
    PORT: String(port),
    RPC_PORT: String(rpcPort),
    // Chorus finds the running Postgres here.
    DATA_DIR: folder,
    CHORUS_MODELS: catalogue,
    // Every request is admitted and billed, and none is refused.
    CHORUS_TIERS: '[{"name":"free","purchased":0,"limits":{}}]',
    // Held streams are not cut short.
    CHORUS_DEADLINES_MS: JSON.stringify({ low: HOUR_MS, medium: HOUR_MS, high: HOUR_MS }),
    CHORUS_MODEL_TIMEOUTS_MS: JSON.stringify({ firstTokenMs: HOUR_MS, betweenChunksMs: HOUR_MS }),
    BOOTSTRAP_API_KEY: API_KEY,
    LOG_LEVEL: "warn",
    CHORUS_WORKERS: String(workers),
    ...more,
  };
  const command = node(LARGE_PAGES, ...options, here("../src/process/start.ts"));
  const server = await startServer(command, { port, place: "server", env, signal });
  // Chorus creates the schema and the workspace after both ports are open.
  while ((await fetch(`http://127.0.0.1:${port}/readyz`)).status !== 200) await setTimeout(50, undefined, { signal });
  const pool = openPool(databaseUrl, { max: 1 });
  await pool.query("select book_credit(id, 'grant', 'bench', 1000000000000) from workspaces");
  await pool.end();
  return { server, rpcPort };
}

async function startEcho(
  { signal }: Places,
  script: "echo" | "bare",
): Promise<Pick<RpcContestant, "server" | "rpcTarget">> {
  const [http1Port = 0, http2Port = 0] = await freePorts(2);
  const command = node(here(`${script}.ts`), http1Port, http2Port);
  const server = await startServer(command, { port: http2Port, place: "server", signal });
  return {
    server,
    rpcTarget: (protocol, shape) =>
      rpcTarget(protocol === "Connect HTTP/1.1" ? http1Port : http2Port, protocol, shape, API_KEY),
  };
}

function contestant(name: string, server: Server, target: Contestant["target"]): Contestant {
  return { name, server, target, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
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

/** A catalogue of three models, each of a vendor of its own. */
function panelCatalogueText(baseUrl: string): string {
  const models = PANEL_MODELS.map((model) => ({
    name: model,
    vendor: "openai-compatible",
    model,
    base_url: baseUrl,
    tier: "strong",
  }));
  return JSON.stringify({ models });
}

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
