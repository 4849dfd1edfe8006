import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { createOwnerSessions } from "../../../src/admin/sign-in/owner-sessions.ts";
import { createSecret } from "../../../src/admission/secret.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

const HOUR = 3_600_000;

async function open(t: Lifetime) {
  const { pool } = await testDatabase(t);
  const clock = { now: Date.UTC(2026, 10, 20, 12) };
  const office = adminOf(pool, { clock: () => clock.now });
  await office.workspaces.createWorkspace({ name: "one" });
  const { token, workspace } = await office.workspaces.createOwnerToken({ workspace: "one" });
  // One per replica.
  const sessions = createOwnerSessions(pool, () => clock.now);
  const others = createOwnerSessions(pool, () => clock.now);
  return { ...office, pool, clock, sessions, others, token, workspaceId: workspace?.id };
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
  const { clock, workspaces, sessions, token } = await open(t);
  const { secret } = await sessions.open(token);
  const expiresAt = timestampFromDate(new Date(clock.now + HOUR / 2));
  const next = await workspaces.createOwnerToken({ workspace: "one", expiresAt });
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
  const sessions = createOwnerSessions({
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
  const { keys, sessions, token } = await open(t);
  const made = await Promise.all([1, 2, 3].map(() => sessions.open(token)));
  const ids = new Set(made.map(({ session }) => session.caller.keyId));
  assert.equal(ids.size, 1);
  const { keys: listed } = await keys.listKeys({ workspace: "one" });
  assert.deepEqual(
    listed.map(({ id, name, console }) => ({ id, name, console })),
    [{ id: [...ids][0], name: "console", console: true }],
  );
  const id = [...ids][0] ?? "";
  for (const change of [() => keys.revokeKey({ id }), () => keys.updateKey({ id, name: "x" })])
    await assert.rejects(change, { kind: "invalid_request", field: "id" });
});
