import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { KeyUseSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { openPool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import { addUse, NOW, openWithGenerations, START } from "../../helpers/generations.ts";

const at = (ms: number) => timestampFromDate(new Date(ms));

test("lists many keys in pages and finds them by the start of their name or secret", async (t) => {
  const { pool, keys } = await openWithGenerations(t, 1);
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, revoked_at)
     select 'ws_2', 'key_' || to_hex(i), convert_to('m' || i, 'UTF8'), 'ck_' || lpad(i::text, 6, '0'),
       case when i % 100 = 0 then 'Special_100% ' else 'worker ' end || i, '{}',
       to_timestamp(${START / 1_000} + i / 5), case when i % 2 = 0 then now() end
     from generate_series(100000, 109999) i`,
  );
  const collect = async (request: { search?: string; activeOnly?: boolean }) => {
    const found: string[] = [];
    let pageToken = "";
    do {
      const page = await keys.listKeys({ workspace: "two", pageSize: 1_000, pageToken, ...request });
      found.push(...page.keys.map(({ name }) => name));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return found;
  };
  assert.equal(new Set(await collect({})).size, 10_000);
  assert.equal((await collect({ activeOnly: true })).length, 5_000);
  assert.equal((await collect({ search: "sPECIAL_100%" })).length, 100);
  assert.equal((await collect({ search: "special%" })).length, 0, "% is no wildcard");
  assert.equal((await collect({ search: "worker 10000", activeOnly: true })).length, 5);
  assert.deepEqual(await collect({ search: "ck_104321" }), ["worker 104321"]);
  const { secret, key } = await keys.createKey({ workspace: "two", name: "by secret" });
  assert.deepEqual(await collect({ search: secret }), [key?.name]);
  assert.deepEqual(await collect({ search: key?.id ?? "" }), [key?.name]);
});

test("reads the last use of keys and their figures from the rollups", async (t) => {
  const { pool } = await openWithGenerations(t, 1);
  await addUse(pool);
  const { keys } = adminOf(pool, { clock: () => NOW });
  const { keys: listed } = await keys.listKeys({ workspace: "one", withUse: true });
  const use = new Map(listed.map((key) => [key.id, key.use]));
  assert.equal(use.size, 10);
  const expected = create(KeyUseSchema, {
    lastUsedAt: at(Date.parse("2026-11-20T12:30:00Z")),
    startTime: at(Date.parse("2026-10-22T00:00:00Z")),
    requests: 4n,
    failedRequests: 2n,
    inputTokens: 20n,
    outputTokens: 40n,
    credits: "4",
  });
  assert.deepEqual(use.get("key_1"), expected);
  assert.deepEqual(use.get("key_2")?.lastUsedAt, at(Date.parse("2025-01-01T00:00:00Z")));
  assert.equal(use.get("key_2")?.credits, "0");
  assert.equal(use.get("key_4")?.lastUsedAt, undefined, "does not show the use of another workspace");
});

test("finds the last use of a key on a day on which the clocks of the database's time zone change", async (t) => {
  const { pool, url } = await testDatabase(t);
  await pool.query(`alter database ${new URL(url).pathname.slice(1)} set timezone = 'Europe/Berlin'`);
  const own = openPool(url, { max: 1 });
  t.onTestFinished(() => own.end());
  const { keys, workspaces } = adminOf(own, { clock: () => Date.parse("2026-03-30T12:00:00Z") });
  const { workspace } = await workspaces.createWorkspace({ name: "one" });
  const { key } = await keys.createKey({ workspace: "one" });
  for (const [unit, start] of [
    ["day", "2026-03-29T00:00:00Z"],
    ["minute", "2026-03-29T12:00:00Z"],
    ["minute", "2026-03-29T23:30:00Z"],
  ])
    await own.query("insert into usage values ($1, $2, $3, $4, 1, 0, 0, 0, 0, 0)", [
      workspace?.id,
      unit,
      start,
      key?.id,
    ]);
  const { keys: listed } = await keys.listKeys({ workspace: "one", withUse: true });
  assert.deepEqual(listed[0]?.use?.lastUsedAt, at(Date.parse("2026-03-29T23:30:00Z")));
});
