import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { startServer } from "../helpers/server.ts";
import { startEarly } from "../helpers/starting.ts";
import { until } from "../helpers/until.ts";

const AWAY_MS = Number(process.env.CHORUS_TEST_START_AWAY_MS ?? 60_000);
const REPLICAS = 20;

test("twenty replicas that start while an empty database is away come up without help", async (t) => {
  const server = await startServer(t);
  await server.pool.query("drop schema public cascade");
  await server.pool.query("create schema public");
  await server.stop();
  const env = { DATABASE_URL: server.url };
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => startEarly(t, env)));
  await until(() => replicas.every(({ output }) => output().includes("waiting for the database")));
  await sleep(AWAY_MS);
  for (const { status } of replicas) {
    assert.deepEqual([await status("/healthz"), await status("/readyz")], [200, 503]);
  }
  await server.start();
  const back = performance.now();
  const ready = replicas.map(async ({ status }) => {
    await until(async () => (await status("/readyz")) === 200, 50);
    assert.equal(await status("/v1/quotas"), 200);
    return Math.round(performance.now() - back);
  });
  const times = (await Promise.all(ready)).toSorted((a, b) => a - b);
  await t.annotate(`ready after ${times[0]} ms (first), ${times.at(-1)} ms (last)`);
  const [row] = await server.pool.query("select count(*) from workspaces");
  assert.deepEqual(row, { count: 1n });
  assert.deepEqual(new Set(await Promise.all(replicas.map(({ stop }) => stop()))), new Set([0]));
});
