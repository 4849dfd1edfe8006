import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { test } from "vitest";
import { applyTiers } from "../../src/admin/tiers.ts";
import { LIMIT_NAMES } from "../../src/config/tiers.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import { admitIn } from "../helpers/exchange.ts";
import { type LimitChange, overridesOf } from "../helpers/limits.ts";

const TIERS = [
  { name: "free", purchased: 0, limits: { requests_per_minute: 5, concurrent_requests: 1 } },
  { name: "1", purchased: 10, limits: { requests_per_minute: 50 } },
  { name: "2", purchased: 100.5, limits: { requests_per_minute: 500, input_tokens_per_day: 7 } },
  { name: "partner", limits: {} },
];

/** Tier and limits of each workspace, ordered by identifier. */
async function inForce(pool: Pool): Promise<unknown[]> {
  const rows = await pool.query<{ tier: string; limits: object }>(
    "select tier, limits from accounts order by workspace_id",
  );
  return rows.map(({ tier, limits }) => [tier, limits]);
}

test("moves a workspace to the last tier whose threshold it has reached as soon as a purchase is booked", async (t) => {
  const { pool } = await testDatabase(t);
  await applyTiers(pool, TIERS);
  const { credits, workspaces } = adminOf(pool);
  await workspaces.createWorkspace({ name: "w" });
  const steps: [string, string][] = [
    ["9.999999", "free"],
    ["0.000001", "1"],
    ["90.499999", "1"],
    ["0.000001", "2"],
    ["1000000000", "2"],
  ];
  assert.deepEqual(await inForce(pool), [["free", TIERS[0]?.limits]]);
  for (const [i, [amount, tier]] of steps.entries()) {
    await credits.purchase({ workspace: "w", amount, reference: `p${i}` });
    assert.deepEqual(await inForce(pool), [[tier, TIERS.find(({ name }) => name === tier)?.limits]]);
  }
});

test("does not raise the tier for grants, and counts purchased credit after it is spent", async (t) => {
  const { pool } = await testDatabase(t);
  await applyTiers(pool, TIERS);
  const { credits, workspaces } = adminOf(pool);
  const id = (await workspaces.createWorkspace({ name: "w" })).workspace?.id;
  await credits.grant({ workspace: "w", amount: "1000", reference: "g" });
  assert.deepEqual(await inForce(pool), [["free", TIERS[0]?.limits]]);
  await credits.purchase({ workspace: "w", amount: "10", reference: "p" });
  await pool.query("update accounts set granted_micro = 0, purchased_micro = 0");
  await pool.query("select refresh_limits($1)", [id]);
  assert.deepEqual(await inForce(pool), [["1", TIERS[1]?.limits]]);
});

test("applies a new configuration to every workspace and keeps overrides of limits and tiers", async (t) => {
  const { pool } = await testDatabase(t);
  await applyTiers(pool, TIERS);
  // More than one batch.
  await pool.query(
    "insert into accounts (workspace_id) select 'ws_' || lpad(i::text, 5, '0') from generate_series(1, 1203) i",
  );
  await pool.query("update accounts set purchased_total_micro = 10000000 where workspace_id > 'ws_01200'");
  await pool.query(
    `update accounts set overrides = '{"requests_per_minute": 7, "concurrent_requests": null}'
     where workspace_id = 'ws_01201'`,
  );
  await pool.query("update accounts set tier_override = 'partner' where workspace_id = 'ws_01202'");
  await applyTiers(pool, TIERS);
  const before = await inForce(pool);
  assert.equal(before.filter((of) => isDeepStrictEqual(of, ["free", TIERS[0]?.limits])).length, 1200);
  assert.deepEqual(before.slice(-3), [
    ["1", { requests_per_minute: 7 }],
    ["partner", {}],
    ["1", { requests_per_minute: 50 }],
  ]);
  const changed = [
    { name: "zero", purchased: 0, limits: { requests_per_minute: 0 } },
    { name: "1", purchased: 10, limits: { requests_per_day: 8 } },
  ];
  const versions = "select xmin::text from accounts order by workspace_id";
  await applyTiers(pool, changed);
  const after = await inForce(pool);
  assert.equal(after.filter((of) => isDeepStrictEqual(of, ["zero", { requests_per_minute: 0 }])).length, 1200);
  assert.deepEqual(after.slice(-3), [
    ["1", { requests_per_minute: 7, requests_per_day: 8 }],
    ["1", { requests_per_day: 8 }],
    ["1", { requests_per_day: 8 }],
  ]);
  const rows = await pool.query(versions);
  await applyTiers(pool, changed);
  assert.deepEqual(await pool.query(versions), rows, "writes no account when nothing changes");
});

test("refuses every request for each limit that is zero, and names the limit", async (t) => {
  const { pool } = await testDatabase(t);
  const { credits, workspaces } = adminOf(pool);
  const id = (await workspaces.createWorkspace({ name: "w" })).workspace?.id ?? "";
  await credits.grant({ workspace: "w", amount: "1", reference: "g" });
  const set = (change: LimitChange) => workspaces.setLimits({ workspace: "w", overrides: overridesOf([change]) });
  for (const name of LIMIT_NAMES) {
    await set({ name, to: 0n });
    const verdict = await admitIn(pool, id, name, { hold: 1 });
    assert.deepEqual([verdict?.refusal, verdict?.limit], ["rate_limited", name]);
    await set({ name, to: "default" });
  }
  assert.equal(await admitIn(pool, id, "last", { hold: 1 }), undefined);
});

test("applies tiers when several replicas start at once while purchases are booked", async (t) => {
  const { pool, url } = await testDatabase(t);
  const { credits, workspaces } = adminOf(pool);
  for (let i = 0; i < 20; i++) await workspaces.createWorkspace({ name: `w${i}` });
  const replicas = Array.from({ length: 4 }, () => openPool(url, { max: 1 }));
  const bookings = Array.from({ length: 20 }, (_, i) =>
    credits.purchase({ workspace: `w${i}`, amount: "10", reference: "p" }),
  );
  await Promise.all([...replicas.map((replica) => applyTiers(replica, TIERS)), ...bookings]);
  await Promise.all(replicas.map((replica) => replica.end()));
  assert.deepEqual(
    await inForce(pool),
    Array.from({ length: 20 }, () => ["1", { requests_per_minute: 50 }]),
  );
  assert.deepEqual(await pool.query("select name, place, threshold_micro from tiers order by place"), [
    { name: "free", place: 0, threshold_micro: 0n },
    { name: "1", place: 1, threshold_micro: 10_000_000n },
    { name: "2", place: 2, threshold_micro: 100_500_000n },
    { name: "partner", place: 3, threshold_micro: null },
  ]);
});
