import assert from "node:assert/strict";
import { test } from "vitest";
import { createOwnerSessions } from "../../../src/admin/sign-in/owner-sessions.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

const MINUTE = 60_000;
const used = { kind: "unauthenticated", message: /^The sign-in link was used before or has expired\./ };

async function open(t: Lifetime) {
  const { pool } = await testDatabase(t);
  const clock = { now: Date.UTC(2026, 10, 20, 12) };
  const now = () => clock.now;
  const { workspaces } = adminOf(pool, { clock: now });
  const { workspace } = await workspaces.createWorkspace({ name: "one" });
  const secretOf = async () => {
    const { path } = await workspaces.createSignInLink({ workspace: "one" });
    return /^\/console#sign-in=(li_\w{33})$/.exec(path)?.[1] ?? assert.fail(path);
  };
  return { pool, clock, id: workspace?.id, workspaces, secretOf, sessions: createOwnerSessions(pool, now) };
}

test("opens one session, without an owner token", async (t) => {
  const { pool, id, secretOf, sessions } = await open(t);
  const link = await secretOf();
  const attempts = await Promise.allSettled([1, 2, 3].map(() => sessions.open(link)));
  const opened = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
  assert.equal(opened.length, 1);
  await assert.rejects(sessions.open(link), used);
  const { caller } = await sessions.authenticate(opened[0]?.secret);
  assert.equal(caller.workspaceId, id);
  const audit = await pool.query<{ action: string; id: string }>(
    "select action, coalesce(details->>'id', actor_id) as id from audit where action like '%si%' order by at, id",
  );
  const [created, started] = audit;
  assert.deepEqual([created?.action, started?.action], ["sign_in_link.create", "session.start"]);
  assert.equal(created?.id, started?.id, "the audit names the link that opened the session");
});

test("does not open a session after 15 minutes", async (t) => {
  const { clock, secretOf, sessions } = await open(t);
  const [early, late] = [await secretOf(), await secretOf()];
  clock.now += 15 * MINUTE - 1;
  await sessions.open(early);
  clock.now += 1;
  await assert.rejects(sessions.open(late), used);
});

test("stores no secret, and removes links that have expired", async (t) => {
  const { pool, clock, secretOf } = await open(t);
  const link = await secretOf();
  clock.now += 15 * MINUTE + 1;
  await secretOf();
  const rows = await pool.query<{ text: string }>(
    "select l::text as text from sign_in_links l union all select a::text from audit a",
  );
  assert.equal((await pool.query("select from sign_in_links")).length, 1);
  assert.ok(rows.every(({ text }) => !text.includes(link)));
});

test("a new owner token ends the links and their sessions", async (t) => {
  const { secretOf, sessions, workspaces } = await open(t);
  const { secret } = await sessions.open(await secretOf());
  const waiting = await secretOf();
  await workspaces.createOwnerToken({ workspace: "one" });
  await assert.rejects(sessions.authenticate(secret), { kind: "unauthenticated" });
  await assert.rejects(sessions.open(waiting), used);
});

test("names a workspace that does not exist", async (t) => {
  const { workspaces } = await open(t);
  await assert.rejects(workspaces.createSignInLink({ workspace: "two" }), { kind: "unknown_entity" });
});
