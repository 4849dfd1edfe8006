import assert from "node:assert/strict";
import { test } from "vitest";
import { createKeys } from "../../../src/admin/keys/keys.ts";
import { createSessions } from "../../../src/admin/sign-in/sessions.ts";
import { createOwners } from "../../../src/admin/sign-in/tokens.ts";
import { createWorkspaces } from "../../../src/admin/workspaces/workspaces.ts";
import { createSecret } from "../../../src/admission/secret.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

const OPERATOR = { kind: "operator", id: "tok_operator" } as const;
const HOUR = 3_600_000;

async function open(t: Lifetime) {
  const { pool } = await testDatabase(t);
  const clock = { now: Date.UTC(2026, 10, 20, 12) };
  const owners = createOwners(pool, () => clock.now);
  const workspaces = createWorkspaces(pool);
  await workspaces.create(OPERATOR, { name: "one", kind: "personal" });
  const { token, workspace } = await owners.createToken(OPERATOR, { workspace: "one" });
  // One per replica.
  const sessions = createSessions(pool, () => clock.now);
  const others = createSessions(pool, () => clock.now);
  return { pool, clock, owners, sessions, others, token, workspaceId: workspace };
}

const ended = { kind: "unauthenticated", message: "Nobody is signed in, or the session has ended. Sign in." };

test("accepts a session on every replica until it is closed on one of them", async (t) => {
  const { pool, sessions, others, token, workspaceId } = await open(t);
  const { session, secret } = await sessions.open(token);
  assert.equal(session.caller.workspaceId, workspaceId);
  assert.deepEqual(await others.authenticate(secret), session);
  await others.close(secret);
  await assert.rejects(sessions.authenticate(secret), ended);
  await others.close(secret);
  const audit = await pool.query<{ action: string }>(
    "select action from audit where actor_kind = 'owner' order by at, id",
  );
  assert.deepEqual(
    audit.map(({ action }) => action),
    ["session.start", "session.end"],
  );
});

test("ends a session after one hour without a call, and after eight hours in any case", async (t) => {
  const { clock, sessions, token } = await open(t);
  const idle = await sessions.open(token);
  clock.now += HOUR - 60_000;
  await sessions.authenticate(idle.secret);
  clock.now += HOUR - 60_000;
  await sessions.authenticate(idle.secret);
  clock.now += HOUR + 60_000;
  await assert.rejects(sessions.authenticate(idle.secret), ended);

  const busy = await sessions.open(token);
  assert.equal(busy.session.expiresAt.getTime(), clock.now + 8 * HOUR);
  for (let i = 0; i < 15; i++) {
    clock.now += HOUR / 2;
    await sessions.authenticate(busy.secret);
  }
  clock.now += HOUR / 2;
  await assert.rejects(sessions.authenticate(busy.secret), ended);
});

test("ends a session when the owner token that opened it ends", async (t) => {
  const { clock, owners, sessions, token } = await open(t);
  const { secret } = await sessions.open(token);
  const expiresAt = new Date(clock.now + HOUR / 2);
  const next = await owners.createToken(OPERATOR, { workspace: "one", expiresAt });
  await assert.rejects(sessions.authenticate(secret), ended);
  const brief = await sessions.open(next.token);
  clock.now += HOUR / 2;
  await assert.rejects(sessions.authenticate(brief.secret), ended);
  await assert.rejects(sessions.open(next.token), { kind: "unauthenticated" });
});

test("refuses texts that are not the secret of a session", async (t) => {
  const { sessions } = await open(t);
  for (const text of [undefined, "", "nonsense", `cs_${"0".repeat(33)}`, "x".repeat(100_000)])
    await assert.rejects(sessions.authenticate(text), ended);
});

test("closes an invented session without a transaction", async (t) => {
  const { pool } = await open(t);
  let transactions = 0;
  let statements = 0;
  const sessions = createSessions({
    ...pool,
    query: (text, values) => {
      statements++;
      return pool.query(text, values);
    },
    tx: (run, options) => {
      transactions++;
      return pool.tx(run, options);
    },
  });
  await Promise.all(Array.from({ length: 500 }, () => sessions.close(createSecret("cs_"))));
  assert.deepEqual({ transactions, statements }, { transactions: 0, statements: 2 });
});

test("keeps at most fifty sessions of a workspace and deletes expired ones", async (t) => {
  const { pool, clock, sessions, token } = await open(t);
  const first = await sessions.open(token);
  for (let i = 0; i < 50; i++) {
    clock.now += 1_000;
    await sessions.open(token);
  }
  await assert.rejects(sessions.authenticate(first.secret), ended);
  const count = async () => Number((await pool.query<{ n: bigint }>("select count(*) as n from sessions"))[0]?.n);
  assert.equal(await count(), 50);
  clock.now += 9 * HOUR;
  await sessions.open(token);
  assert.equal(await count(), 1);
});

test("gives all sessions of a workspace one playground key, which cannot be changed or revoked", async (t) => {
  const { pool, clock, sessions, token } = await open(t);
  const made = await Promise.all([1, 2, 3].map(() => sessions.open(token)));
  const ids = new Set(made.map(({ session }) => session.caller.keyId));
  assert.equal(ids.size, 1);
  const keys = createKeys(pool, () => clock.now);
  const { keys: listed } = await keys.list(OPERATOR, { workspace: "one" });
  assert.deepEqual(
    listed.map(({ id, name, console }) => ({ id, name, console })),
    [{ id: [...ids][0], name: "console", console: true }],
  );
  const id = [...ids][0] ?? "";
  for (const change of [() => keys.revoke(OPERATOR, id), () => keys.update(OPERATOR, { id, name: "x" })])
    await assert.rejects(change, { kind: "invalid_request", field: "id" });
});
