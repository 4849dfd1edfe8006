/**
 * Measures admission and settlement with durable commits. The service's part and Postgres share one core.
 *   node bench/admit.ts [--only TEXT] [--seconds 5] [--core 0] [--json]
 * --only runs the loads whose name contains the text. On a machine with other load, compare the CPU time per request,
 * not the requests per second.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Grants } from "../src/admission/grants.ts";
import { openJournal } from "../src/admission/journal.ts";
import { createAdmission } from "../src/admission/lease.ts";
import { PostJournal, type SettlementRow } from "../src/admission/post-journal.ts";
import { startEmbedded } from "../src/store/embedded/embedded.ts";
import { migrate } from "../src/store/migrate.ts";
import { arrangePartitions } from "../src/store/partitions.ts";
import { openPool } from "../src/store/pool.ts";
import { createTelemetry } from "../src/telemetry/create.ts";
import { createLog } from "../src/telemetry/log.ts";
import { ask } from "../test/helpers/books.ts";
import { type AdmissionLoad, STEADY } from "./admission.ts";
import { serverCpuSeconds } from "./postgres-cpu.ts";

/** Requests: one after another by each of `callers`, or `perSecond`. The workspaces take turns. */
interface Load {
  name: string;
  callers?: number;
  perSecond?: number;
  workspaces: number;
  /** Ends after this number of requests rather than after the seconds of a measurement. */
  requests?: number;
  /** Time in which the same requests come before they are measured, in seconds. */
  warmUp?: number;
  /** Time of the measurement, in seconds, if not that of the others. */
  seconds?: number;
  /** Requests are of as many end users in turn, and of a tag. */
  users?: number;
  /** The key and each user have caps on credits and requests, which are not reached. */
  hasCaps?: boolean;
}

const LOADS: readonly Load[] = [
  { name: "1 caller", callers: 1, workspaces: 1 },
  { name: "16 callers of one workspace", callers: 16, workspaces: 1 },
  { name: "64 callers of one workspace", callers: 64, workspaces: 1 },
  { name: "256 callers of one workspace", callers: 256, workspaces: 1 },
  { name: "64 callers, a user without caps", callers: 64, workspaces: 1, users: 1, warmUp: 3 },
  { name: "64 callers, a user and a key with caps", callers: 64, workspaces: 1, users: 1, warmUp: 3, hasCaps: true },
  { name: "64 callers, 100 users without caps", callers: 64, workspaces: 1, users: 100, warmUp: 3 },
  {
    name: "64 callers, 100 users and a key with caps",
    callers: 64,
    workspaces: 1,
    users: 100,
    warmUp: 3,
    hasCaps: true,
  },
  { name: "200 requests/s of one workspace", perSecond: 200, workspaces: 1 },
  // Each workspace has a request every five seconds. The first three are not measured. The others are those of a whole
  // minute, because the first in each takes another statement.
  { name: STEADY, perSecond: 200, workspaces: 1_000, warmUp: 15, seconds: 60 },
  { name: "64 callers over 1,000 workspaces", callers: 64, workspaces: 1_000 },
  { name: "10,000 workspaces, one request each (64 callers)", callers: 64, workspaces: 10_000, requests: 10_000 },
];
const WORKSPACES = Math.max(...LOADS.map(({ workspaces }) => workspaces));

const { values: options } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    seconds: { type: "string", default: "5" },
    core: { type: "string", default: "0" },
    json: { type: "boolean", default: false },
  },
});

// Postgres is a child process and is therefore pinned as well.
if (process.env.CHORUS_BENCH_PINNED === undefined && options.core !== "all") {
  const { status, error } = spawnSync("taskset", ["-c", options.core, process.execPath, ...process.argv.slice(1)], {
    stdio: "inherit",
    env: { ...process.env, CHORUS_BENCH_PINNED: options.core },
  });
  if (!error) process.exit(status ?? 1);
  console.log("taskset is not available; measuring on all cores.");
}

const folder = await mkdtemp(join(tmpdir(), "chorus-bench-"));
await chmod(folder, 0o711);
const server = await startEmbedded(folder, () => undefined);
const pool = openPool(server.url, { prepares: true });
try {
  await prepare();
  await measure({ name: "warm-up", callers: 64, workspaces: 1 }, 2);
  const results: AdmissionLoad[] = [];
  for (const load of LOADS.filter(({ name }) => name.includes(options.only))) {
    const result = await measure(load, Number(options.seconds));
    results.push(result);
    if (!options.json) console.log(line(result));
  }
  if (options.json) console.log(JSON.stringify(results));
  else await tables();
} finally {
  await pool.end();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Creates workspaces with every kind of limit, none of which is reached. */
async function prepare(): Promise<void> {
  await migrate(pool);
  await arrangePartitions(pool, Date.now(), 400, 30);
  const names = ["requests", "input_tokens", "output_tokens"].flatMap((name) =>
    ["minute", "day", "month"].map((unit) => `${name}_per_${unit}`),
  );
  const limits = Object.fromEntries([...names, "concurrent_requests"].map((name) => [name, 1e15]));
  await pool.query("insert into workspaces (id, name) select 'ws_' || i, 'ws_' || i from generate_series(1, $1) i", [
    WORKSPACES,
  ]);
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
     select 'ws_' || i, 'key_' || i, convert_to('k' || i, 'UTF8'), '', '{generate}' from generate_series(1, $1) i`,
    [WORKSPACES],
  );
  await pool.query(
    `insert into accounts (workspace_id, granted_micro, purchased_micro, limits, spend_limits)
     select 'ws_' || i, 1e15, 1e15, $2, $3 from generate_series(1, $1) i`,
    [WORKSPACES, JSON.stringify(limits), JSON.stringify({ day: 1e15, week: 1e15, month: 1e15 })],
  );
}

/** Sets or removes caps of the key and of each user of the first workspace. */
async function setCaps(hasCaps: boolean): Promise<void> {
  await pool.query("delete from caps");
  await pool.query("delete from subject_periods");
  if (!hasCaps) return;
  await pool.query(
    `insert into caps (workspace_id, id, subject, figure, period, amount, action, created_at)
     select 'ws_1', concat(s, f), s, f, p, 1e15, 'refuse', now()
     from unnest(array['key:*', 'user:*']) s, (values ('credits', 'day'), ('requests', 'minute')) c (f, p)`,
  );
}

/** Admits and settles requests as one new replica. */
async function measure(load: Load, seconds: number): Promise<AdmissionLoad> {
  const batches = { admission: 0, settlement: 0 };
  const replica = randomUUID();
  const telemetry = { ...createTelemetry(), batch: (stage: keyof typeof batches) => void batches[stage]++ };
  const log = createLog("warn");
  const posts = new PostJournal(await openJournal<SettlementRow>(join(folder, "journal"), log), replica, log);
  const grants = new Grants({ pool, journal: posts, replica, log, telemetry });
  const beats = setInterval(() => grants.beat(performance.now(), 1, true), 1_000);
  grants.beat(performance.now(), 1, true);
  await setCaps(load.hasCaps ?? false);
  const request = requester(createAdmission(pool, grants), load);
  if (load.warmUp) await send(load, load.warmUp, (i) => request(1 + (i % load.workspaces)));
  Object.assign(batches, { admission: 0, settlement: 0 });
  const times: number[] = [];
  const cpu = process.cpuUsage();
  const serverCpu = serverCpuSeconds(folder);
  const wal = await walBytes();
  const start = performance.now();
  await send(load, load.seconds ?? seconds, async (i) => {
    const before = performance.now();
    await request(1 + (i % load.workspaces));
    times.push(performance.now() - before);
  });
  const took = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const postgres = serverCpuSeconds(folder) - serverCpu;
  const walEnd = await walBytes();
  clearInterval(beats);
  await grants.close();
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  return {
    name: load.name,
    rate: times.length / took,
    batch: times.length / batches.settlement,
    p50: at(0.5),
    p99: at(0.99),
    serviceMicros: (user + system) / times.length,
    postgresMicros: (postgres * 1e6) / times.length,
    walBytes: (walEnd - wal) / times.length,
  };
}

/** Calls `request` with 0, 1, … as the load says, and resolves when all have ended. */
async function send(load: Load, seconds: number, request: (i: number) => Promise<void>): Promise<void> {
  const { callers = 0, perSecond = 0, requests = Number.POSITIVE_INFINITY } = load;
  const start = performance.now();
  let next = 0;
  const isOver = () => (requests < Number.POSITIVE_INFINITY ? next >= requests : now() >= seconds);
  const now = () => (performance.now() - start) / 1_000;
  const caller = async () => {
    while (!isOver()) await request(next++);
  };
  const running = Array.from({ length: callers }, caller);
  while (perSecond > 0 && !isOver()) {
    const wait = next / perSecond - now();
    if (wait > 0.001) await sleep(wait * 1_000);
    running.push(request(next++));
  }
  await Promise.all(running);
}

/** A request of workspace n, from its admission to its settlement. */
function requester(
  admission: ReturnType<typeof createAdmission>,
  { users = 0, hasCaps = false }: Load,
): (n: number) => Promise<void> {
  let sent = 0;
  return async (n) => {
    const { caller, ...rest } = ask(`ws_${n}`, { inputTokens: 100, maxOutputTokens: 1_000 });
    const lease = await admission.open({
      ...rest,
      caller: hasCaps ? { ...caller, capped: ["key", "user"] } : caller,
      ...(users === 0 ? {} : { subjects: { user: `u${sent++ % users}`, tags: { team: "a" } } }),
    });
    if ("replay" in lease) throw new Error("The service replayed a request without an idempotency key.");
    const answer = { outputTokens: 200, cachedTokens: 0, latencyMs: 12, model: "openai-fast" };
    await lease.settle({ outcome: "ok", finishReason: "stop", ...answer });
  };
}

function line({ name, rate, batch, p50, p99, serviceMicros, postgresMicros, walBytes }: AdmissionLoad): string {
  return (
    `${name}: ${rate.toFixed(0)}/s, batches of ${batch.toFixed(1)}; ` +
    `each takes ${p50.toFixed(1)} ms (p50), ${p99.toFixed(1)} ms (p99), ` +
    `${serviceMicros.toFixed(0)} + ${postgresMicros.toFixed(0)} µs of CPU (service + Postgres) ` +
    `and ${walBytes.toFixed(0)} bytes of WAL`
  );
}

/** Size of the write-ahead log so far, in bytes. */
async function walBytes(): Promise<number> {
  const [row] = await pool.query<{ bytes: string }>("select pg_current_wal_lsn() - '0/0' as bytes");
  return Number(row?.bytes);
}

/** Prints statistics of the tables: updates that changed no index (HOT), dead rows, vacuums and sizes. */
async function tables(): Promise<void> {
  const rows = await pool.query<Record<string, bigint | string>>(
    `select relname as name, n_tup_ins as inserted, n_tup_upd as updated, n_tup_hot_upd as hot, n_tup_del as deleted,
       n_dead_tup as dead, autovacuum_count as vacuums,
       pg_relation_size(relid) / 1024 as kb, pg_indexes_size(relid) / 1024 as index_kb
     from pg_stat_user_tables where n_tup_ins + n_tup_upd + n_tup_del > 0 order by 1`,
  );
  for (const { name, inserted, updated, hot, deleted, dead, vacuums, kb, index_kb } of rows) {
    console.log(
      `${name}: ${inserted} inserted, ${updated} updated (${hot} HOT), ${deleted} deleted, ${dead} dead, ` +
        `${vacuums} vacuums, ${kb} KB + ${index_kb} KB of indexes`,
    );
  }
}
