import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import { testDatabase } from "../helpers/database.ts";
import { faultEnv } from "../helpers/faults.ts";
import { test } from "../helpers/fixtures.ts";
import { transportWith } from "../helpers/rpc.ts";
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
  /** Makes the function that a part of an exchange calls fail. @returns a function that restores it */
  const fail = async (name: string, code: string) => {
    const [row] = await pool.query<{ sql: string }>("select pg_get_functiondef($1::regproc) as sql", [name]);
    const failing = `begin raise exception 'injected' using errcode = '${code}'; end`;
    await pool.query(row?.sql.replace(/\$function\$.*\$function\$/s, `$$function$$${failing}$$function$$`) ?? "");
    return () => pool.query(row?.sql ?? "");
  };
  const answered = async () => (await pool.query("select from generations where outcome = 'ok'")).length;
  for (const [i, [code, name]] of Object.entries(NO_ROOM).entries()) {
    const restore = await fail("reserve", code);
    // A request with a key always asks the database.
    await assertOverloaded(await service.post("/v1/generate", ASK, { "idempotency-key": code }), name);
    await restore();
    // In this order they are restored, too: a statement of the test posts what has been appended.
    const settling = ["post_settlements", "append_settlement"];
    const restoreSettling = await Promise.all(settling.map((part) => fail(part, code)));
    await until(async () => (await service.post("/v1/generate", ASK)).status === 200);
    assert.equal(await answered(), i);
    for (const undo of restoreSettling) await undo();
    await until(async () => (await answered()) === i + 1);
  }
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
  const answer = service.post("/v1/generate", ASK);
  await until(() => vendor.calls.length === 1);
  await server.stop();
  released.resolve();
  await assertOverloaded(await answer, "journal");
  assert.equal(await metric(service, "chorus_journal_failures_total"), 1);
  await until(() => /journal.*ENOSPC/.test(service.output()));
  await server.start();
  // The replica returns the grant of the answer that was not delivered.
  await until(async () => (await server.pool.query("select from grants")).length === 0);
  assert.deepEqual(await server.pool.query("select from generations"), []);
  await until(async () => (await service.post("/v1/generate", ASK)).status === 200);
  const activity = createClient(ActivityService, transportWith(service.rpcUrl, service.operatorToken));
  // Fails while another connection to the database has not noticed that it is back.
  const running = () => activity.listRunning({ workspace: "default" }).catch(() => undefined);
  await until(async () => (await running())?.generations.length === 0);
  await rm(full);
});
