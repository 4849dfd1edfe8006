import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testDatabase } from "../helpers/database.ts";
import { faultEnv } from "../helpers/faults.ts";
import { test } from "../helpers/fixtures.ts";
import { startServer } from "../helpers/server.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

const ASK = { prompt: "What is 2 + 2?" };

async function metric(service: TestService, series: string): Promise<number> {
  const text = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length));
}

async function assertOverloaded(response: Response, what: string): Promise<void> {
  assert.equal(response.status, 503, what);
  assert.equal(response.headers.get("retry-after"), "1", what);
  assert.equal(((await response.json()) as { code: string }).code, "overloaded", what);
}

/** SQLSTATEs of PostgreSQL's documentation, appendix A. */
const NO_ROOM = {
  "53100": "disk full",
  "53200": "out of memory",
  "53300": "too many connections",
  "25006": "read only, as a standby after a failover",
  "58030": "input or output error",
  "40P01": "deadlock",
};

test("a database that has no room refuses requests with 503, and a settlement waits in the journal", async ({ t }) => {
  const { url, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl: url, env: { OPENAI_API_KEY: "" } });
  const fail = async (name: string, parameters: string, code: string) => {
    const [row] = await pool.query<{ sql: string }>("select pg_get_functiondef($1::regproc) as sql", [name]);
    await pool.query(
      `create or replace function ${name}(${parameters}) returns jsonb language plpgsql as
       $$ begin raise exception 'injected' using errcode = '${code}'; end $$`,
    );
    return () => pool.query(row?.sql ?? "");
  };
  for (const [code, name] of Object.entries(NO_ROOM)) {
    const restore = await fail(
      "open_leases",
      "w text, by_replica text, items jsonb, at timestamptz default null",
      code,
    );
    await assertOverloaded(await service.post("/v1/generate", ASK), name);
    await restore();
    const restoreSettling = await fail("settle_leases", "w text, items jsonb, at timestamptz default null", code);
    assert.equal((await service.post("/v1/generate", ASK)).status, 200, name);
    await restoreSettling();
  }
  const answers = Object.keys(NO_ROOM).length;
  await until(async () => (await pool.query("select from generations where outcome = 'ok'")).length === answers);
});

test("a full disk while the database is away: 503, uncharged, and the answer is free", async ({ t, vendor }) => {
  const server = await startServer(t);
  const released = Promise.withResolvers<void>();
  vendor.always(async () => {
    await released.promise;
    return {};
  });
  const service = await startService(t, { databaseUrl: server.url, env: { ...vendor.env, ...faultEnv("disk") } });
  const full = join(service.dataDir, "disk-full");
  await writeFile(full, "");
  const running = service.post("/v1/generate", ASK);
  await until(() => vendor.calls.length === 1);
  await server.stop();
  released.resolve();
  await assertOverloaded(await running, "journal");
  assert.equal(await metric(service, "chorus_journal_failures_total"), 1);
  assert.match(service.output(), /journal.*ENOSPC/);
  await server.start();
  // The replica releases the hold of the answer that was not delivered.
  await until(async () => (await server.pool.query("select from leases")).length === 0);
  assert.deepEqual(await server.pool.query("select from generations"), []);
  await until(async () => (await service.post("/v1/generate", ASK)).status === 200);
  await rm(full);
});
