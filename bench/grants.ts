/**
 * Measures admission and settlement at a steady rate, with durable commits and an embedded Postgres.
 *   node bench/grants.ts [--rate 200] [--seconds 5] [--rounds 2] [--workspaces 1,1000]
 * Prints the time that admission and settlement add to a request, and the processor time of Postgres for a request.
 */
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
import { createLog } from "../src/log.ts";
import { startEmbedded } from "../src/store/embedded/embedded.ts";
import { migrate } from "../src/store/migrate.ts";
import { arrangePartitions } from "../src/store/partitions.ts";
import { openPool } from "../src/store/pool.ts";
import { serverCpuSeconds } from "./postgres-cpu.ts";

const { values: options } = parseArgs({
  options: {
    rate: { type: "string", default: "200" },
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "2" },
    workspaces: { type: "string", default: "1,1000" },
  },
});

type Path = (workspace: string) => Promise<void>;

const log = createLog("warn");
const folder = await mkdtemp(join(tmpdir(), "chorus-bench-"));
await chmod(folder, 0o711);
const server = await startEmbedded(folder, () => undefined);
const pool = openPool(server.url);
const counts = options.workspaces.split(",").map(Number);
try {
  await prepare(Math.max(...counts));
  const path = await createPath();
  for (const workspaces of counts) {
    for (let round = 0; round < Number(options.rounds); round++) console.log(await measure(path, workspaces));
  }
} finally {
  await pool.end();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
process.exit();

/** Creates workspaces with every kind of limit, none of which is reached. */
async function prepare(workspaces: number): Promise<void> {
  await migrate(pool);
  await arrangePartitions(pool, Date.now(), 400);
  const names = ["requests", "input_tokens", "output_tokens"].flatMap((name) =>
    ["minute", "day", "month"].map((unit) => `${name}_per_${unit}`),
  );
  const limits = Object.fromEntries([...names, "concurrent_requests"].map((name) => [name, 1e15]));
  const values = [workspaces - 1, JSON.stringify(limits), JSON.stringify({ day: 1e15, week: 1e15, month: 1e15 })];
  await pool.query("insert into workspaces (id, name) select 'ws_' || i, 'ws_' || i from generate_series(0, $1) i", [
    workspaces - 1,
  ]);
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
     select 'ws_' || i, 'key_' || i, convert_to('k' || i, 'UTF8'), '', '{generate}' from generate_series(0, $1) i`,
    [workspaces - 1],
  );
  await pool.query(
    `insert into accounts (workspace_id, granted_micro, purchased_micro, limits, spend_limits)
     select 'ws_' || i, 1e15, 1e15, $2, $3 from generate_series(0, $1) i`,
    values,
  );
}

async function createPath(): Promise<Path> {
  const journal = new PostJournal(await openJournal<SettlementRow>(join(folder, "journal"), log), "bench", log);
  const grants = new Grants({ pool, journal, replica: "bench", log });
  setInterval(() => grants.beat(performance.now(), 2, true), 1_000);
  grants.beat(performance.now(), 2, true);
  const admission = createAdmission(pool, grants);
  return async (workspaceId) => {
    const id = randomUUID().replaceAll("-", "");
    const lease = await admission.open({
      caller: { workspaceId, workspace: workspaceId, keyId: workspaceId.replace("ws", "key"), scopes: ["generate"] },
      authenticatedAt: performance.now(),
      requestId: `req_${id}`,
      generationId: `gen_${id}`,
      streamed: false,
      shape: "text",
      effort: "auto",
      level: "low",
      rates: { input: 100, cached: 10, output: 400 },
      inputTokens: 100,
      maxOutputTokens: 1_000,
    });
    if ("replay" in lease) throw new Error("The service replayed a request without an idempotency key.");
    await lease.settle({ outcome: "ok", finishReason: "stop", outputTokens: 200, cachedTokens: 0, latencyMs: 12 });
  };
}

async function measure(path: Path, workspaces: number): Promise<string> {
  const [rate, seconds] = [Number(options.rate), Number(options.seconds)];
  const times: number[] = [];
  const running: Promise<void>[] = [];
  const cpu = serverCpuSeconds(folder);
  const own = process.cpuUsage();
  const start = performance.now();
  for (let i = 0; i < rate * seconds; i++) {
    const wait = start + (i * 1_000) / rate - performance.now();
    if (wait > 1) await sleep(wait);
    const before = performance.now();
    running.push(path(`ws_${i % workspaces}`).then(() => void times.push(performance.now() - before)));
  }
  await Promise.all(running);
  const { user, system } = process.cpuUsage(own);
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  const micros = ((serverCpuSeconds(folder) - cpu) * 1e6) / times.length;
  return (
    `${workspaces} workspaces, ${rate}/s: Postgres ${micros.toFixed(0)} µs, ` +
    `service ${((user + system) / times.length).toFixed(0)} µs, added ${at(0.5)} ms (p50), ${at(0.99)} ms (p99)`
  );
}
