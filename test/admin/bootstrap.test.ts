import assert from "node:assert/strict";
import { test } from "vitest";
import { bootstrap, checkSecrets, createSecrets } from "../../src/admin/bootstrap.ts";
import { isWellFormed } from "../../src/admission/secret.ts";
import { openPool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";

test("creates one workspace, key and operator token when several replicas start on an empty store", async (t) => {
  const { pool, url } = await testDatabase(t);
  const replicas = Array.from({ length: 5 }, () => openPool(url, { max: 1 }));
  const results = await Promise.all(replicas.map((replica) => bootstrap(replica, {})));
  await Promise.all(replicas.map((replica) => replica.end()));
  const [made, ...others] = results
    .map(({ created }) => created)
    .filter(({ apiKey, operatorToken }) => apiKey || operatorToken);
  assert.ok(results.every(({ lacksOperator }) => !lacksOperator));
  assert.deepEqual(others, []);
  assert.ok(made?.apiKey && isWellFormed(made.apiKey, "ck_"));
  assert.ok(made.operatorToken && isWellFormed(made.operatorToken, "op_"));
  const { keys, authenticate, authorizeActor } = adminOf(pool);
  const caller = await authenticate(made.apiKey);
  assert.equal(caller.workspace, "default");
  assert.deepEqual(caller.scopes, ["generate", "metrics"]);
  assert.equal((await authorizeActor(made.operatorToken, "operator")).kind, "operator");
  assert.equal((await keys.listKeys({})).keys.length, 1);
  assert.deepEqual((await bootstrap(pool, {})).created, {});
  assert.deepEqual(await pool.query("select kind, reference, granted_micro from ledger"), [
    { kind: "grant", reference: "starting grant", granted_micro: 1_000_000_000n },
  ]);
  assert.deepEqual(await pool.query("select granted_micro, tier from accounts"), [
    { granted_micro: 1_000_000_000n, tier: "free" },
  ]);
});

test("accepts given secrets unchanged, in an empty store and in a used one, and does not return them", async (t) => {
  const { pool } = await testDatabase(t);
  const { keys, authenticate, authorizeActor } = adminOf(pool);
  const given = [
    "sixteen-letters!",
    "ck_not-of-our-making-0000000000000000",
    "ck_000000000000000000000000000000000",
    "~".repeat(512),
  ];
  for (const [i, apiKey] of given.entries()) {
    const { created } = await bootstrap(pool, { apiKey });
    assert.deepEqual(Object.keys(created), i === 0 ? ["operatorToken"] : []);
    assert.deepEqual((await bootstrap(pool, { apiKey })).created, {});
    assert.equal((await authenticate(apiKey)).workspace, "default");
  }
  await bootstrap(pool, { operatorToken: "an operator's token".replaceAll(" ", "-") });
  await authorizeActor("an-operator's-token", "operator");
  assert.equal((await keys.listKeys({})).keys.length, given.length);
});

test("records each key that it adds, once and without its secret", async (t) => {
  const { pool } = await testDatabase(t);
  const { keys } = adminOf(pool);
  for (const apiKey of ["a-key-of-the-first-start", "a-key-of-a-later-start", "a-key-of-a-later-start"])
    await bootstrap(pool, { apiKey });
  const scopes = ["generate", "metrics"];
  const added = (await keys.listKeys({})).keys.map(({ id }) => ({
    actor_id: "bootstrap",
    details: { id, name: "bootstrap", scopes, expires_at: null },
  }));
  const recorded = await pool.query("select actor_id, details from audit where action = 'key.create' order by id desc");
  assert.equal(recorded.length, 2);
  assert.deepEqual(recorded, added);
});

test("creates the first workspace without secrets when none is offered, and the secrets when they are", async (t) => {
  const { pool } = await testDatabase(t);
  assert.deepEqual(await bootstrap(pool, {}, null), { created: {}, lacksOperator: true });
  assert.deepEqual(await pool.query("select name from workspaces"), [{ name: "default" }]);
  assert.equal((await pool.query("select from api_keys")).length, 0);
  const offered = createSecrets();
  assert.deepEqual(await bootstrap(pool, {}, offered), { created: offered, lacksOperator: false });
  assert.equal((await pool.query("select from ledger")).length, 1, "one starting grant");
});

test("does not restore a given key that was revoked", async (t) => {
  const { pool } = await testDatabase(t);
  const { keys, authenticate } = adminOf(pool);
  const apiKey = "a-key-that-will-be-revoked";
  await bootstrap(pool, { apiKey });
  await keys.revokeKey({ id: (await authenticate(apiKey)).keyId });
  await bootstrap(pool, { apiKey });
  await assert.rejects(authenticate(apiKey), { kind: "unauthenticated" });
});

test("refuses an unusable secret, names its variable and does not show the secret", () => {
  for (const secret of ["", "fifteen-letters", "x".repeat(513), "has a space in it", "schlüssel-mit-umlaut"]) {
    const hidden = (name: string) => (error: Error) =>
      error.message.startsWith(name) && (secret === "" || !error.message.includes(secret));
    assert.throws(() => checkSecrets({ apiKey: secret }), hidden("BOOTSTRAP_API_KEY"));
    assert.throws(() => checkSecrets({ operatorToken: secret }), hidden("OPERATOR_TOKEN"));
  }
});

test("returns the secrets again when the call that stored them is repeated, and to no other call", async (t) => {
  const { pool } = await testDatabase(t);
  const [offered, other] = [createSecrets(), createSecrets()];
  for (let i = 0; i < 2; i++) assert.deepEqual((await bootstrap(pool, {}, offered)).created, offered);
  assert.deepEqual((await bootstrap(pool, {}, other)).created, {});
  assert.equal((await pool.query("select from api_keys")).length, 1);
});
