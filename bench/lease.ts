import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openJournal } from "../src/admission/journal.ts";
import { createAdmission } from "../src/admission/lease.ts";
import { createSettlements } from "../src/admission/settle.ts";
import { createLog } from "../src/log.ts";
import { startEmbedded } from "../src/store/embedded.ts";
import { migrate } from "../src/store/migrate.ts";
import { openPool, type Pool } from "../src/store/pool.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    concurrency: { type: "string", default: "1,16,64,256" },
    workspaces: { type: "string", default: "1" },
    cores: { type: "string", default: "0" },
  },
});

if (values.cores !== "all" && process.env.CHORUS_BENCH_PINNED === undefined) {
  const { status } = spawnSync("taskset", ["-c", values.cores, process.execPath, ...process.argv.slice(1)], {
    stdio: "inherit",
    env: { ...process.env, CHORUS_BENCH_PINNED: "1" },
  });
  process.exit(status ?? 1);
}

const LIMITS = {
  requests_per_minute: 1e12, requests_per_day: 1e12, requests_per_month: 1e12,
  input_tokens_per_minute: 1e12, output_tokens_per_minute: 1e12, concurrent_requests: 1e6,
};
const folder = await mkdtemp(join(tmpdir(), "chorus-bench-"));
await chmod(folder, 0o711);
const server = await startEmbedded(folder, () => undefined);
const inner = openPool(server.url);
await migrate(inner);
const counts = { take: 0, settle: 0 };
const pool: Pool = {
  ...inner,
  query: (text, params) => {
    if (text.includes("take_leases")) counts.take++;
    else if (text.includes("settle_leases")) counts.settle++;
    return inner.query(text, params);
  },
};
const journal = await openJournal(join(folder, "journal"));
const settlements = createSettlements(pool, journal, createLog("warn"));
const admission = createAdmission(pool, settlements, { input: 100, cached: 10, output: 400 }, "bench");
const n = Number(values.workspaces);
for (let i = 0; i < n; i++) {
  await pool.query("insert into workspaces (id, name) values ($1, $1)", [`ws_${i}`]);
  await pool.query("insert into api_keys (workspace_id, id, secret_hash, prefix, scopes) values ($1, $2, $3, '', '{generate}')", [`ws_${i}`, `key_${i}`, Buffer.from(randomUUID())]);
  await pool.query("insert into accounts (workspace_id, granted_micro, purchased_micro, purchased_total_micro, limits, spend_limits) values ($1, 1e15, 1e15, 1e15, $2, $3)", [`ws_${i}`, JSON.stringify(LIMITS), JSON.stringify({ day: 1e15, month: 1e15 })]);
}

const postmaster = readFileSync(join(folder, "postgres/data/postmaster.pid"), "utf8").split("\n")[0];
/** CPU seconds that Postgres has used so far (Linux). */
function serverCpu(): number {
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const f = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (pid === postmaster || f[1] === postmaster) ticks += Number(f[11]) + Number(f[12]);
      if (pid === postmaster) ticks += Number(f[13]) + Number(f[14]);
    } catch {}
  }
  return ticks / 100;
}

async function run(seconds: number, concurrency: number) {
  counts.take = counts.settle = 0;
  let pairs = 0;
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  const start = performance.now();
  const cpu = process.cpuUsage();
  const pgCpu = serverCpu();
  await Promise.all(Array.from({ length: concurrency }, async (_, i) => {
    const caller = { workspaceId: `ws_${i % n}`, workspace: "", keyId: `key_${i % n}`, scopes: ["generate"] as const };
    while (performance.now() < end) {
      const t0 = performance.now();
      const lease = await admission.open({ caller, requestId: `req_${randomUUID().replaceAll("-", "")}`, generationId: `gen_${randomUUID().replaceAll("-", "")}`, streamed: false, shape: "text", effort: "auto", level: "low", inputTokens: 100, maxOutputTokens: 1000 });
      const t1 = performance.now();
      if ("replay" in lease) throw new Error();
      await lease.settle({ outcome: "ok", outputTokens: 200, cachedTokens: 0, charged: true, finishReason: "stop", latencyMs: 12, model: "m" });
      const t2 = performance.now();
      times.push(t2 - t0);
      pairs++;
      void t1;
    }
  }));
  const took = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  const pgUsed = serverCpu() - pgCpu;
  const nodeUs = (used.user + used.system) / pairs, pgUs = (pgUsed * 1e6) / pairs;
  times.sort((a, b) => a - b);
  console.log(`${concurrency}: ${(pairs / took).toFixed(0)} pairs/s, take batch ${(pairs / counts.take).toFixed(1)}, settle batch ${(pairs / counts.settle).toFixed(1)}, p50 ${times[times.length >> 1]?.toFixed(1)} p99 ${times[Math.floor(times.length * 0.99)]?.toFixed(1)} ms, cpu per pair: node ${nodeUs.toFixed(0)} + postgres ${pgUs.toFixed(0)} us -> ${(1e6 / (nodeUs + pgUs)).toFixed(0)} pairs per core-second`);
}
await run(2, 64);
for (const c of values.concurrency.split(",")) await run(Number(values.seconds), Number(c));
const hot = await pool.query("select relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del, n_dead_tup, pg_relation_size(relid) as size, pg_indexes_size(relid) as isize from pg_stat_user_tables where n_tup_ins>0 order by 1");
console.table(hot);
await settlements.close();
await inner.end();
await server.stop();
await rm(folder, { recursive: true, force: true });
console.log(availableParallelism());
