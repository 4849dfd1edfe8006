import assert from "node:assert/strict";
import { test } from "vitest";
import type { Actor } from "../../../src/admin/audit.ts";
import { applyTiers } from "../../../src/admin/tiers.ts";
import type { LimitChange } from "../../../src/admin/workspaces/limits.ts";
import { createWorkspaces, type Workspaces } from "../../../src/admin/workspaces/workspaces.ts";
import { MAX_LIMIT } from "../../../src/config/tiers.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { OPERATOR } from "../../helpers/actors.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

const TIERS = [
  { name: "free", purchased: 0, limits: { requests_per_minute: 5, concurrent_requests: 1 } },
  { name: "unlimited", limits: {} },
];

async function open(t: Lifetime): Promise<{ workspaces: Workspaces; pool: Pool }> {
  const { pool } = await testDatabase(t);
  await applyTiers(pool, TIERS);
  return { workspaces: createWorkspaces(pool), pool };
}

test("creates a workspace with its account and finds it by name and by identifier", async (t) => {
  const { workspaces, pool } = await open(t);
  const made = await workspaces.create(OPERATOR, { name: "Acme.eu", kind: "organization" });
  assert.match(made.id, /^ws_[0-9a-f]{24}$/);
  assert.deepEqual(made, {
    id: made.id,
    name: "Acme.eu",
    kind: "organization",
    createdAt: made.createdAt,
    tier: "free",
    tierOverridden: false,
    limits: { requests_per_minute: 5, concurrent_requests: 1 },
    overriddenLimits: [],
    granted: 0n,
    purchased: 0n,
    held: 0n,
    purchasedTotal: 0n,
    running: 0,
    spendLimits: {},
  });
  assert.deepEqual(await workspaces.get(OPERATOR, "Acme.eu"), made);
  assert.deepEqual(await workspaces.get(OPERATOR, made.id), made);
  assert.deepEqual(await pool.query("select workspace_id, actor_kind, actor_id, action, details from audit"), [
    {
      workspace_id: made.id,
      actor_kind: "operator",
      actor_id: "tok_test",
      action: "workspace.create",
      details: { name: "Acme.eu", kind: "organization" },
    },
  ]);
});

test("refuses an invalid or taken name and writes nothing", async (t) => {
  const { workspaces, pool } = await open(t);
  const names = [
    "",
    "a b",
    "-a",
    ".a",
    "ws_1",
    "x".repeat(101),
    "a\0",
    "a\u001b[2J",
    "ä",
    "'; drop table accounts; --",
    "a/b",
    "a\n",
  ];
  for (const name of names) {
    await assert.rejects(
      workspaces.create(OPERATOR, { name, kind: "personal" }),
      { kind: "invalid_request", field: "name" },
      name,
    );
  }
  await workspaces.create(OPERATOR, { name: "x".repeat(100), kind: "personal" });
  const taken = Array.from({ length: 5 }, () => workspaces.create(OPERATOR, { name: "one", kind: "personal" }));
  const results = await Promise.allSettled(taken);
  assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
  for (const result of results) {
    if (result.status === "rejected") assert.equal(result.reason.field, "name");
  }
  const [counts] = await pool.query(
    `select (select count(*) from workspaces) as w, (select count(*) from accounts) as a,
       (select count(*) from audit) as n`,
  );
  assert.deepEqual(counts, { w: 2n, a: 2n, n: 2n });
});

test("gives an owner the same error for an unknown workspace and for another owner's", async (t) => {
  const { workspaces } = await open(t);
  const own = await workspaces.create(OPERATOR, { name: "own", kind: "personal" });
  const other = await workspaces.create(OPERATOR, { name: "other", kind: "personal" });
  const owner: Actor = { kind: "owner", id: "tok_owner", workspaceId: own.id };
  for (const nameOrId of ["", "own", own.id]) assert.equal((await workspaces.get(owner, nameOrId)).id, own.id);
  const unknown = (nameOrId: string) => ({
    kind: "unknown_entity",
    field: "workspace",
    message: `There is no workspace "${nameOrId}".`,
  });
  for (const nameOrId of ["other", other.id, "none"])
    await assert.rejects(workspaces.get(owner, nameOrId), unknown(nameOrId));
  for (const nameOrId of ["none", "' or 1=1 --", "ws_"])
    await assert.rejects(workspaces.get(OPERATOR, nameOrId), unknown(nameOrId));
  await assert.rejects(workspaces.get(OPERATOR, "a\0"), { kind: "unknown_entity" });
  await assert.rejects(workspaces.get(OPERATOR, ""), { kind: "invalid_request", field: "workspace" });
});

test("pages through every workspace once, ordered by name", async (t) => {
  const { workspaces } = await open(t);
  const names = ["b", "A", "a", "a-b", "a.b", "a_b", "Z", "0", "c1", "c10", "c2"];
  for (const name of names) await workspaces.create(OPERATOR, { name, kind: "personal" });
  const seen: string[] = [];
  let pageToken: string | undefined;
  do {
    const page = await workspaces.list({ pageSize: 3, ...(pageToken ? { pageToken } : {}) });
    seen.push(...page.workspaces.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken);
  assert.deepEqual(seen.toSorted(), names.toSorted());
  const all = await workspaces.list({});
  assert.deepEqual(
    all.workspaces.map(({ name }) => name),
    seen,
  );
  assert.equal(all.nextPageToken, undefined);
  for (const pageSize of [-1, 1_001, 0.5])
    await assert.rejects(workspaces.list({ pageSize }), { kind: "invalid_request", field: "page_size" });
  for (const pageToken of ["x", Buffer.from("' or 1=1").toString("base64url")])
    await assert.rejects(workspaces.list({ pageToken }), { kind: "invalid_request", field: "page_token" });
});

test("applies an overriding tier at once, until the override is removed", async (t) => {
  const { workspaces, pool } = await open(t);
  await workspaces.create(OPERATOR, { name: "w", kind: "personal" });
  const given = await workspaces.setTier(OPERATOR, "w", "unlimited");
  assert.deepEqual([given.tier, given.tierOverridden, given.limits], ["unlimited", true, {}]);
  await assert.rejects(workspaces.setTier(OPERATOR, "w", "gold"), {
    kind: "invalid_request",
    field: "tier",
    message: /free, unlimited/,
  });
  await assert.rejects(workspaces.setTier(OPERATOR, "none", "free"), { kind: "unknown_entity" });
  const back = await workspaces.setTier(OPERATOR, "w", "");
  assert.deepEqual([back.tier, back.tierOverridden, back.limits], ["free", false, TIERS[0]?.limits]);
  assert.deepEqual(await pool.query("select details from audit where action = 'tier.set' order by id"), [
    { details: { tier: "unlimited" } },
    { details: { tier: null } },
  ]);
});

test("overrides single limits, also with zero, and restores their defaults", async (t) => {
  const { workspaces } = await open(t);
  await workspaces.create(OPERATOR, { name: "w", kind: "personal" });
  const set = async (...changes: LimitChange[]) => {
    const { limits, overriddenLimits } = await workspaces.setLimits(OPERATOR, "w", changes);
    return [limits, overriddenLimits];
  };
  assert.deepEqual(
    await set({ name: "requests_per_minute", to: 0n }, { name: "output_tokens_per_month", to: BigInt(MAX_LIMIT) }),
    [
      { requests_per_minute: 0, output_tokens_per_month: MAX_LIMIT, concurrent_requests: 1 },
      ["output_tokens_per_month", "requests_per_minute"],
    ],
  );
  assert.deepEqual(
    await set({ name: "concurrent_requests", to: "unlimited" }, { name: "requests_per_minute", to: "default" }),
    [
      { requests_per_minute: 5, output_tokens_per_month: MAX_LIMIT },
      ["concurrent_requests", "output_tokens_per_month"],
    ],
  );
  await workspaces.setTier(OPERATOR, "w", "unlimited");
  assert.deepEqual(await set({ name: "requests_per_day", to: 3n }), [
    { output_tokens_per_month: MAX_LIMIT, requests_per_day: 3 },
    ["concurrent_requests", "output_tokens_per_month", "requests_per_day"],
  ]);
});

test("applies all overrides or none, and names the invalid one", async (t) => {
  const { workspaces, pool } = await open(t);
  const before = await workspaces.create(OPERATOR, { name: "w", kind: "personal" });
  const good: LimitChange = { name: "requests_per_minute", to: 1n };
  const wrong: [LimitChange[], string][] = [
    [[], "overrides"],
    [[good, { name: "requests_per_week", to: 1n }], "overrides[1].name"],
    [[good, { name: "a'b", to: 1n }], "overrides[1].name"],
    [[good, good], "overrides[1].name"],
    [[good, { name: "requests_per_day", to: -1n }], "overrides[1].value"],
    [[good, { name: "requests_per_day", to: BigInt(MAX_LIMIT) + 1n }], "overrides[1].value"],
    [[good, { name: "requests_per_day", to: 2n ** 63n - 1n }], "overrides[1].value"],
    [[good, { name: "requests_per_day", to: undefined }], "overrides[1]"],
  ];
  for (const [changes, field] of wrong)
    await assert.rejects(workspaces.setLimits(OPERATOR, "w", changes), { kind: "invalid_request", field }, field);
  await assert.rejects(workspaces.setLimits(OPERATOR, "none", [good]), { kind: "unknown_entity" });
  assert.deepEqual(await workspaces.get(OPERATOR, "w"), before);
  assert.equal((await pool.query("select from audit")).length, 1);
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const workspaces = createWorkspaces(pool);
  const calls = [
    workspaces.create(OPERATOR, { name: "w", kind: "personal" }),
    workspaces.list({}),
    workspaces.get(OPERATOR, "w"),
    workspaces.setTier(OPERATOR, "w", "free"),
    workspaces.setLimits(OPERATOR, "w", [{ name: "requests_per_day", to: 1n }]),
  ];
  await Promise.all(calls.map((call) => assert.rejects(call, { kind: "overloaded" })));
  await pool.end();
});
