import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { ActorKind, AnswerShape, GenerationSchema, Outcome } from "../../gen/chorus/admin/v1/activity_pb.js";
import { Effort, FinishReason } from "../../gen/chorus/v1/generation_pb.js";
import { record, WHOLE_SERVICE } from "../../src/admin/shared/audit.ts";
import { adminOf, type BackOffice } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import { openWithGenerations, START } from "../helpers/generations.ts";

type Filter = Parameters<BackOffice["activity"]["listGenerations"]>[0];

const at = (ms: number) => timestampFromDate(new Date(ms));
const outcome = (value: Outcome) => ({ ended: { case: "outcome", value } }) as const;
const failure = (value: string) => ({ ended: { case: "failureCode", value } }) as const;

async function all(activity: BackOffice["activity"], filter: Filter, pageSize: number) {
  const found: string[] = [];
  let pages = 0;
  for (let pageToken = ""; pageToken !== "" || pages === 0; ) {
    const page = await activity.listGenerations({ workspace: "one", pageSize, pageToken, ...filter });
    assert.ok(page.generations.length <= pageSize);
    found.push(...page.generations.map(({ id }) => id));
    assert.equal(page.searchedTo === undefined, page.nextPageToken === "");
    pageToken = page.nextPageToken;
    assert.ok(++pages < 100);
  }
  return { found, pages };
}

test("pages through every request of a workspace once, newest first, across the end of a month", async (t) => {
  const { activity } = await openWithGenerations(t);
  const { found, pages } = await all(activity, {}, 100);
  const expected = Array.from({ length: 3_000 }, (_, i) => i).filter((i) => i % 7 !== 6);
  assert.equal(pages, Math.ceil(expected.length / 100));
  // Requests of the same second are ordered by identifier.
  const order = expected.toSorted(
    (a, b) => Math.floor(b / 3) - Math.floor(a / 3) || (`gen_${a}` < `gen_${b}` ? 1 : -1),
  );
  assert.deepEqual(
    found,
    order.map((i) => `gen_${i}`),
  );
});

test("returns a request with its key and figures, without the fields for operators", async (t) => {
  const { activity } = await openWithGenerations(t, 10);
  const { generations } = await activity.listGenerations({ workspace: "one", keyId: "key_9" });
  assert.deepEqual(generations, [
    create(GenerationSchema, {
      id: "gen_9",
      requestId: "req_9",
      at: at(START + 3_000),
      keyId: "key_9",
      keyName: "name 9",
      streamed: false,
      shape: AnswerShape.TEXT,
      effort: Effort.AUTO,
      level: Effort.LOW,
      inputTokens: 10n,
      outputTokens: 20n,
      cachedTokens: 5n,
      credits: "1.5",
      latencyMs: 9,
      outcome: Outcome.OK,
      finishReason: FinishReason.STOP,
      modelCalls: 4,
    }),
  ]);
});

test("returns the requests that match all filters", async (t) => {
  const { activity, pool } = await openWithGenerations(t);
  await pool.query("update generations set end_user = 'u', tags = '{\"team\": \"a\"}' where id = 'gen_8'");
  const own = Array.from({ length: 3_000 }, (_, i) => i).filter((i) => i % 7 !== 6);
  const failed = (i: number) => i % 50 === 0;
  const left = (i: number) => !failed(i) && i % 75 === 1;
  const cases: [Filter, (i: number) => boolean][] = [
    [{ keyId: "key_3" }, (i) => i % 10 === 3],
    [outcome(Outcome.OK), (i) => !failed(i) && !left(i)],
    [failure("upstream_failed"), failed],
    [outcome(Outcome.CALLER_GONE), left],
    [outcome(Outcome.FAILED), (i) => failed(i) || (left(i) && i % 2 === 1)],
    [{ ...outcome(Outcome.FAILED), keyId: "key_0" }, (i) => failed(i) && i % 10 === 0],
    [{ level: Effort.HIGH }, (i) => i === 5],
    [{ level: Effort.MEDIUM }, () => false],
    [failure("timed_out"), () => false],
    [{ startTime: at(START + 100_000), endTime: at(START + 200_000), level: Effort.LOW }, (i) => i >= 300 && i < 600],
    [{ keyId: "key_none" }, () => false],
    [{ user: "u" }, (i) => i === 8],
    [{ user: "v" }, () => false],
  ];
  for (const [i, [filter, keeps]] of cases.entries()) {
    const { found } = await all(activity, filter, 1_000);
    const expected = own.filter(keeps).map((i) => `gen_${i}`);
    assert.deepEqual(found.toSorted(), expected.toSorted(), `case ${i}`);
  }
});

test("shows for whom a request was made", async (t) => {
  const { activity, pool } = await openWithGenerations(t, 2);
  await pool.query("update generations set end_user = 'u', tags = '{\"team\": \"a\"}' where id = 'gen_1'");
  const { generations } = await activity.listGenerations({ workspace: "one" });
  assert.deepEqual(
    generations.map(({ id, user, tags }) => [id, user, { ...tags }]),
    [
      ["gen_1", "u", { team: "a" }],
      ["gen_0", "", {}],
    ],
  );
});

test("searches in bounded steps, and ends, when few requests match a filter", async (t) => {
  const { activity } = await openWithGenerations(t, 30_000);
  const first = await activity.listGenerations({ workspace: "one", level: Effort.HIGH });
  assert.deepEqual(first.generations, []);
  assert.ok(first.nextPageToken && first.searchedTo);
  const { found, pages } = await all(activity, { level: Effort.HIGH }, 100);
  assert.deepEqual(found, ["gen_5"]);
  assert.equal(pages, 3);
});

test("refuses an invalid filter and names its field", async (t) => {
  const { activity } = await openWithGenerations(t, 1);
  for (const [request, field] of [
    [{ level: Effort.AUTO }, "level"],
    [{ level: 99 as Effort }, "level"],
    [outcome(99 as Outcome), "outcome"],
    [failure("'; drop table generations"), "outcome"],
    [{ keyId: "\0" }, "key_id"],
    [{ user: "\0" }, "user"],
    [{ pageSize: 1_001 }, "page_size"],
    [{ pageToken: "nonsense" }, "page_token"],
  ] as const) {
    await assert.rejects(activity.listGenerations({ workspace: "one", ...request }), {
      kind: "invalid_request",
      field,
    });
  }
});

test("returns the audit in pages, newest first", async (t) => {
  const { pool, activity } = await openWithGenerations(t, 1);
  await pool.query(
    `insert into audit (workspace_id, at, actor_kind, actor_id, action, details)
     select 'ws_1', to_timestamp(${START / 1_000} + i / 3 + 0.000001), 'owner', 'tok_1', 'test.' || i, '{"name": "<b>"}'
     from generate_series(0, 249) i`,
  );
  const actions: string[] = [];
  for (let pageToken = ""; actions.length === 0 || pageToken !== ""; ) {
    const page = await activity.listAudit({ workspace: "one", pageSize: 100, pageToken });
    actions.push(...page.entries.map(({ action }) => action));
    assert.equal(page.entries[0]?.details, '{"name": "<b>"}');
    pageToken = page.nextPageToken;
  }
  assert.deepEqual(
    actions,
    Array.from({ length: 250 }, (_, i) => `test.${249 - i}`),
  );
  assert.deepEqual((await activity.listAudit({ workspace: "two" })).entries, []);
});

test("returns the changes that match a filter, and searches in bounded steps", async (t) => {
  const { pool, activity } = await openWithGenerations(t, 1);
  await pool.query(
    `insert into audit (workspace_id, at, actor_kind, actor_id, action)
     select 'ws_1', to_timestamp(${START / 1_000} + i), (array['owner', 'member', 'operator'])[1 + i % 3],
       'tok_' || i % 2, case when i = 5 then 'key.create' when i = 15000 then 'keys.none' else 'limits.set' end
     from generate_series(0, 24999) i`,
  );
  type AuditFilter = Parameters<BackOffice["activity"]["listAudit"]>[0];
  const list = async (filter: AuditFilter) => {
    const found: number[] = [];
    let pages = 0;
    for (let pageToken = ""; pageToken !== "" || pages === 0; ) {
      const page = await activity.listAudit({ workspace: "one", pageSize: 1_000, pageToken, ...filter });
      found.push(...page.entries.map(({ at }) => Number(at?.seconds) - START / 1_000));
      assert.equal(page.searchedTo === undefined, page.nextPageToken === "");
      pageToken = page.nextPageToken;
      assert.ok(++pages < 100);
    }
    return { found, pages };
  };
  assert.deepEqual(await list({ action: "key" }), { found: [5], pages: 3 });
  assert.deepEqual((await list({ action: "keys.none" })).found, [15_000]);
  assert.deepEqual((await list({ action: "key.revoke" })).found, []);
  const period = { startTime: at(START + 10_000), endTime: at(START + 22_000) };
  const expected = Array.from({ length: 12 }, (_, i) => 21 - i);
  assert.deepEqual((await list(period)).found, expected);
  const ofMembers = await list({ ...period, actorKind: ActorKind.MEMBER });
  assert.deepEqual(ofMembers, { found: expected.filter((i) => i % 3 === 1), pages: 1 });
  assert.deepEqual(
    (await list({ ...period, actorId: "tok_1", action: "limits" })).found,
    expected.filter((i) => i % 2),
  );
  assert.equal((await list({ actorId: "tok_1" })).found.length, 12_500);
  for (const [filter, field] of [
    [{ action: "key." }, "action"],
    [{ action: "k%" }, "action"],
    [{ actorKind: 99 as ActorKind }, "actor_kind"],
    [{ actorId: "\0" }, "actor_id"],
    [{ actorId: "x".repeat(201) }, "actor_id"],
    [{ startTime: { seconds: -(10n ** 12n) } }, "from"],
  ] as const)
    await assert.rejects(activity.listAudit({ workspace: "one", ...filter }), { kind: "invalid_request", field });
});

test("hides the paths of webhooks, which may be secrets, that earlier versions recorded", async (t) => {
  const { pool, activity } = await openWithGenerations(t, 1);
  const given = [
    ["https://ann:word@hooks.example.com:8443/services/T0/secret?a=b", "https://hooks.example.com:8443"],
    ["https://hooks.example.com", "https://hooks.example.com"],
    ["mailto:ann@example.com,bob@example.com", "mailto:ann@example.com,bob@example.com"],
    ["no address", ""],
  ] as const;
  const owner = { kind: "owner", id: "tok_1", workspaceId: "ws_1" } as const;
  for (const [webhookUrl] of given) {
    await record(pool.query, owner, "ws_1", "alerts.set", { webhookUrl, spendShare: 0.5 });
  }
  const { entries } = await activity.listAudit({ workspace: "one", action: "alerts.set" });
  assert.deepEqual(
    entries.map(({ details }) => JSON.parse(details)).reverse(),
    given.map(([, webhookUrl]) => ({ webhookUrl, spendShare: 0.5 })),
  );
});

test("returns every change of all workspaces and of the service to an operator who names no workspace", async (t) => {
  const { pool } = await testDatabase(t);
  const office = adminOf(pool);
  await office.workspaces.createWorkspace({ name: "one" });
  await office.workspaces.createWorkspace({ name: "two" });
  await office.credits.purchase({ workspace: "one", amount: "5", reference: "INV-1" });
  await office.workspaces.setTier({ workspace: "two", tier: "" });
  const { key } = await office.keys.createKey({ workspace: "two" });
  await office.keys.revokeKey({ id: key?.id ?? "" });
  await record(pool.query, { kind: "service", id: "reload" }, WHOLE_SERVICE, "settings.reload", {
    changed: ["models"],
  });
  const changes: [workspace: string, action: string][] = [];
  for (let pageToken = ""; changes.length === 0 || pageToken !== ""; ) {
    const page = await office.activity.listAudit({ pageSize: 2, pageToken });
    changes.push(...page.entries.map(({ workspace = "", action = "" }) => [workspace, action] as [string, string]));
    pageToken = page.nextPageToken ?? "";
  }
  assert.deepEqual(changes.reverse(), [
    ["one", "workspace.create"],
    ["two", "workspace.create"],
    ["one", "credit.purchase"],
    ["two", "tier.set"],
    ["two", "key.create"],
    ["two", "key.revoke"],
    ["", "settings.reload"],
  ]);
});
