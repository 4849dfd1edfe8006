import assert from "node:assert/strict";
import { test } from "vitest";
import { createSessions } from "../../../src/admin/sign-in/sessions.ts";
import { createOwners } from "../../../src/admin/sign-in/tokens.ts";
import { createSignInLinks } from "../../../src/admin/workspaces/sign-in-link.ts";
import { createWorkspaces } from "../../../src/admin/workspaces/workspaces.ts";
import { OPERATOR } from "../../helpers/actors.ts";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";

const MINUTE = 60_000;
const used = { kind: "unauthenticated", message: /^The sign-in link was used before or has expired\./ };

async function open(t: Lifetime) {
  const { pool } = await testDatabase(t);
  const clock = { now: Date.UTC(2026, 10, 20, 12) };
  const now = () => clock.now;
  const { id } = await createWorkspaces(pool).create(OPERATOR, { name: "one", kind: "personal" });
  const links = createSignInLinks(pool, now);
  const secretOf = async () => {
    const { path } = await links.create(OPERATOR, "one");
    return /^\/console#sign-in=(li_\w{33})$/.exec(path)?.[1] ?? assert.fail(path);
  };
  return { pool, clock, id, links, secretOf, sessions: createSessions(pool, now), owners: createOwners(pool, now) };
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
  const { secretOf, sessions, owners } = await open(t);
  const { secret } = await sessions.open(await secretOf());
  const waiting = await secretOf();
  await owners.createToken(OPERATOR, { workspace: "one" });
  await assert.rejects(sessions.authenticate(secret), { kind: "unauthenticated" });
  await assert.rejects(sessions.open(waiting), used);
});

test("names a workspace that does not exist", async (t) => {
  const { links } = await open(t);
  await assert.rejects(links.create(OPERATOR, "two"), { kind: "unknown_entity" });
});
