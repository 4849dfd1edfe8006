import assert from "node:assert/strict";
import { test } from "vitest";
import type { Actor } from "../../../src/admin/audit.ts";
import { createKeys, type Keys, requireScope } from "../../../src/admin/keys/keys.ts";
import { isWellFormed } from "../../../src/admission/secret.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { OPERATOR } from "../../helpers/actors.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

async function open(t: Lifetime, clock?: () => number): Promise<{ keys: Keys; pool: Pool }> {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one'), ('ws_2', 'two')");
  return { keys: createKeys(pool, clock), pool };
}

test("creates a key with the requested fields and does not store its secret", async (t) => {
  const { keys, pool } = await open(t);
  const expiresAt = new Date(Date.now() + 3_600_000);
  const { secret, ...key } = await keys.create(OPERATOR, {
    workspace: "ws_2",
    name: "Grüße 🎉",
    scopes: ["metrics", "metrics"],
    expiresAt,
  });
  assert.ok(isWellFormed(secret, "ck_"));
  assert.match(key.id, /^key_[0-9a-f]{24}$/);
  assert.deepEqual(key, {
    id: key.id,
    workspaceId: "ws_2",
    workspace: "two",
    name: "Grüße 🎉",
    prefix: secret.slice(0, 9),
    scopes: ["metrics"],
    createdAt: key.createdAt,
    expiresAt,
    revokedAt: null,
    console: false,
  });
  assert.deepEqual(
    (await keys.create(OPERATOR, { workspace: "one" })).scopes,
    ["generate", "metrics"],
    "a key has all scopes when none are named",
  );
  assert.deepEqual((await keys.list(OPERATOR, { workspace: "two" })).keys, [key]);
  const [row] = await pool.query<{ text: string }>("select string_agg(k::text, ' ') as text from api_keys k");
  assert.ok(!row?.text.includes(secret.slice(9)));
});

test("refuses invalid fields of a key and names them", async (t) => {
  const { keys } = await open(t);
  const create = keys.create;
  const refused: [Parameters<Keys["create"]>[1], object][] = [
    [{ workspace: "" }, { kind: "invalid_request", field: "workspace" }],
    [{ workspace: "three" }, { kind: "unknown_entity", field: "workspace", message: 'There is no workspace "three".' }],
    [{ workspace: "'; drop table api_keys; --" }, { kind: "unknown_entity" }],
    [{ workspace: "one\0" }, { kind: "unknown_entity" }],
    [
      { workspace: "one", name: "x".repeat(201) },
      { kind: "invalid_request", field: "name" },
    ],
    [
      { workspace: "one", name: "a\nb" },
      { kind: "invalid_request", field: "name" },
    ],
    [
      { workspace: "one", scopes: ["generate", "admin"] },
      { kind: "invalid_request", field: "scopes[1]", message: "A scope is one of generate, metrics." },
    ],
    [
      { workspace: "one", expiresAt: new Date(0) },
      { kind: "invalid_request", field: "expires_at" },
    ],
    [
      { workspace: "one", expiresAt: new Date(Number.NaN) },
      { kind: "invalid_request", field: "expires_at" },
    ],
    [
      { workspace: "one", expiresAt: new Date(8.64e15) },
      { kind: "invalid_request", field: "expires_at" },
    ],
  ];
  for (const [request, failure] of refused)
    await assert.rejects(create(OPERATOR, request), failure, JSON.stringify(request));
  assert.equal(
    (await create(OPERATOR, { workspace: "one", name: "🎉".repeat(200), expiresAt: new Date("9999-12-31") })).name
      .length,
    400,
  );
  assert.equal((await keys.list(OPERATOR, {})).keys.length, 1);
});

test("pages through every key once, newest first, while keys are created", async (t) => {
  let now = Date.UTC(2026, 0, 1);
  const { keys } = await open(t, () => now);
  const made: string[] = [];
  for (let i = 0; i < 25; i++) {
    now += i % 3; // several keys with the same time
    made.push((await keys.create(OPERATOR, { workspace: i % 5 === 0 ? "two" : "one", name: String(i) })).id);
  }
  const seen: string[] = [];
  for (let pageToken: string | undefined, pages = 0; pages < 10; pages++) {
    const page = await keys.list(OPERATOR, { pageSize: 4, ...(pageToken ? { pageToken } : {}) });
    assert.ok(page.keys.length <= 4);
    seen.push(...page.keys.map(({ id }) => id));
    now += 1_000;
    if (pages === 0) await keys.create(OPERATOR, { workspace: "one", name: "later" });
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  assert.deepEqual([...seen].sort(), [...made].sort());
  const all = await keys.list(OPERATOR, {});
  assert.equal(all.keys[0]?.name, "later");
  assert.deepEqual(
    all.keys.slice(1).map(({ id }) => id),
    seen,
  );
  assert.equal(all.nextPageToken, undefined);
  assert.equal((await keys.list(OPERATOR, { workspace: "ws_2" })).keys.length, 5);
  assert.equal(
    (await keys.list(OPERATOR, { workspace: "two", pageSize: 5 })).nextPageToken,
    undefined,
    "no empty page after a full last page",
  );
  for (const pageSize of [-1, 1_001, 1.5])
    await assert.rejects(keys.list(OPERATOR, { pageSize }), { kind: "invalid_request", field: "page_size" });
  for (const pageToken of [
    "x",
    Buffer.from("1 ' or 1=1").toString("base64url"),
    Buffer.from("99999999999999999 key_0").toString("base64url"),
  ]) {
    await assert.rejects(keys.list(OPERATOR, { pageToken }), { kind: "invalid_request", field: "page_token" });
  }
  await assert.rejects(keys.list(OPERATOR, { workspace: "three" }), { kind: "unknown_entity" });
});

test("revokes a key once, and does not repeat an unknown identifier in the error", async (t) => {
  let now = Date.now();
  const { keys } = await open(t, () => now);
  const { id, secret } = await keys.create(OPERATOR, { workspace: "one" });
  const revoked = await keys.revoke(OPERATOR, id);
  assert.equal(revoked.revokedAt?.getTime(), now);
  assert.ok(!("hash" in revoked));
  now += 1_000;
  assert.deepEqual(await keys.revoke(OPERATOR, id), revoked);
  for (const unknown of ["key_0", "", "\0", secret]) {
    await assert.rejects(
      keys.revoke(OPERATOR, unknown),
      (error: Error & { kind: string }) => error.kind === "unknown_entity" && !error.message.includes(secret),
    );
  }
});

test("renames a key and changes or removes its expiry, with immediate effect on the same replica", async (t) => {
  let now = Date.UTC(2026, 0, 1);
  const { keys, pool } = await open(t, () => now);
  const made = await keys.create(OPERATOR, { workspace: "one", name: "a", expiresAt: new Date(now + 1_000) });
  const { secret, ...before } = made;
  await keys.authenticate(secret);
  const later = new Date(now + 60_000);
  assert.deepEqual(await keys.update(OPERATOR, { id: before.id, expiresAt: later }), { ...before, expiresAt: later });
  now += 1_000;
  await keys.authenticate(secret);
  const renamed = { ...before, name: "", expiresAt: null };
  assert.deepEqual(await keys.update(OPERATOR, { id: before.id, name: "", expiresAt: null }), renamed);
  assert.deepEqual((await keys.list(OPERATOR, {})).keys, [renamed]);
  const refused: [Parameters<Keys["update"]>[1], object][] = [
    [{ id: before.id }, { kind: "invalid_request", field: "name" }],
    [
      { id: before.id, name: "a\u0007" },
      { kind: "invalid_request", field: "name" },
    ],
    [
      { id: before.id, name: "b", expiresAt: new Date(now) },
      { kind: "invalid_request", field: "expires_at" },
    ],
    [
      { id: "key_0", name: "b" },
      { kind: "unknown_entity", field: "id" },
    ],
    [
      { id: secret, name: "b" },
      { kind: "unknown_entity", field: "id" },
    ],
  ];
  for (const [request, failure] of refused) await assert.rejects(keys.update(OPERATOR, request), failure);
  assert.deepEqual((await keys.list(OPERATOR, {})).keys, [renamed]);
  assert.deepEqual(await pool.query("select action, details from audit where action <> 'key.create' order by id"), [
    { action: "key.update", details: { id: before.id, name: "a", expires_at: later.toISOString() } },
    { action: "key.update", details: { id: before.id, name: "", expires_at: null } },
  ]);
});

test("gives an owner access only to the keys of the owner's workspace", async (t) => {
  const { keys } = await open(t);
  const owner: Actor = { kind: "owner", id: "tok_owner", workspaceId: "ws_1" };
  const own = await keys.create(owner, { workspace: "" });
  const other = await keys.create(OPERATOR, { workspace: "two" });
  assert.equal(own.workspace, "one");
  for (const request of [{}, { workspace: "one" }, { workspace: "ws_1" }]) {
    assert.deepEqual(
      (await keys.list(owner, request)).keys.map(({ id }) => id),
      [own.id],
    );
  }
  const unknown = { kind: "unknown_entity" };
  await assert.rejects(keys.list(owner, { workspace: "two" }), unknown);
  await assert.rejects(keys.create(owner, { workspace: "ws_2" }), unknown);
  await assert.rejects(keys.revoke(owner, other.id), unknown);
  await assert.rejects(keys.update(owner, { id: other.id, name: "mine" }), unknown);
  const [, ...rest] = (await keys.list(OPERATOR, { workspace: "two" })).keys;
  assert.deepEqual(rest, []);
  assert.equal((await keys.authenticate(other.secret)).keyId, other.id);
  await keys.revoke(owner, own.id);
});

test("names the missing scope", () => {
  const caller = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: ["generate"] as const };
  requireScope(caller, "generate");
  assert.throws(() => requireScope(caller, "metrics"), { kind: "missing_scope", message: /"metrics"/ });
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const keys = createKeys(pool);
  const calls = [
    keys.authenticate("x"),
    keys.create(OPERATOR, { workspace: "one" }),
    keys.list(OPERATOR, {}),
    keys.revoke(OPERATOR, "key_0"),
  ];
  await Promise.all(calls.map((call) => assert.rejects(call, { kind: "overloaded", retryAfterMs: 1_000 })));
  await pool.end();
});
