import assert from "node:assert/strict";
import { test } from "vitest";
import { createKeys } from "../../../src/admin/keys/keys.ts";
import { createOwners } from "../../../src/admin/sign-in/tokens.ts";
import { createWorkspaces } from "../../../src/admin/workspaces/workspaces.ts";
import { createSecret, hashSecret, isWellFormed } from "../../../src/admission/secret.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { OPERATOR } from "../../helpers/actors.ts";
import { testDatabase } from "../../helpers/database.ts";
import { until } from "../../helpers/until.ts";

const REFUSED = {
  kind: "unauthenticated",
  message: "The call needs a valid operator or owner token, as Authorization: Bearer <token>.",
};

test("accepts operator tokens for every call and owner tokens only for calls that owners may make", async (t) => {
  const { pool } = await testDatabase(t);
  const owners = createOwners(pool);
  const operator = createSecret("op_");
  await pool.query("insert into operator_tokens (secret_hash) values ($1)", [hashSecret(operator)]);
  const { id } = await createWorkspaces(pool).create(OPERATOR, { name: "w", kind: "personal" });
  const owner = await owners.createToken(OPERATOR, { workspace: "w" });
  assert.ok(isWellFormed(owner.token, "ow_"));
  assert.equal(owner.workspace, id);
  for (const needs of ["operator", "owner"] as const) {
    assert.equal((await owners.authenticate(operator, needs)).kind, "operator");
  }
  assert.deepEqual(await owners.authenticate(owner.token, "owner"), { kind: "owner", id: owner.id, workspaceId: id });
  await assert.rejects(owners.authenticate(owner.token, "operator"), { kind: "missing_scope", message: /operator/ });
  const { secret } = await createKeys(pool).create(OPERATOR, { workspace: "w" });
  for (const wrong of [undefined, "", secret, `${operator} `, owner.token.slice(0, -1), "x".repeat(1_000), "a\0b"]) {
    await assert.rejects(owners.authenticate(wrong, "owner"), REFUSED);
    await assert.rejects(owners.authenticate(wrong, "operator"), REFUSED);
  }
});

test("replaces the earlier owner token at once and stores only its hash", async (t) => {
  const { pool } = await testDatabase(t);
  const owners = createOwners(pool);
  await createWorkspaces(pool).create(OPERATOR, { name: "w", kind: "personal" });
  const made = await Promise.all(Array.from({ length: 5 }, () => owners.createToken(OPERATOR, { workspace: "w" })));
  const good = await Promise.allSettled(made.map(({ token }) => owners.authenticate(token, "owner")));
  assert.equal(good.filter(({ status }) => status === "fulfilled").length, 1);
  const last = await owners.createToken(OPERATOR, { workspace: "w" });
  for (const { token } of made) await assert.rejects(owners.authenticate(token, "owner"), REFUSED);
  await owners.authenticate(last.token, "owner");
  const [row] = await pool.query<{ text: string }>(
    `select (select string_agg(o::text, ' ') from owner_tokens o)
       || (select string_agg(a::text, ' ') from audit a) as text`,
  );
  for (const { token } of [...made, last]) assert.ok(!row?.text.includes(token.slice(9)));
  assert.ok(row?.text.includes(last.id));
});

test("refuses a replaced or deleted token within a second in another process, under constant use", async (t) => {
  const { pool } = await testDatabase(t);
  const owners = createOwners(pool);
  await createWorkspaces(pool).create(OPERATOR, { name: "w", kind: "personal" });
  const { token } = await owners.createToken(OPERATOR, { workspace: "w" });
  const operator = createSecret("op_");
  await pool.query("insert into operator_tokens (secret_hash) values ($1)", [hashSecret(operator)]);
  const replica = createOwners(pool);
  await Promise.all([token, operator].map((secret) => replica.authenticate(secret, "owner")));
  await owners.createToken(OPERATOR, { workspace: "w" });
  await pool.query("delete from operator_tokens");
  const changed = performance.now();
  for (const secret of [token, operator]) {
    await until(() =>
      replica.authenticate(secret, "owner").then(
        () => false,
        () => true,
      ),
    );
  }
  // A cached look-up counts for half a second; a busy machine adds some.
  assert.ok(performance.now() - changed < 5_000, `${performance.now() - changed} ms`);
});

test("does not cache a look-up that began before the token was replaced", async (t) => {
  const { pool } = await testDatabase(t);
  await createWorkspaces(pool).create(OPERATOR, { name: "w", kind: "personal" });
  const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow: Pool = {
    ...pool,
    async query(text, values) {
      const rows = await pool.query(text, values);
      reached.resolve();
      await go.promise;
      return rows as never;
    },
  };
  const owners = createOwners(slow);
  const { token } = await owners.createToken(OPERATOR, { workspace: "w" });
  const early = owners.authenticate(token, "owner");
  await reached.promise;
  await owners.createToken(OPERATOR, { workspace: "w" });
  go.resolve();
  await early;
  await assert.rejects(owners.authenticate(token, "owner"), REFUSED);
});

test("sends few statements for a flood of invented tokens, and none of them delays a token in use", async (t) => {
  const { pool } = await testDatabase(t);
  const operator = createSecret("op_");
  await pool.query("insert into operator_tokens (secret_hash) values ($1)", [hashSecret(operator)]);
  const known = new Set([hashSecret(operator).toString("hex")]);
  let statements = 0;
  const stopped = Promise.withResolvers<void>();
  let stops = false;
  const counted: Pool = {
    ...pool,
    async query(text, values) {
      statements++;
      const hashes = values?.[0] as Buffer[];
      if (stops && !hashes.some((hash) => known.has(hash.toString("hex")))) await stopped.promise;
      return pool.query(text, values);
    },
  };
  let now = Date.UTC(2026, 0, 1);
  const owners = createOwners(counted, () => now);
  await owners.authenticate(operator, "operator");
  const flood = async (count: number) =>
    Promise.allSettled(Array.from({ length: count }, () => owners.authenticate(createSecret("op_"), "operator")));
  const refused = await flood(5_000);
  assert.ok(refused.every((one) => one.status === "rejected" && one.reason.kind === "unauthenticated"));
  assert.ok(statements <= 12, String(statements));
  stops = true;
  now += 3_600_000;
  const waiting = flood(11_001);
  await owners.authenticate(operator, "operator");
  await assert.rejects(owners.authenticate(createSecret("ow_"), "owner"), { kind: "overloaded", retryAfterMs: 1_000 });
  stopped.resolve();
  const kinds = new Set((await waiting).map((one) => one.status === "rejected" && one.reason.kind));
  assert.deepEqual(kinds, new Set(["unauthenticated", "overloaded"]));
});

test("refuses an owner token from its expiry on", async (t) => {
  const { pool } = await testDatabase(t);
  let now = Date.UTC(2026, 0, 1);
  const owners = createOwners(pool, () => now);
  await createWorkspaces(pool).create(OPERATOR, { name: "w", kind: "personal" });
  const expiresAt = new Date(now + 60_000);
  const { token } = await owners.createToken(OPERATOR, { workspace: "w", expiresAt });
  now += 59_999;
  await owners.authenticate(token, "owner");
  now += 1;
  await assert.rejects(owners.authenticate(token, "owner"), REFUSED);
  for (const past of [new Date(now), new Date(Number.NaN), new Date(8.64e15)]) {
    await assert.rejects(owners.createToken(OPERATOR, { workspace: "w", expiresAt: past }), {
      kind: "invalid_request",
      field: "expires_at",
    });
  }
  await assert.rejects(owners.createToken(OPERATOR, { workspace: "none" }), { kind: "unknown_entity" });
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const owners = createOwners(pool);
  await assert.rejects(owners.authenticate("x", "owner"), { kind: "overloaded" });
  await assert.rejects(owners.createToken(OPERATOR, { workspace: "w" }), { kind: "overloaded" });
  await pool.end();
});
