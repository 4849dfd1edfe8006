import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { KeySchema, Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import type { Actor } from "../../../src/admin/shared/audit.ts";
import { isWellFormed } from "../../../src/admission/secret.ts";
import { openPool, type Pool } from "../../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

type Keys = BackOffice["keys"];

async function open(t: Lifetime, clock?: () => number): Promise<BackOffice & { pool: Pool }> {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one'), ('ws_2', 'two')");
  return { ...adminOf(pool, clock ? { clock } : {}), pool };
}

test("creates a key with the requested fields and does not store its secret", async (t) => {
  const { keys, pool } = await open(t);
  const expiresAt = new Date(Date.now() + 3_600_000);
  const { secret, key } = await keys.createKey({
    workspace: "ws_2",
    name: "Grüße 🎉",
    scopes: [Scope.METRICS, Scope.METRICS],
    expiresAt: timestampFromDate(expiresAt),
  });
  assert.ok(key?.createdAt);
  assert.ok(isWellFormed(secret, "ck_"));
  assert.match(key.id, /^key_[0-9a-f]{24}$/);
  const expected = create(KeySchema, {
    id: key.id,
    workspace: "two",
    name: "Grüße 🎉",
    prefix: secret.slice(0, 9),
    scopes: [Scope.METRICS],
    createdBy: "tok_test",
    createdAt: key.createdAt,
    expiresAt: timestampFromDate(expiresAt),
  });
  assert.deepEqual(key, expected);
  assert.deepEqual([key.revokedAt, key.console], [undefined, false]);
  assert.deepEqual(
    (await keys.createKey({ workspace: "one" })).key?.scopes,
    [Scope.GENERATE, Scope.METRICS],
    "a key has all scopes when none are named",
  );
  assert.deepEqual((await keys.listKeys({ workspace: "two" })).keys, [key]);
  const [row] = await pool.query<{ text: string }>("select string_agg(k::text, ' ') as text from api_keys k");
  assert.ok(!row?.text.includes(secret.slice(9)));
});

test("refuses invalid fields of a key and names them", async (t) => {
  const { keys } = await open(t);
  const refused: [Parameters<Keys["createKey"]>[0], object][] = [
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
      { workspace: "one", scopes: [Scope.GENERATE, Scope.UNSPECIFIED] },
      { kind: "invalid_request", field: "scopes[1]", message: "A scope is one of generate, metrics." },
    ],
    [
      { workspace: "one", scopes: [99 as Scope] },
      { kind: "invalid_request", field: "scopes[0]" },
    ],
    [
      { workspace: "one", expiresAt: timestampFromDate(new Date(0)) },
      { kind: "invalid_request", field: "expires_at" },
    ],
    [
      { workspace: "one", expiresAt: { seconds: 2n ** 62n, nanos: 0 } },
      { kind: "invalid_request", field: "expires_at" },
    ],
    [
      { workspace: "one", expiresAt: { seconds: 8_640_000_000_000n, nanos: 0 } },
      { kind: "invalid_request", field: "expires_at" },
    ],
  ];
  for (const [request, failure] of refused) await assert.rejects(keys.createKey(request), failure);
  const expiresAt = timestampFromDate(new Date("9999-12-31"));
  const { key } = await keys.createKey({ workspace: "one", name: "🎉".repeat(200), expiresAt });
  assert.equal(key?.name.length, 400);
  assert.equal((await keys.listKeys({})).keys.length, 1);
});

test("pages through every key once, newest first, while keys are created", async (t) => {
  let now = Date.UTC(2026, 0, 1);
  const { keys } = await open(t, () => now);
  const made: string[] = [];
  for (let i = 0; i < 25; i++) {
    now += i % 3; // several keys with the same time
    const { key } = await keys.createKey({ workspace: i % 5 === 0 ? "two" : "one", name: String(i) });
    made.push(key?.id ?? "");
  }
  const seen: string[] = [];
  for (let pageToken = "", pages = 0; pages < 10; pages++) {
    const page = await keys.listKeys({ pageSize: 4, pageToken });
    assert.ok(page.keys.length <= 4);
    seen.push(...page.keys.map(({ id }) => id));
    now += 1_000;
    if (pages === 0) await keys.createKey({ workspace: "one", name: "later" });
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  assert.deepEqual([...seen].sort(), [...made].sort());
  const all = await keys.listKeys({});
  assert.equal(all.keys[0]?.name, "later");
  assert.deepEqual(
    all.keys.slice(1).map(({ id }) => id),
    seen,
  );
  assert.equal(all.nextPageToken, "");
  assert.equal((await keys.listKeys({ workspace: "ws_2" })).keys.length, 5);
  assert.equal(
    (await keys.listKeys({ workspace: "two", pageSize: 5 })).nextPageToken,
    "",
    "no empty page after a full last page",
  );
  for (const pageSize of [-1, 1_001, 1.5])
    await assert.rejects(keys.listKeys({ pageSize }), { kind: "invalid_request", field: "page_size" });
  for (const pageToken of [
    "x",
    Buffer.from("1 ' or 1=1").toString("base64url"),
    Buffer.from("99999999999999999 key_0").toString("base64url"),
  ]) {
    await assert.rejects(keys.listKeys({ pageToken }), { kind: "invalid_request", field: "page_token" });
  }
  await assert.rejects(keys.listKeys({ workspace: "three" }), { kind: "unknown_entity" });
});

test("revokes a key once, and does not repeat an unknown identifier in the error", async (t) => {
  let now = Date.now();
  const { keys } = await open(t, () => now);
  const { key, secret } = await keys.createKey({ workspace: "one" });
  const id = key?.id ?? "";
  const revoked = await keys.revokeKey({ id });
  assert.deepEqual(revoked.key?.revokedAt, timestampFromDate(new Date(now)));
  now += 1_000;
  assert.deepEqual(await keys.revokeKey({ id }), revoked);
  for (const unknown of ["key_0", "", "\0", secret]) {
    await assert.rejects(
      keys.revokeKey({ id: unknown }),
      (error: Error & { kind: string }) => error.kind === "unknown_entity" && !error.message.includes(secret),
    );
  }
});

test("renames a key and changes or removes its expiry, with immediate effect on the same replica", async (t) => {
  let now = Date.UTC(2026, 0, 1);
  const { keys, authenticate, pool } = await open(t, () => now);
  const expiresAt = timestampFromDate(new Date(now + 1_000));
  const { key: before, secret } = await keys.createKey({ workspace: "one", name: "a", expiresAt });
  assert.ok(before);
  await authenticate(secret);
  const later = new Date(now + 60_000);
  const at = (date: Date) => ({ case: "expiresAt", value: timestampFromDate(date) }) as const;
  const { key: extended } = await keys.updateKey({ id: before.id, expiry: at(later) });
  assert.deepEqual(extended, { ...before, expiresAt: timestampFromDate(later) });
  now += 1_000;
  await authenticate(secret);
  const { expiresAt: _, ...rest } = { ...before, name: "" };
  const renamed = create(KeySchema, rest);
  const never = { case: "neverExpires", value: {} } as const;
  assert.deepEqual((await keys.updateKey({ id: before.id, name: "", expiry: never })).key, renamed);
  assert.deepEqual((await keys.listKeys({})).keys, [renamed]);
  const refused: [Parameters<Keys["updateKey"]>[0], object][] = [
    [{ id: before.id }, { kind: "invalid_request", field: "name" }],
    [
      { id: before.id, name: "a\u0007" },
      { kind: "invalid_request", field: "name" },
    ],
    [
      { id: before.id, name: "b", expiry: at(new Date(now)) },
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
  for (const [request, failure] of refused) await assert.rejects(keys.updateKey(request), failure);
  assert.deepEqual((await keys.listKeys({})).keys, [renamed]);
  assert.deepEqual(await pool.query("select action, details from audit where action <> 'key.create' order by id"), [
    { action: "key.update", details: { id: before.id, name: "a", expires_at: later.toISOString() } },
    { action: "key.update", details: { id: before.id, name: "", expires_at: null } },
  ]);
});

test("gives an owner access only to the keys of the owner's workspace", async (t) => {
  const { keys, authenticate } = await open(t);
  const owner: Actor = { kind: "owner", id: "tok_owner", workspaceId: "ws_1" };
  const { key: own } = await keys.createKey({}, owner);
  const { key: other, secret } = await keys.createKey({ workspace: "two" });
  assert.ok(own && other);
  assert.equal(own.workspace, "one");
  for (const request of [{}, { workspace: "one" }, { workspace: "ws_1" }]) {
    assert.deepEqual(
      (await keys.listKeys(request, owner)).keys.map(({ id }) => id),
      [own.id],
    );
  }
  const unknown = { kind: "unknown_entity" };
  await assert.rejects(keys.listKeys({ workspace: "two" }, owner), unknown);
  await assert.rejects(keys.createKey({ workspace: "ws_2" }, owner), unknown);
  await assert.rejects(keys.revokeKey({ id: other.id }, owner), unknown);
  await assert.rejects(keys.updateKey({ id: other.id, name: "mine" }, owner), unknown);
  const [, ...rest] = (await keys.listKeys({ workspace: "two" })).keys;
  assert.deepEqual(rest, []);
  assert.equal((await authenticate(secret)).keyId, other.id);
  await keys.revokeKey({ id: own.id }, owner);
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const { keys, authenticate } = adminOf(pool);
  const calls = [
    authenticate("x"),
    keys.createKey({ workspace: "one" }),
    keys.listKeys({}),
    keys.updateKey({ id: "key_0", name: "a" }),
    keys.revokeKey({ id: "key_0" }),
  ];
  await Promise.all(calls.map((call) => assert.rejects(call, { kind: "overloaded", retryAfterMs: 1_000 })));
  await pool.end();
});
