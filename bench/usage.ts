/**
 * Measures quotas and metrics of a workspace with many requests: node bench/usage.ts --rows 10000000
 * Creates that many rows of `generations` for one workspace over 400 days, a tenth as many for 100 other workspaces,
 * and the rollups.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { MetricsGroupBy, MetricsInterval } from "../gen/chorus/v1/generation_pb.js";
import { readMetrics } from "../src/admin/usage/metrics.ts";
import { createQuotas } from "../src/admin/usage/quotas.ts";
import { startEmbedded } from "../src/store/embedded/embedded.ts";
import { migrate } from "../src/store/migrate.ts";
import { arrangePartitions } from "../src/store/partitions.ts";
import { openPool, type Pool } from "../src/store/pool.ts";

const { values } = parseArgs({
  options: { rows: { type: "string", default: "200000" }, keys: { type: "string", default: "12" } },
});
const ROWS = Number(values.rows);
const KEYS = Number(values.keys);
const DAY = 86_400_000;
const DAYS = 400;
const NOW = Math.floor(Date.now() / 60_000) * 60_000 - 17 * 60_000;
const START = NOW - DAYS * DAY;
const STEP = 500_000;
const RUNS = 15;

async function fill(pool: Pool): Promise<void> {
  for (let time = START; time < NOW; time += 28 * DAY) await arrangePartitions(pool, time, 36_500, 30);
  for (let done = 0; done < ROWS; done += STEP) {
    const rows = Math.min(STEP, ROWS - done);
    const write = (workspace: string, count: number) =>
      pool.query(
        `insert into generations select ${workspace}, to_timestamp($1 + random() * $2), 'gen_' || i, 'req_' || i,
           'key_' || floor(random() ^ 2 * ${KEYS}), random() < 0.5, 'text', 'auto', 'low', 800, 200, 100, 160000,
           case when random() < 0.02 then 'upstream_failed' else 'ok' end, 'stop', 900, 'm'
         from generate_series(${done} + 1, ${done + count}) i`,
        [START / 1_000, (NOW - START) / 1_000],
      );
    await write("'ws_measured'", rows);
    await write("'ws_' || i % 100", Math.ceil(rows / 10));
    process.stdout.write(`\r${done + rows} rows`);
  }
  for (const unit of ["minute", "hour", "day"]) {
    // Inserted in order of time, as in a real service.
    await pool.query(
      `insert into usage select workspace_id, '${unit}', date_trunc('${unit}', created_at, 'UTC'), key_id,
         count(*) filter (where outcome = 'ok'), count(*) filter (where outcome <> 'ok'),
         coalesce(sum(input_tokens) filter (where outcome = 'ok'), 0),
         coalesce(sum(output_tokens) filter (where outcome = 'ok'), 0),
         coalesce(sum(cached_tokens) filter (where outcome = 'ok'), 0), sum(credits_micro)
       from generations group by 1, 3, 4 order by 3`,
    );
  }
  await pool.query("insert into accounts (workspace_id) values ('ws_measured')");
  await pool.query("vacuum analyze");
  const counts = await pool.query<{ unit: string; count: bigint }>(
    "select unit, count(*) from usage where workspace_id = 'ws_measured' group by 1 order by 1",
  );
  console.log(`, rolled up into ${counts.map(({ unit, count }) => `${count} ${unit}s`).join(", ")}; ${KEYS} keys`);
}

async function time(name: string, run: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < RUNS; i++) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  const [first = 0] = times;
  times.sort((a, b) => a - b);
  const figures = [first, times[RUNS >> 1] ?? 0, times.at(-1) ?? 0].map((ms) => ms.toFixed(1).padStart(9));
  console.log(`${name.padEnd(44)}${figures.join("")}`);
}

async function measure(pool: Pool): Promise<void> {
  console.log(`${"milliseconds".padEnd(44)}    first   median    worst`);
  const quotas = createQuotas(pool, async () => undefined);
  const [workspaceId, workspace] = ["ws_measured", "measured"];
  await time("quotas", () => quotas({ workspaceId, workspace }));
  const cases: [name: string, days: number, interval: keyof typeof MetricsInterval, byKey: boolean][] = [
    ["30 days by day", 30, "DAY", false],
    ["30 days by day and key", 30, "DAY", true],
    ["400 days by day", 400, "DAY", false],
    ["400 days by month", 400, "MONTH", false],
    ["400 days by month and key", 400, "MONTH", true],
    ["208 days by hour (5,000 points)", 5_000 / 24 - 0.1, "HOUR", false],
    ["17 days by hour and key", 17, "HOUR", true],
    ["3.5 days by minute (5,000 points)", 4_999 / 1_440, "MINUTE", false],
  ];
  for (const [name, days, interval, byKey] of cases) {
    const request = {
      startTime: timestampFromDate(new Date(NOW - days * DAY)),
      endTime: timestampFromDate(new Date(NOW)),
      interval: MetricsInterval[interval],
      groupBy: byKey ? MetricsGroupBy.KEY : MetricsGroupBy.NONE,
      groupTag: "",
    };
    await time(name, () => readMetrics(pool, request, { workspaceId, keyId: "" }));
  }
  const start = performance.now();
  await pool.query(
    "select count(*), sum(input_tokens) from generations where workspace_id = 'ws_measured' and created_at >= $1",
    [new Date(NOW - 30 * DAY)],
  );
  console.log(`For comparison, a sum over all requests of 30 days: ${(performance.now() - start).toFixed(0)} ms`);
}

const folder = await mkdtemp(join(tmpdir(), "chorus-bench-"));
await chmod(folder, 0o711);
const server = await startEmbedded(folder, () => undefined);
const pool = openPool(server.url, { timeoutMs: 3_600_000 });
try {
  await migrate(pool);
  await fill(pool);
  await measure(pool);
} finally {
  await pool.end();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
