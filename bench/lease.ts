/**
 * Measures how many leases can be opened and settled per second with durable commits. Admission and Postgres share one
 * core.
 *   node bench/lease.ts [--workspaces 1] [--concurrency 1,16,64,256] [--seconds 5] [--core 0] [--json]
 * On a machine with other load, compare the CPU time per lease, not the leases per second.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Grants } from "../src/admission/grants.ts";
import { openJournal } from "../src/admission/journal.ts";
import { createAdmission } from "../src/admission/lease.ts";
import { PostJournal, type SettlementRow } from "../src/admission/post-journal.ts";
import { createLog } from "../src/log.ts";
import { startEmbedded } from "../src/store/embedded/embedded.ts";
import { migrate } from "../src/store/migrate.ts";
import { arrangePartitions } from "../src/store/partitions.ts";
import { openPool } from "../src/store/pool.ts";
import { createTelemetry } from "../src/telemetry/create.ts";
import type { LeaseLoad } from "./leases.ts";
import { serverCpuSeconds } from "./postgres-cpu.ts";

const { values: options } = parseArgs({
  options: {
    workspaces: { type: "string", default: "1" },
    concurrency: { type: "string", default: "1,16,64,256" },
    seconds: { type: "string", default: "5" },
    core: { type: "string", default: "0" },
    json: { type: "boolean", default: false },
  },
});
const workspaces = Number(options.workspaces);

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
const pool = openPool(server.url);
try {
  await prepare();
  await measure(64, 2);
  const results: LeaseLoad[] = [];
  for (const concurrency of options.concurrency.split(",")) {
    const result = await measure(Number(concurrency), Number(options.seconds));
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
  await arrangePartitions(pool, Date.now(), 400);
  const names = ["requests", "input_tokens", "output_tokens"].flatMap((name) =>
    ["minute", "day", "month"].map((unit) => `${name}_per_${unit}`),
  );
  const limits = Object.fromEntries([...names, "concurrent_requests"].map((name) => [name, 1e15]));
  for (let i = 0; i < workspaces; i++) {
    await pool.query("insert into workspaces (id, name) values ($1, $1)", [`ws_${i}`]);
    await pool.query(
      "insert into api_keys (workspace_id, id, secret_hash, prefix, scopes) values ($1, $2, $3, '', '{generate}')",
      [`ws_${i}`, `key_${i}`, Buffer.from(randomUUID())],
    );
    await pool.query(
      `insert into accounts (workspace_id, granted_micro, purchased_micro, limits, spend_limits)
       values ($1, 1e15, 1e15, $2, $3)`,
      [`ws_${i}`, JSON.stringify(limits), JSON.stringify({ day: 1e15, week: 1e15, month: 1e15 })],
    );
  }
}

async function measure(concurrency: number, seconds: number): Promise<LeaseLoad> {
  const batches = { admission: 0, settlement: 0 };
  const id = randomUUID();
  const telemetry = { ...createTelemetry(), batch: (stage: keyof typeof batches) => void batches[stage]++ };
  const log = createLog("warn");
  const journal = await openJournal<SettlementRow>(join(folder, "journal"), log);
  const posts = new PostJournal(journal, id, log);
  const grants = new Grants({ pool, journal: posts, replica: id, log, telemetry });
  const beats = setInterval(() => grants.beat(performance.now(), 1, true), 1_000);
  grants.beat(performance.now(), 1, true);
  const rates = { input: 100, cached: 10, output: 400 };
  const admission = createAdmission(pool, grants);
  const times: number[] = [];
  const cpu = process.cpuUsage();
  const serverCpu = serverCpuSeconds(folder);
  const wal = await walBytes();
  const start = performance.now();
  const caller = async (i: number) => {
    const [workspaceId, keyId] = [`ws_${i % workspaces}`, `key_${i % workspaces}`];
    while (performance.now() - start < seconds * 1_000) {
      const before = performance.now();
      const id = randomUUID().replaceAll("-", "");
      const lease = await admission.open({
        caller: { workspaceId, workspace: workspaceId, keyId, scopes: ["generate"] },
        authenticatedAt: before,
        requestId: `req_${id}`,
        generationId: `gen_${id}`,
        streamed: false,
        shape: "text",
        effort: "auto",
        level: "low",
        inputTokens: 100,
        maxOutputTokens: 1_000,
        rates,
      });
      if ("replay" in lease) throw new Error("The service replayed a request without an idempotency key.");
      const answer = { outputTokens: 200, cachedTokens: 0, latencyMs: 12, model: "openai-fast" };
      await lease.settle({ outcome: "ok", finishReason: "stop", ...answer });
      times.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, i) => caller(i)));
  const took = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  clearInterval(beats);
  await grants.close();
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  return {
    concurrency,
    rate: times.length / took,
    batch: times.length / batches.settlement,
    p50: at(0.5),
    p99: at(0.99),
    serviceMicros: (user + system) / times.length,
    postgresMicros: ((serverCpuSeconds(folder) - serverCpu) * 1e6) / times.length,
    walBytes: ((await walBytes()) - wal) / times.length,
  };
}

function line({ concurrency, rate, batch, p50, p99, serviceMicros, postgresMicros, walBytes }: LeaseLoad): string {
  return (
    `${concurrency} callers, ${workspaces} workspaces: ${rate.toFixed(0)} leases/s, batches of ${batch.toFixed(1)}; ` +
    `each takes ${p50.toFixed(1)} ms (p50), ${p99.toFixed(1)} ms (p99), ` +
    `${serviceMicros.toFixed(0)} + ${postgresMicros.toFixed(0)} µs of CPU (service + Postgres) ` +
    `and ${walBytes.toFixed(0)} bytes of WAL, ` +
    `which is ${(1e6 / (serviceMicros + postgresMicros)).toFixed(0)} leases per second of CPU time`
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
