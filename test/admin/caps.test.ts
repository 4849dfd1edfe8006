import assert from "node:assert/strict";
import { CapAction, CapFigure, CapPeriod } from "../../gen/chorus/v1/generation_pb.js";
import type { Role } from "../../src/contract/roles.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { postOf, recordIn } from "../helpers/exchange.ts";
import { test } from "../helpers/fixtures.ts";

const NOW = new Date("2026-11-25T10:00:00Z");
const HOUR = 3_600_000;
let count = 0;

/** A workspace whose user `u` and team `a` have used 3 credits today. */
async function openCaps(pool: Pool) {
  const workspace = `ws_caps_${++count}`;
  const admin = adminOf(pool, { clock: () => NOW.getTime() });
  await pool.query("insert into workspaces (id, name) values ($1, $1)", [workspace]);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ($1, 1000000000)", [workspace]);
  const row = { created_at: NOW, end_user: "u", tags: { team: "a" }, outcome: "ok", input_tokens: 7 };
  await recordIn(pool, workspace, [postOf("req_1", { charge: 3_000_000, output: 5, ...row })]);
  await pool.query("update periods set at = $2, clock = $2 where workspace_id = $1", [workspace, NOW]);
  const set = (subject: string, figure: CapFigure, period: CapPeriod, amount: number, more: object = {}) =>
    admin.caps.setCap({ workspace, cap: { subject, figure, period, amount: String(amount), ...more } });
  return { workspace, set, ...admin };
}

const soon = { endsAt: { seconds: BigInt((NOW.getTime() + HOUR) / 1_000) } };

test("lists caps with their use, by the start of their subject", async ({ database: { pool } }) => {
  const { workspace, set, caps } = await openCaps(pool);
  await set("user:*", CapFigure.CREDITS, CapPeriod.DAY, 5);
  await set("user:u", CapFigure.CREDITS, CapPeriod.DAY, 2.5);
  await set("user:u", CapFigure.CREDITS, CapPeriod.DAY, 4, soon);
  await set("user:u", CapFigure.OUTPUT_TOKENS, CapPeriod.MONTH, 9, { action: CapAction.LOW });
  await set("user:u", CapFigure.CONCURRENT_REQUESTS, CapPeriod.UNSPECIFIED, 2);
  await set("tag:team=a", CapFigure.REQUESTS, CapPeriod.TOTAL, 10);
  await pool.query(`insert into caps values ($1, 'cap_ended', 'user:v', 'requests', 'day', 1, 'refuse', $2, $2)`, [
    workspace,
    new Date(NOW.getTime() - HOUR),
  ]);
  const list = async (search: string, pageSize = 100) => {
    const rows: (readonly [string, string, string | undefined])[] = [];
    let pageToken = "";
    do {
      const page = await caps.listCaps({ workspace, search, withUse: true, pageSize, pageToken });
      rows.push(...page.caps.map(({ subject, amount, used }) => [subject, amount, used] as const));
      ({ nextPageToken: pageToken } = page);
    } while (pageToken !== "");
    return rows;
  };
  assert.deepEqual(await list("user:"), [
    ["user:*", "5", undefined],
    ["user:u", "2", "0"],
    ["user:u", "2.5", "3"],
    ["user:u", "4", "3"],
    ["user:u", "9", "5"],
    ["user:v", "1", undefined],
  ]);
  assert.deepEqual(await list("user:", 1), await list("user:"));
  assert.deepEqual(await list("tag:team="), [["tag:team=a", "10", "1"]]);
  assert.deepEqual(await list("key:"), []);
  const { caps: bare } = await caps.listCaps({ workspace });
  assert.deepEqual([bare.length, bare.every(({ used }) => used === undefined)], [7, true]);
});

test("quotas of a caller have the caps of its key, its tags and the user, with templates and raises", async ({
  database: { pool },
}) => {
  const { workspace, set, quotas, usage, keys } = await openCaps(pool);
  const { key } = await keys.createKey({ workspace, tags: { fixed: { team: "a" } } });
  assert.ok(key);
  await set("key:*", CapFigure.REQUESTS, CapPeriod.DAY, 10);
  await set(`key:${key.id}`, CapFigure.REQUESTS, CapPeriod.DAY, 20);
  await set(`key:${key.id}`, CapFigure.REQUESTS, CapPeriod.DAY, 30, soon);
  await set("key:*", CapFigure.CREDITS, CapPeriod.TOTAL, 7, { action: CapAction.LOW });
  await set("tag:team=*", CapFigure.CREDITS, CapPeriod.MONTH, 4);
  await set("user:*", CapFigure.OUTPUT_TOKENS, CapPeriod.WEEK, 50);
  const caller = { workspaceId: workspace, workspace, keyId: key.id, scopes: [], fixedTags: { team: "a" } };
  const found = async (user: string) => {
    const { caps } = await quotas(caller, { user });
    return caps.map(({ subject, limit, used, remaining }) => [subject, limit, used, remaining]);
  };
  const own = [
    [`key:${key.id}`, 7, 0, 7],
    [`key:${key.id}`, 30, 0, 30],
    ["tag:team=a", 4, 3, 1],
  ];
  assert.deepEqual(await found(""), own);
  assert.deepEqual(await found("u"), [...own, ["user:u", 50, 5, 45]]);
  await assert.rejects(quotas(caller, { user: "a\nb" }), { kind: "invalid_request", field: "user" });
  const { quotas: ofTag } = await usage.getQuotas({ workspace, subject: "tag:team=a" });
  assert.deepEqual(
    ofTag?.caps.map(({ subject, used }) => [subject, used]),
    [["tag:team=a", 3]],
  );
  assert.deepEqual((await usage.getQuotas({ workspace })).quotas?.caps, []);
});

test("a developer's cap lowers what an owner sets before or after it, and never raises it", async ({
  database: { pool },
}) => {
  const { workspace, set, caps, usage, keys } = await openCaps(pool);
  await pool.query("insert into people values ('per_caps', 'https://id', 'ann', 'Ann', '', $1)", [NOW]);
  await pool.query("insert into members values ($1, 'per_caps', 'developer', false, $2)", [workspace, NOW]);
  const as = (role: Role) => ({ kind: "member", id: "per_caps", workspaceId: workspace, role }) as const;
  const ann = as("developer");
  const { key } = await keys.createKey({ name: "hers" }, ann);
  const subject = `key:${key?.id}`;
  const cap = (amount: string, more: object = {}) => ({
    cap: { subject, figure: CapFigure.INPUT_TOKENS, period: CapPeriod.DAY, amount, ...more },
  });
  const limit = async () => (await usage.getQuotas({ workspace, subject })).quotas?.caps.map(({ limit }) => limit);
  await caps.setCap(cap("1000"), ann);
  await caps.setCap(cap("2000", soon), ann);
  assert.deepEqual(await limit(), [2000]);
  await set("key:*", CapFigure.INPUT_TOKENS, CapPeriod.DAY, 50);
  assert.deepEqual(await limit(), [50]);
  await caps.setCap(cap("5"), as("owner"));
  assert.deepEqual(await limit(), [5]);
  await caps.setCap(cap("4", soon), ann);
  assert.deepEqual(await limit(), [4]);
  await assert.rejects(caps.setCap(cap("6", soon), ann), { field: "cap.amount" });
  // Ann set this one before she was a developer.
  await assert.rejects(caps.setCap(cap("3"), ann), { kind: "missing_scope" });
});

test("changes a cap of a workspace that has 1,000 caps, and sets no further one", async ({ database: { pool } }) => {
  const { workspace, set } = await openCaps(pool);
  await pool.query(
    `insert into caps select $1, 'cap_' || i, 'user:' || i, 'credits', 'day', 1, 'refuse', null, $2
     from generate_series(1, 1000) i`,
    [workspace, NOW],
  );
  assert.equal((await set("user:7", CapFigure.CREDITS, CapPeriod.DAY, 2)).cap?.amount, "2");
  await assert.rejects(set("user:7", CapFigure.CREDITS, CapPeriod.DAY, 3, soon), { field: "cap" });
  await assert.rejects(set("user:new", CapFigure.CREDITS, CapPeriod.DAY, 2), { field: "cap" });
  await pool.query("update caps set ends_at = $2 where workspace_id = $1 and id = 'cap_8'", [workspace, NOW]);
  await set("user:new", CapFigure.CREDITS, CapPeriod.DAY, 2);
  await assert.rejects(set("user:newer", CapFigure.CREDITS, CapPeriod.DAY, 2), { field: "cap" });
});

test("finds the requests of a tag", async ({ database: { pool } }) => {
  const { workspace, activity } = await openCaps(pool);
  const rows = ["b", "a=b", "a"].map((team, i) =>
    postOf(`req_tag_${i}`, { charge: 1, created_at: NOW, tags: { team } }),
  );
  await recordIn(pool, workspace, rows);
  for (const [tag, expected] of [
    ["team=a", 2],
    ["team=a=b", 1],
    ["team=c", 0],
    ["other=a", 0],
  ] as const) {
    const { generations } = await activity.listGenerations({ workspace, tag });
    assert.equal(generations.length, expected, tag);
    for (const { tags } of generations) assert.equal(`team=${tags.team}`, tag);
  }
});
