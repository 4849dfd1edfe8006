import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePorts } from "../../bench/server.ts";
import { CHILD_ENV } from "../../test/helpers/environment.ts";
import type { Check, CheckTools } from "../scenario.ts";

const MAIN = fileURLToPath(new URL("../../src/process/main.ts", import.meta.url));
const KEY = "ck_hostile_start_0123456789";
/** Longest time from the return of Postgres until a replica is ready. */
const READY_MS = 60_000;

/** What a service must do at its start. */
export const START: readonly Check[] = [
  { name: "ready", what: "/readyz is polled while a service starts on a new database, five times", run: ready },
  { name: "journal-null", what: "the journal has a line `null`", run: journalNull },
  {
    name: "replicas",
    what: "20 replicas start while Postgres is away for 30 s (--full: a minute)",
    optional: true,
    run: replicas,
  },
];

interface Started {
  port: number;
  output(): string;
  /** The exit code, or undefined while the service runs. */
  exitCode(): number | null;
}

/** Starts a service without waiting for anything. */
async function start(
  { stack }: CheckTools,
  databaseUrl: string,
  options: { fresh?: boolean; dataDir?: string } = {},
): Promise<Started> {
  const [port = 0] = await freePorts(1);
  const dataDir = options.dataDir ?? (await folder(stack));
  const child = spawn(process.execPath, [MAIN], {
    cwd: dataDir,
    env: {
      ...CHILD_ENV,
      PORT: String(port),
      RPC_PORT: "0",
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      ...(options.fresh ? { BOOTSTRAP_API_KEY: KEY } : {}),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  stack.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  });
  return { port, output: () => output, exitCode: () => child.exitCode };
}

async function folder(stack: AsyncDisposableStack): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "chorus-hostile-"));
  stack.defer(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Creates an empty database. @returns its address */
async function newDatabase({ database }: CheckTools, name: string): Promise<string> {
  await database.pool.query(`drop database if exists ${name} with (force)`);
  await database.pool.query(`create database ${name}`);
  const url = new URL(database.url);
  url.pathname = `/${name}`;
  return url.href;
}

async function ready(tools: CheckTools) {
  const problems: string[] = [];
  for (let i = 0; i < 5; i++) {
    const service = await start(tools, await newDatabase(tools, `hostile_ready_${i}`), { fresh: true });
    if (!(await isReady(service))) return { outcome: "", problems: [`not ready: ${service.output().slice(-500)}`] };
    const status = await fetch(`http://127.0.0.1:${service.port}/v1/quotas`, { headers: { "x-api-key": KEY } }).then(
      ({ status }) => String(status),
      (error: Error) => error.message,
    );
    if (status !== "200") problems.push(`/readyz says yes, and the key gets ${status}`);
  }
  return { outcome: "5 starts", problems };
}

/** Polls /readyz. @returns false if the service has ended, or is not ready in time */
async function isReady({ port, exitCode }: Started, ms = READY_MS): Promise<boolean> {
  for (const end = Date.now() + ms; Date.now() < end && exitCode() === null; await sleep(5)) {
    const status = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return true;
  }
  return false;
}

async function journalNull(tools: CheckTools) {
  const dataDir = await folder(tools.stack);
  const journal = join(dataDir, "journal");
  await mkdir(journal);
  const name = `${process.pid}.jsonl`;
  await writeFile(join(journal, name), "null\n");
  const service = await start(tools, await newDatabase(tools, "hostile_journal"), { fresh: true, dataDir });
  if (await isReady(service)) return { outcome: "the service starts", problems: [] };
  const output = service.output();
  const problems = ["the service does not start"];
  if (!output.includes(name)) problems.push(`its message does not name the file: ${output.trim().slice(-200)}`);
  return { outcome: `exit code ${service.exitCode()}`, problems };
}

async function replicas(tools: CheckTools) {
  const { database, full } = tools;
  const count = 20;
  const url = await newDatabase(tools, "hostile_replicas");
  await database.stop();
  tools.stack.defer(() => database.start());
  const services = await Promise.all(Array.from({ length: count }, () => start(tools, url)));
  await sleep(full ? 60_000 : 30_000);
  await database.start();
  const back = Date.now();
  const up = await Promise.all(services.map((service) => isReady(service, 2 * READY_MS)));
  const ended = services.filter(({ exitCode }) => exitCode() !== null);
  const seconds = Math.round((Date.now() - back) / 1_000);
  const outcome = `${up.filter(Boolean).length} of ${count} are ready, the last ${seconds} s after Postgres is back`;
  const last = ended[0]?.output().trim().slice(-200);
  const problems = up.every(Boolean) ? [] : [`${ended.length} replicas ended: ${last}`];
  return { outcome, problems };
}
