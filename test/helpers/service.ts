import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "./database.ts";
import { CHILD_ENV } from "./environment.ts";
import type { Ended, Order } from "./hosts.ts";
import type { Lifetime } from "./lifetime.ts";
import { canShareProcess, OWN_PROCESS, programOf } from "./program.ts";
import { ask } from "./run.ts";

export interface TestService {
  /** Address of the public listener. */
  readonly url: string;
  /** Address of the internal listener. */
  readonly rpcUrl: string;
  readonly apiKey: string;
  readonly operatorToken: string;
  readonly databaseUrl: string;
  readonly dataDir: string;
  /** Its process. @throws Error if it shares one */
  readonly process: ChildProcess;
  /** Standard output and log of the service so far. */
  output(): string;
  /** Sends a signal (default: SIGTERM) and returns the exit code, or the signal that ended the process. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
  /** POSTs a JSON body with the API key. A string is sent unchanged. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
}

export interface TestServiceOptions {
  env?: Record<string, string>;
  /** Default: a new database, dropped after the test. */
  databaseUrl?: string;
  dataDir?: string;
  /** A command that runs the command after it in its own process, such as `["prlimit", "--nofile=1000"]`. */
  launcher?: readonly string[];
}

/**
 * Starts the service on free ports and ends it after the test. It shares a process with services of other tests, unless
 * its environment or the launcher concerns the process (see `OWN_PROCESS`).
 */
export async function startService(t: Lifetime, options: TestServiceOptions = {}): Promise<TestService> {
  const databaseUrl = options.databaseUrl ?? (await testDatabase(t)).url;
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "chorus-data-")));
  const apiKey = "test-key-0123456789abcdef";
  const operatorToken = "test-operator-0123456789abcdef";
  const env: Record<string, string> = {
    HOST: "127.0.0.1",
    PORT: "0",
    RPC_PORT: "0",
    DATABASE_URL: databaseUrl,
    DATA_DIR: dataDir,
    BOOTSTRAP_API_KEY: apiKey,
    OPERATOR_TOKEN: operatorToken,
    LOG_LEVEL: "warn",
    // Tests of limits set their own tiers.
    CHORUS_TIERS: '[{"name":"free","purchased":0,"limits":{}}]',
    // Test machines are busy.
    CHORUS_MAX_LOOP_DELAY_MS: "0",
    ...options.env,
  };
  if (!options.dataDir) t.onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const isShared = options.launcher === undefined && canShareProcess(options.env);
  const { output, stop, child } = isShared
    ? await startShared(t, { ...CHILD_ENV, ...env })
    : await startOwn(t, { ...CHILD_ENV, ...env }, dataDir, options.launcher);
  if (databaseUrl !== "" && options.env?.CHORUS_TIERS === undefined) await grantCredit(databaseUrl);
  const [, url = ""] = /REST and SSE +(\S+)/.exec(output()) ?? [];
  const [, rpcUrl = ""] = /gRPC-Web +(\S+)/.exec(output()) ?? [];
  return {
    url,
    rpcUrl,
    apiKey,
    operatorToken,
    databaseUrl,
    dataDir,
    get process() {
      if (child === undefined) throw new Error("This service shares a process. Start it with startOwnService.");
      return child;
    },
    output,
    stop,
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: { "x-api-key": apiKey, "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    get: (path, headers = {}) => fetch(url + path, { headers: { "x-api-key": apiKey, ...headers } }),
  };
}

/** Starts the service in a process of its own, to which a test may send signals. */
export function startOwnService(t: Lifetime, options: TestServiceOptions = {}): Promise<TestService> {
  return startService(t, { ...options, env: { ...OWN_PROCESS, ...options.env } });
}

interface Started {
  output(): string;
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
  readonly child?: ChildProcess;
}

/** Starts a service in a process that runs services of other tests, too (service-host.ts). */
async function startShared(t: Lifetime, env: Record<string, string>): Promise<Started> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-output-"));
  const output = join(folder, "output");
  const url = await ask("host", process.env.VITEST_POOL_ID ?? "");
  const send = async (order: Order): Promise<string> => {
    const response = await fetch(url, { method: "POST", body: JSON.stringify(order) });
    const answer = await response.text();
    if (!response.ok) throw new Error(answer);
    return answer;
  };
  let ended: Promise<Ended> | undefined;
  const end = async (signal: NodeJS.Signals): Promise<Ended> => {
    await send({ order: "signal", output, signal });
    return JSON.parse(await send({ order: "end", output }));
  };
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    ended ??= end(signal);
    return (await ended).code;
  };
  const read = () => readFileSync(output, "utf8");
  t.onTestFinished(async () => {
    await stop();
    await rm(folder, { recursive: true, force: true });
  });
  const { code }: Ended = JSON.parse(await send({ order: "start", output, env }));
  if (code !== null) throw new Error(`the service ended before it was ready:\n${read()}`);
  return { output: read, stop };
}

/** Starts a service in a process of its own. */
async function startOwn(
  t: Lifetime,
  env: Record<string, string>,
  cwd: string,
  launcher: readonly string[] = [],
): Promise<Started> {
  const [program = "", ...parameters] = [...launcher, process.execPath, await programOf(env)];
  // Outside the repository, because a developer's catalogue file there would be read.
  const child = spawn(program, parameters, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let isReady = false;
  // `close` comes after the last output.
  const exited = once(child, "close");
  t.onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
  });
  const ready = new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      // A search copies the whole output, which is long after some seconds.
      if (isReady || !output.includes("Try it:")) return;
      isReady = true;
      resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    exited.then(() => reject(new Error(`the service ended before it was ready:\n${output}`)));
  });
  await ready;
  return {
    child,
    output: () => output,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      const [code, by] = await exited;
      return code ?? by;
    },
  };
}

/** Grants the default workspace enough credit for any test. Tests of credit set CHORUS_TIERS and skip this. */
async function grantCredit(databaseUrl: string): Promise<void> {
  const pool = openPool(databaseUrl, { max: 1 });
  await pool.query("select book_credit(id, 'grant', 'test', 1000000000000) from workspaces where name = 'default'");
  await pool.end();
}

export interface SseEvent {
  event: string;
  data: Record<string, unknown>;
}

/** Reads server-sent events to their end. */
export async function readEvents(response: Response): Promise<SseEvent[]> {
  const events: SseEvent[] = [];
  for await (const event of eventsOf(response)) events.push(event);
  return events;
}

/** Yields server-sent events as they arrive. Leaving the iteration closes the connection. */
export async function* eventsOf(response: Response): AsyncGenerator<SseEvent> {
  let text = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (text + piece).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      // Splits at line feeds only, unlike a regular expression with `m`, which also splits at U+2028.
      const lines = block.split("\n");
      const event = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      if (event && data) yield { event, data: JSON.parse(data) };
    }
  }
}
