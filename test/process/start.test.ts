import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "vitest";
import { makeFolder } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { startServer } from "../helpers/server.ts";
import { startEarly } from "../helpers/starting.ts";
import { until } from "../helpers/until.ts";

test("is ready only when the bootstrap key is accepted, also for a caller that tried it before", async (t) => {
  const { url } = await testDatabase(t);
  const service = await startEarly(t, { DATABASE_URL: url });
  const seen = new Set<number>();
  await until(async () => {
    seen.add(await service.status("/v1/quotas"));
    return (await service.status("/readyz")) === 200;
  }, 0);
  assert.equal(await service.status("/v1/quotas"), 200);
  assert.ok(!seen.has(401), [...seen].join());
  assert.equal(await service.stop(), 0);
});

test("waits for a database that is away, says why, and starts when it is there", async (t) => {
  const server = await startServer(t);
  await server.stop();
  const service = await startEarly(t, { DATABASE_URL: server.url });
  await until(() => service.output().includes("waiting for the database"));
  assert.match(service.output(), /"host":"127\.0\.0\.1".*ECONNREFUSED.*DATABASE_URL/);
  assert.ok(!service.output().includes(new URL(server.url).password));
  assert.deepEqual(
    await Promise.all(["/healthz", "/readyz", "/v1/quotas"].map((path) => service.status(path))),
    [200, 503, 503],
  );
  assert.doesNotMatch(service.output(), /Chorus is ready/);
  await server.start();
  await until(async () => (await service.status("/readyz")) === 200);
  assert.equal(await service.status("/v1/quotas"), 200);
  await until(() => service.output().includes("Chorus is ready"));
  assert.equal(await service.stop(), 0);
});

test("SIGHUP at the beginning of a start does not end the service", async (t) => {
  const { url } = await testDatabase(t);
  const folder = await makeFolder(t);
  await Promise.all(
    ["1", "2"].map(async (CHORUS_WORKERS) => {
      const DATA_DIR = join(folder, CHORUS_WORKERS);
      const env = { DATABASE_URL: url, DATA_DIR, CHORUS_WORKERS, NODE_COMPILE_CACHE: "" };
      const service = await startEarly(t, env);
      // It is made before the other modules are loaded.
      await until(() => existsSync(DATA_DIR), 0);
      service.reload();
      await until(async () => (await service.status("/readyz")) === 200);
      assert.equal(await service.stop(), 0);
    }),
  );
});

test("SIGTERM ends a service that waits for a database which refuses, does not answer or has no address", async (t) => {
  const silent = createServer((socket) => t.onTestFinished(() => void socket.destroy())).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.onTestFinished(() => void silent.close());
  const port = (silent.address() as AddressInfo).port;
  await Promise.all(
    ["127.0.0.1:1", `127.0.0.1:${port}`, "nohost.invalid"].map(async (host) => {
      const service = await startEarly(t, { DATABASE_URL: `postgres://me:sesame@${host}/x` });
      await until(() => service.output().includes("waiting for the database"));
      assert.ok(!service.output().includes("sesame"));
      assert.equal(await service.stop(), 0);
    }),
  );
});

test("names DATABASE_URL when its role may not create tables, or its tables are not those of Chorus", async (t) => {
  const { url, pool } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  const noSchema = await startEarly(t, { DATABASE_URL: url });
  assert.equal(await noSchema.exit, 1);
  assert.match(noSchema.output(), /^Chorus cannot start\. .*DATABASE_URL cannot be updated: no schema/m);
  await pool.query("create schema public");
  await pool.query("create table workspaces (mine text)");
  const foreign = await startEarly(t, { DATABASE_URL: url });
  assert.equal(await foreign.exit, 1);
  assert.match(foreign.output(), /DATABASE_URL cannot be updated: relation "workspaces" already exists\. Use/);
});
