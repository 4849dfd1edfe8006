import assert from "node:assert/strict";
import { test } from "vitest";
import { bootstrap, createSecrets } from "../../../src/admin/bootstrap.ts";
import { createOperatorSessions } from "../../../src/admin/sign-in/operator-sessions.ts";
import { replaceOperatorTokens } from "../../../src/admin/sign-in/tokens.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

const HOUR = 3_600_000;
const ended = { kind: "unauthenticated", message: "Nobody is signed in, or the session has ended. Sign in." };

async function open(t: Lifetime) {
  const { pool } = await testDatabase(t);
  const { operatorToken: token } = createSecrets();
  await bootstrap(pool, { operatorToken: token }, null);
  const clock = { now: Date.UTC(2026, 10, 20, 12) };
  const [sessions, others] = [1, 2].map(() => createOperatorSessions(pool, () => clock.now));
  assert.ok(sessions && others);
  return { pool, clock, token, sessions, others };
}

test("is accepted on every replica until it is closed on one, and is in the audit", async (t) => {
  const { pool, token, sessions, others } = await open(t);
  const { session, secret } = await sessions.open(token);
  assert.deepEqual(await others.authenticate(secret), session);
  await others.close(secret);
  await assert.rejects(sessions.authenticate(secret), ended);
  await others.close(secret);
  await others.close(undefined);
  const audit = await pool.query("select action, actor_id as id from audit where actor_kind = 'operator' order by id");
  assert.deepEqual(audit, [
    { action: "session.start", id: session.actor.id },
    { action: "session.end", id: session.actor.id },
  ]);
});

test("ends after one hour without a call, and after eight hours in any case", async (t) => {
  const { clock, token, sessions } = await open(t);
  const idle = await sessions.open(token);
  clock.now += HOUR + 1;
  await assert.rejects(sessions.authenticate(idle.secret), ended);
  const busy = await sessions.open(token);
  for (let i = 0; i < 15; i++) {
    clock.now += HOUR / 2;
    await sessions.authenticate(busy.secret);
  }
  clock.now += HOUR / 2;
  await assert.rejects(sessions.authenticate(busy.secret), ended);
});

test("ends when the operator token is replaced, and opens only with a valid one", async (t) => {
  const { pool, token, sessions } = await open(t);
  const { secret } = await sessions.open(token);
  const { token: next } = await replaceOperatorTokens(pool);
  await assert.rejects(sessions.authenticate(secret), ended);
  await assert.rejects(sessions.open(token), { kind: "unauthenticated", message: /^The operator token is not valid/ });
  const { session } = await sessions.open(next);
  assert.equal(session.actor.kind, "operator");
});

test("keeps at most 50 sessions, and no secret", async (t) => {
  const { pool, clock, token, sessions } = await open(t);
  const secrets: string[] = [];
  for (let i = 0; i < 51; i++) {
    clock.now += 1;
    secrets.push((await sessions.open(token)).secret);
  }
  await assert.rejects(sessions.authenticate(secrets[0]), ended);
  await sessions.authenticate(secrets[1]);
  const rows = await pool.query<{ text: string }>("select s::text as text from operator_sessions s");
  assert.equal(rows.length, 50);
  assert.ok(!rows.some(({ text }) => secrets.some((secret) => text.includes(secret))));
});
