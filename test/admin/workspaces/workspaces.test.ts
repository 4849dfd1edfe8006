import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  LimitName,
  LimitNameSchema,
  type Workspace,
  WorkspaceKind,
  WorkspaceSchema,
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Actor } from "../../../src/admin/shared/audit.ts";
import { applyTiers } from "../../../src/admin/tiers.ts";
import { MAX_LIMIT } from "../../../src/config/tiers.ts";
import { wordOf } from "../../../src/contract/json-names.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { type LimitChange, overridesOf } from "../../helpers/limits.ts";

const TIERS = [
  { name: "free", purchased: 0, limits: { requests_per_minute: 5, concurrent_requests: 1 } },
  { name: "unlimited", limits: {} },
];

type Workspaces = BackOffice["workspaces"];

async function open(t: Lifetime): Promise<{ workspaces: Workspaces; pool: Pool }> {
  const { pool } = await testDatabase(t);
  await applyTiers(pool, TIERS);
  return { workspaces: adminOf(pool).workspaces, pool };
}

async function make(workspaces: Workspaces, name: string, kind = WorkspaceKind.PERSONAL): Promise<Workspace> {
  const { workspace } = await workspaces.createWorkspace({ name, kind });
  return workspace ?? assert.fail("there is no workspace");
}

/** Limits of a workspace by the words for their names. */
function limitsOf({ limits }: Workspace): Record<string, number> {
  return Object.fromEntries(limits.map(({ name, value }) => [wordOf(LimitNameSchema, name), Number(value)]));
}

test("creates a workspace with its account and finds it by name and by identifier", async (t) => {
  const { workspaces, pool } = await open(t);
  const made = await make(workspaces, "Acme.eu", WorkspaceKind.ORGANIZATION);
  assert.ok(made.createdAt);
  assert.match(made.id, /^ws_[0-9a-f]{24}$/);
  const expected = create(WorkspaceSchema, {
    id: made.id,
    name: "Acme.eu",
    kind: WorkspaceKind.ORGANIZATION,
    createdAt: made.createdAt,
    tier: "free",
    tierOverridden: false,
    limits: made.limits,
    overriddenLimits: [],
    granted: "0",
    purchased: "0",
    held: "0",
    purchasedTotal: "0",
    running: 0,
    spendLimits: [],
  });
  assert.deepEqual(made, expected);
  assert.deepEqual(limitsOf(made), { requests_per_minute: 5, concurrent_requests: 1 });
  for (const workspace of ["Acme.eu", made.id])
    assert.deepEqual((await workspaces.getWorkspace({ workspace })).workspace, made);
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
    await assert.rejects(workspaces.createWorkspace({ name }), { kind: "invalid_request", field: "name" }, name);
  }
  await workspaces.createWorkspace({ name: "x".repeat(100) });
  const taken = Array.from({ length: 5 }, () => workspaces.createWorkspace({ name: "one" }));
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
  const own = await make(workspaces, "own");
  const other = await make(workspaces, "other");
  const owner: Actor = { kind: "owner", id: "tok_owner", workspaceId: own.id };
  const get = async (workspace: string, actor?: Actor) =>
    (await workspaces.getWorkspace({ workspace }, actor)).workspace?.id;
  for (const nameOrId of ["", "own", own.id]) assert.equal(await get(nameOrId, owner), own.id);
  const unknown = (nameOrId: string) => ({
    kind: "unknown_entity",
    field: "workspace",
    message: `There is no workspace "${nameOrId}".`,
  });
  for (const nameOrId of ["other", other.id, "none"]) await assert.rejects(get(nameOrId, owner), unknown(nameOrId));
  for (const nameOrId of ["none", "' or 1=1 --", "ws_"]) await assert.rejects(get(nameOrId), unknown(nameOrId));
  await assert.rejects(get("a\0"), { kind: "unknown_entity" });
  await assert.rejects(get(""), { kind: "invalid_request", field: "workspace" });
});

test("pages through every workspace once, ordered by name", async (t) => {
  const { workspaces } = await open(t);
  const names = ["b", "A", "a", "a-b", "a.b", "a_b", "Z", "0", "c1", "c10", "c2"];
  for (const name of names) await workspaces.createWorkspace({ name });
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await workspaces.listWorkspaces({ pageSize: 3, pageToken });
    seen.push(...page.workspaces.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  assert.deepEqual(seen.toSorted(), names.toSorted());
  const all = await workspaces.listWorkspaces({});
  assert.deepEqual(
    all.workspaces.map(({ name }) => name),
    seen,
  );
  assert.equal(all.nextPageToken, "");
  for (const pageSize of [-1, 1_001, 1.5])
    await assert.rejects(workspaces.listWorkspaces({ pageSize }), { kind: "invalid_request", field: "page_size" });
  for (const pageToken of ["x", Buffer.from("' or 1=1").toString("base64url")])
    await assert.rejects(workspaces.listWorkspaces({ pageToken }), { kind: "invalid_request", field: "page_token" });
});

test("applies an overriding tier at once, until the override is removed", async (t) => {
  const { workspaces, pool } = await open(t);
  await make(workspaces, "w");
  const set = async (tier: string) => {
    const { workspace } = await workspaces.setTier({ workspace: "w", tier });
    assert.ok(workspace);
    return [workspace.tier, workspace.tierOverridden, limitsOf(workspace)];
  };
  assert.deepEqual(await set("unlimited"), ["unlimited", true, {}]);
  await assert.rejects(set("gold"), {
    kind: "invalid_request",
    field: "tier",
    message: /free, unlimited/,
  });
  await assert.rejects(workspaces.setTier({ workspace: "none", tier: "free" }), { kind: "unknown_entity" });
  assert.deepEqual(await set(""), ["free", false, TIERS[0]?.limits]);
  assert.deepEqual(await pool.query("select details from audit where action = 'tier.set' order by id"), [
    { details: { tier: "unlimited" } },
    { details: { tier: null } },
  ]);
});

test("overrides single limits, also with zero, and restores their defaults", async (t) => {
  const { workspaces } = await open(t);
  await make(workspaces, "w");
  const set = async (...changes: LimitChange[]) => {
    const { workspace } = await workspaces.setLimits({ workspace: "w", overrides: overridesOf(changes) });
    assert.ok(workspace);
    return [limitsOf(workspace), workspace.overriddenLimits.map((name) => wordOf(LimitNameSchema, name))];
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
  await workspaces.setTier({ workspace: "w", tier: "unlimited" });
  assert.deepEqual(await set({ name: "requests_per_day", to: 3n }), [
    { output_tokens_per_month: MAX_LIMIT, requests_per_day: 3 },
    ["concurrent_requests", "output_tokens_per_month", "requests_per_day"],
  ]);
});

test("applies all overrides or none, and names the invalid one", async (t) => {
  const { workspaces, pool } = await open(t);
  const before = await make(workspaces, "w");
  const good: LimitChange = { name: "requests_per_minute", to: 1n };
  const set = (overrides: ReturnType<typeof overridesOf>, workspace = "w") =>
    workspaces.setLimits({ workspace, overrides });
  const wrong: [LimitChange[], string][] = [
    [[], "overrides"],
    [[good, { name: "requests_per_week", to: 1n }], "overrides[1].name"],
    [[good, good], "overrides[1].name"],
    [[good, { name: "requests_per_day", to: -1n }], "overrides[1].value"],
    [[good, { name: "requests_per_day", to: BigInt(MAX_LIMIT) + 1n }], "overrides[1].value"],
    [[good, { name: "requests_per_day", to: 2n ** 63n - 1n }], "overrides[1].value"],
  ];
  for (const [changes, field] of wrong)
    await assert.rejects(set(overridesOf(changes)), { kind: "invalid_request", field }, field);
  const value = { case: "value", value: 1n } as const;
  const unknown = [...overridesOf([good]), { name: 99 as LimitName, change: value }];
  await assert.rejects(set(unknown), { kind: "invalid_request", field: "overrides[1].name" });
  const empty = [...overridesOf([good]), { name: LimitName.REQUESTS_PER_DAY }];
  await assert.rejects(set(empty), { kind: "invalid_request", field: "overrides[1]" });
  await assert.rejects(set(overridesOf([good]), "none"), { kind: "unknown_entity" });
  assert.deepEqual((await workspaces.getWorkspace({ workspace: "w" })).workspace, before);
  assert.equal((await pool.query("select from audit")).length, 1);
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const { workspaces } = adminOf(pool);
  const calls = [
    workspaces.createWorkspace({ name: "w" }),
    workspaces.listWorkspaces({}),
    workspaces.getWorkspace({ workspace: "w" }),
    workspaces.getNextTier({ workspace: "w" }),
    workspaces.setTier({ workspace: "w", tier: "free" }),
    workspaces.setLimits({ workspace: "w", overrides: overridesOf([{ name: "requests_per_day", to: 1n }]) }),
    workspaces.createOwnerToken({ workspace: "w" }),
    workspaces.createSignInLink({ workspace: "w" }),
  ];
  await Promise.all(calls.map((call) => assert.rejects(call, { kind: "overloaded" })));
  await pool.end();
});
