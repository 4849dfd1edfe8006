import assert from "node:assert/strict";
import { type Item, NOTHING } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import type { Query } from "../../src/store/pool.ts";
import { cap, check, holdOf, share, useOf } from "./cap-helpers.ts";
import { AT, askOf, type Cases, done, grantsIn, itemIn, openAccount, openAll, postAt, send } from "./case-helpers.ts";

/** Rows of a table that this transaction has locked and not changed. */
async function lockedIn(query: Query, table: string, name: string): Promise<string[]> {
  const rows = await query<{ name: string }>(
    `select ${name} as name from ${table} where xmax::text = (pg_current_xact_id()::text::numeric % 4294967296)::text
     order by 1`,
  );
  return rows.map(({ name }) => name);
}

/**
 * Notes which rows are locked when a statement begins to change a table.
 * @param change such as `update on accounts`
 * @param name of a row of `table`, in SQL
 * @returns a function that reads the notes
 */
async function watchLocks(query: Query, change: string, table: string, name: string): Promise<() => Promise<string[]>> {
  await query("create temporary table locked (id text) on commit drop");
  await query(`create function pg_temp.note_locked() returns trigger language plpgsql as $$ begin
    insert into locked select ${name} from ${table}
      where xmax::text = (pg_current_xact_id()::text::numeric % 4294967296)::text;
    return null;
  end $$`);
  await query(`create trigger note_locked before ${change} for each statement execute function pg_temp.note_locked()`);
  return async () => (await query<{ id: string }>("select id from locked order by 1")).map(({ id }) => id);
}

/** Notes messages instead of sending them, which would be at the end of the transaction. */
async function watchMessages(query: Query): Promise<() => Promise<string[]>> {
  await query("create temporary table messages (text text) on commit drop");
  await query(`create function public.pg_notify(text, text) returns void language sql as
    'insert into messages values ($1 || '' '' || $2)'`);
  await query("set local search_path = public, pg_catalog");
  return async () =>
    (await query<{ text: string }>("delete from messages returning text")).map(({ text }) => text).sort();
}

/** The order of rows, by the statements of this transaction that have written them. */
async function writtenIn(query: Query, table: string): Promise<string[]> {
  const rows = await query<{ id: string }>(`select workspace_id as id from ${table} order by cmin::text::int`);
  return rows.map(({ id }) => id);
}

export const LOCK_CASES: Cases = {
  async "executes the items of a statement in the order of their workspaces, so that none waits in a circle"(query) {
    const names = ["w", "v", "x"];
    for (const w of names) await openAccount(query, w, { granted: 1_000 });
    const items = names.map((w) => itemIn(w, { asks: [askOf(w, 10)] }));
    const replies = await execute({ query }, "r", 1, items, AT);
    assert.deepEqual(await writtenIn(query, "grants"), ["v", "w", "x"]);
    const appends = names.map((w, i) => {
      const [item, reply] = [items[i], replies[i]];
      assert.ok(item && reply?.state === "done");
      return itemIn(w, { mode: "append", grant: reply.grant, after: item.seq, posts: [postAt(w, 1)] });
    });
    const appended = await execute({ query }, "r", 1, appends, AT);
    assert.deepEqual(new Set(appended.map((reply) => reply?.state)), new Set(["appended"]));
    assert.deepEqual(await writtenIn(query, "settlement_log"), ["v", "w", "x"]);
    const [first, ...others] = appends;
    const repeated = await execute({ query }, "r", 1, [{ ...first, grant: 1_000_000 } as Item, ...others], AT);
    assert.deepEqual(
      repeated.map((reply) => reply?.state),
      ["ended", "appended", "appended"],
    );
  },

  async "locks the grant that ends, and no other one, before it posts what was appended"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    await openAll(query, ["v", "w"], ["r", "s"]);
    // Without append_settlement(), which locks the grant, too.
    const { row } = postAt("a", 1);
    const posts = JSON.stringify([{ ...row, request_id: "a", credits_micro: 1, output_tokens: 1 }]);
    await query("insert into settlement_log values ('w', 'r', 999999999, 1, 1, 0, 0, 0, 0, $1)", [posts]);
    const name = "concat_ws(' ', workspace_id, replica)";
    const locked = await watchLocks(query, "delete on settlement_log", "grants", name);
    await query("select end_grants('w', 'r', $1)", [new Date(AT)]);
    assert.deepEqual(await locked(), ["w r"]);
    assert.deepEqual(await lockedIn(query, "grants", name), []);
  },

  async "locks the grant under which it appends, and no other one"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    await send(query, "r", itemIn("w", { ...last("w", "r"), mode: "append", posts: [postAt("a", 1)] }));
    assert.deepEqual(await lockedIn(query, "grants", "concat_ws(' ', workspace_id, replica)"), ["w r"]);
  },

  async "locks all grants of a workspace before it posts a settlement of the journal"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    await openAll(query, ["v", "w"], ["r", "s"]);
    await done(query, "t", itemIn("w", { posts: [{ ...postAt("x", 1), admittedBy: "gone" }] }));
    assert.deepEqual(await lockedIn(query, "grants", "concat_ws(' ', workspace_id, replica)"), ["w r", "w s"]);
  },

  async "locks accounts before it reads what their limits follow from"(query) {
    for (const w of ["v", "w", "x"]) await openAccount(query, w);
    const locked = await watchLocks(query, "update on accounts", "accounts", "workspace_id");
    await query("select refresh_limits('v', 'w')");
    assert.deepEqual(await locked(), ["v", "w"]);
  },

  async "locks an account before it reads its balance to book credit"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 10 });
    const locked = await watchLocks(query, "update on accounts", "accounts", "workspace_id");
    await query("select book_credit('w', 'grant', 'g', 5)");
    assert.deepEqual(await locked(), ["w"]);
  },

  async "tells replicas that have a grant of a workspace to return what they do not use, and no others"(query) {
    for (const w of ["v", "w", "x"]) await openAccount(query, w, { granted: 1_000 });
    for (const [w, r] of [
      ["v", "r"],
      ["w", "r"],
      ["w", "s"],
    ] as const)
      await done(query, r, itemIn(w, { keep: { ...NOTHING, credit: 600 - 200 * (r === "s" ? 1 : 0) } }));
    assert.deepEqual(await grantsIn(query), ["v r 600 0", "w r 600 0", "w s 400 0"]);
    const messages = await watchMessages(query);
    await query("select call_back('w', 'x')");
    assert.deepEqual(await messages(), ["chorus_call_back w"]);
    await query("select refresh_limits('w')");
    assert.deepEqual(await messages(), ["chorus_call_back w"]);
    // It can be taken back when the replicas have returned what they do not use.
    const [booked] = await query<{ verdict: string }>("select verdict from book_credit('w', 'grant', 'g', -10)");
    assert.deepEqual([booked?.verdict, await messages()], ["reserved", ["chorus_call_back w"]]);
    await query("select book_credit('w', 'grant', 'g', 10)");
    assert.deepEqual(await messages(), []);
  },

  async "calls headroom back once for the asks of an item that it would let pass, and for no other"(query) {
    await openAccount(query, "w", { granted: 100 });
    await done(query, "s", itemIn("w", { keep: { ...NOTHING, credit: 60 } }));
    const messages = await watchMessages(query);
    const called: string[][] = [];
    for (const holds of [[40], [200], [50, 200], [50, 50]]) {
      await done(query, "r", itemIn("w", { asks: holds.map((hold, i) => askOf(`${holds} ${i}`, hold)) }));
      called.push(await messages());
    }
    assert.deepEqual(called, [[], [], ["chorus_call_back w"], ["chorus_call_back w"]]);
  },

  async "calls headroom of each subject back once that would let a request pass, also without a low effort"(query) {
    for (const subject of ["user:u", "user:low", "user:empty"]) {
      const [figure, action] = subject === "user:low" ? ["input_tokens", "low"] : ["credits", "refuse"];
      for (const period of ["day", "week"]) await cap(query, subject, figure, period, 100, { action });
      await share(query, subject, 7, { credit: 60, input: 60, isIdle: subject !== "user:empty" });
    }
    for (const subject of ["user:u", "user:empty"]) await holdOf(query, "q", subject, 0, 30);
    const messages = await watchMessages(query);
    const called: string[][] = [];
    for (const size of [10, 11, 70, 71, 101]) {
      await check(query, ["user:u", "user:low", "user:empty"], size, size);
      called.push((await messages()).map((message) => message.replace("chorus_cap_call_back w ", "")));
    }
    assert.deepEqual(called, [[], ["user:u"], ["user:low", "user:u"], ["user:low"], []]);
  },

  async "calls headroom of a subject back whose budget is used up, because replicas admit with it"(query) {
    await cap(query, "user:u", "credits", "day", 100, { action: "low" });
    await share(query, "user:u", 7, { credit: 40 });
    const messages = await watchMessages(query);
    const called: string[][] = [];
    for (const spent of [99, 100]) {
      await useOf(query, "user:u", { spent: Array(5).fill(spent) });
      await check(query, ["user:u"], 13, 1);
      called.push(await messages());
    }
    assert.deepEqual(called, [[], ["chorus_cap_call_back w user:u"]]);
    // Tokens are counted in headroom, too, so what is left of it says nothing of the budget.
    await cap(query, "user:low", "input_tokens", "day", 100, { action: "low" });
    await share(query, "user:low", 7, { input: 30 });
    await useOf(query, "user:low", { input: Array(5).fill(60) });
    assert.deepEqual(await check(query, ["user:low"], 1, 50), { low: true });
    assert.deepEqual(await messages(), []);
  },

  async "locks the accounts of the workspaces whose settlements it posts"(query) {
    for (const w of ["v", "w", "x"]) await openAccount(query, w);
    await query("insert into settlement_log values ('w', 'r', 1, 0, 0, 0, 0, 0, 0, '[]')");
    const locked = await watchLocks(query, "delete on settlement_log", "accounts", "workspace_id");
    await query("select post_settlements('{v,w}', $1)", [new Date(AT)]);
    assert.deepEqual(await locked(), ["v", "w"]);
  },

  async "sums up what running requests hold, which is nothing without a grant"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    assert.deepEqual(await query("select * from in_use('w')"), [{ held: 0n, running: 0 }]);
    await openAll(query, ["v", "w"], ["r"]);
    await done(query, "s", itemIn("w", { asks: [askOf("a", 10), askOf("b", 5)] }));
    assert.deepEqual(await query("select * from in_use('w')"), [{ held: 115n, running: 3 }]);
  },

  async "counts as answered what was delivered whole, cut short, or streamed until the caller left"(query) {
    const rows = await query<{ text: string }>(
      `select concat(o, case when s then ' streamed' end) as text
       from unnest(array['ok', 'cut_short', 'caller_gone', 'internal']) o, unnest(array[false, true]) s
       where is_answered(o, s) order by 1`,
    );
    assert.deepEqual(
      rows.map(({ text }) => text),
      ["caller_gone streamed", "cut_short", "cut_short streamed", "ok", "ok streamed"],
    );
  },

  async "appends nothing under the grant of another replica or workspace"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    for (const [w, r] of [
      ["w", "s"],
      ["v", "r"],
    ] as const) {
      const item = itemIn("w", { ...last(w, r), mode: "append", posts: [postAt("a", 1)] });
      assert.deepEqual(await send(query, "r", item), { state: "ended" }, `${w} ${r}`);
    }
  },
};
