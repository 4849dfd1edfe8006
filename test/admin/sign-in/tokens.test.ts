import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { createTokens } from "../../../src/admin/sign-in/tokens.ts";
import { createSecret, hashSecret, isWellFormed } from "../../../src/admission/secret.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import { until } from "../../helpers/until.ts";

const REFUSED = {
  kind: "unauthenticated",
  message: "The call needs a valid operator or owner token, as Authorization: Bearer <token>.",
};

test("accepts operator tokens for every call and owner tokens only for calls that owners may make", async (t) => {
  const { pool } = await testDatabase(t);
  const { authorizeActor, workspaces, keys } = adminOf(pool);
  const operator = createSecret("op_");
  await pool.query("insert into operator_tokens (secret_hash) values ($1)", [hashSecret(operator)]);
  const id = (await workspaces.createWorkspace({ name: "w" })).workspace?.id;
  const owner = await workspaces.createOwnerToken({ workspace: "w" });
  assert.ok(isWellFormed(owner.token, "ow_"));
  assert.equal(owner.workspace?.id, id);
  for (const needs of ["operator", "owner"] as const) {
    assert.equal((await authorizeActor(operator, needs)).kind, "operator");
  }
  assert.deepEqual(await authorizeActor(owner.token, "owner"), { kind: "owner", id: owner.id, workspaceId: id });
  await assert.rejects(authorizeActor(owner.token, "operator"), { kind: "missing_scope", message: /operator/ });
  const { secret } = await keys.createKey({ workspace: "w" });
  for (const wrong of [undefined, "", secret, `${operator} `, owner.token.slice(0, -1), "x".repeat(1_000), "a\0b"]) {
    await assert.rejects(authorizeActor(wrong, "owner"), REFUSED);
    await assert.rejects(authorizeActor(wrong, "operator"), REFUSED);
  }
});

test("replaces the earlier owner token at once and stores only its hash", async (t) => {
  const { pool } = await testDatabase(t);
  const { authorizeActor, workspaces } = adminOf(pool);
  await workspaces.createWorkspace({ name: "w" });
  const made = await Promise.all(Array.from({ length: 5 }, () => workspaces.createOwnerToken({ workspace: "w" })));
  const good = await Promise.allSettled(made.map(({ token }) => authorizeActor(token, "owner")));
  assert.equal(good.filter(({ status }) => status === "fulfilled").length, 1);
  const last = await workspaces.createOwnerToken({ workspace: "w" });
  for (const { token } of made) await assert.rejects(authorizeActor(token, "owner"), REFUSED);
  await authorizeActor(last.token, "owner");
  const [row] = await pool.query<{ text: string }>(
    `select (select string_agg(o::text, ' ') from owner_tokens o)
       || (select string_agg(a::text, ' ') from audit a) as text`,
  );
  for (const { token } of [...made, last]) assert.ok(!row?.text.includes(token.slice(9)));
  assert.ok(row?.text.includes(last.id));
});

test("refuses a replaced or deleted token within a second in another process, under constant use", async (t) => {
  const { pool } = await testDatabase(t);
  const { workspaces } = adminOf(pool);
  await workspaces.createWorkspace({ name: "w" });
  const { token } = await workspaces.createOwnerToken({ workspace: "w" });
  const operator = createSecret("op_");
  await pool.query("insert into operator_tokens (secret_hash) values ($1)", [hashSecret(operator)]);
  const replica = createTokens(pool);
  await Promise.all([token, operator].map((secret) => replica.authenticate(secret, "owner")));
  await workspaces.createOwnerToken({ workspace: "w" });
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
  await adminOf(pool).workspaces.createWorkspace({ name: "w" });
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
  const { authorizeActor, workspaces } = adminOf(slow);
  const { token } = await workspaces.createOwnerToken({ workspace: "w" });
  const early = authorizeActor(token, "owner");
  await reached.promise;
  await workspaces.createOwnerToken({ workspace: "w" });
  go.resolve();
  await early;
  await assert.rejects(authorizeActor(token, "owner"), REFUSED);
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
  const { authenticate: authorizeActor } = createTokens(counted, () => now);
  await authorizeActor(operator, "operator");
  const flood = async (count: number) =>
    Promise.allSettled(Array.from({ length: count }, () => authorizeActor(createSecret("op_"), "operator")));
  const refused = await flood(5_000);
  assert.ok(refused.every((one) => one.status === "rejected" && one.reason.kind === "unauthenticated"));
  assert.ok(statements <= 12, String(statements));
  stops = true;
  now += 3_600_000;
  const waiting = flood(11_001);
  await authorizeActor(operator, "operator");
  await assert.rejects(authorizeActor(createSecret("ow_"), "owner"), { kind: "overloaded", retryAfterMs: 1_000 });
  stopped.resolve();
  const kinds = new Set((await waiting).map((one) => one.status === "rejected" && one.reason.kind));
  assert.deepEqual(kinds, new Set(["unauthenticated", "overloaded"]));
});

test("refuses an owner token from its expiry on", async (t) => {
  const { pool } = await testDatabase(t);
  let now = Date.UTC(2026, 0, 1);
  const { authorizeActor, workspaces } = adminOf(pool, { clock: () => now });
  await workspaces.createWorkspace({ name: "w" });
  const expiresAt = timestampFromDate(new Date(now + 60_000));
  const { token } = await workspaces.createOwnerToken({ workspace: "w", expiresAt });
  now += 59_999;
  await authorizeActor(token, "owner");
  now += 1;
  await assert.rejects(authorizeActor(token, "owner"), REFUSED);
  const wrong = [0n, 2n ** 62n, 8_640_000_000_000n].map((seconds) => ({ seconds, nanos: 0 }));
  for (const past of [timestampFromDate(new Date(now)), ...wrong]) {
    await assert.rejects(workspaces.createOwnerToken({ workspace: "w", expiresAt: past }), {
      kind: "invalid_request",
      field: "expires_at",
    });
  }
  await assert.rejects(workspaces.createOwnerToken({ workspace: "none" }), { kind: "unknown_entity" });
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const { authorizeActor, workspaces } = adminOf(pool);
  await assert.rejects(authorizeActor("x", "owner"), { kind: "overloaded" });
  await assert.rejects(workspaces.createOwnerToken({ workspace: "w" }), { kind: "overloaded" });
  await pool.end();
});
