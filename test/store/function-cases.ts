import assert from "node:assert/strict";
import { type Item, NOTHING } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import { CAP_CASES } from "./cap-cases.ts";
import { CAP_RULE_CASES } from "./cap-rule-cases.ts";
import { AT, askOf, type Cases, done, grantsIn, itemIn, openAccount, openAll, postAt, send } from "./case-helpers.ts";
import { LIMIT_CASES } from "./limit-cases.ts";
import { LOCK_CASES } from "./lock-cases.ts";
import { POST_CASES } from "./post-cases.ts";
import { REFUSAL_CASES } from "./refusal-cases.ts";
import { RESERVE_CASES } from "./reserve-cases.ts";
import { SETTLE_CASES } from "./settle-cases.ts";
import { SHARE_CASES } from "./share-cases.ts";
import { SUBJECT_GRANT_CASES } from "./subject-grant-cases.ts";
import { WINDOW_CASES } from "./window-cases.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

const append = (w: string, of: { after: number; grant: number }, request: string): Item =>
  itemIn(w, { ...of, mode: "append", held: { credit: 0, running: 0 }, posts: [postAt(request, 10)] });

const EXCHANGE_CASES: Cases = {
  async "waits for the disk only if there are posts"(query) {
    const setting = async () => (await query<{ s: string }>("select current_setting('synchronous_commit') as s"))[0]?.s;
    await openAccount(query, "w", { granted: 100 });
    await done(query, "r", itemIn("w", { posts: [postAt("a", 1)] }));
    assert.equal(await setting(), "on");
    await done(query, "r", itemIn("w"));
    assert.equal(await setting(), "off");
  },

  async "reads the clock if it gets no time"(query) {
    await openAccount(query, "w", { granted: 100 });
    const now = async () => (await query<{ now: Date }>("select clock_timestamp() as now"))[0]?.now.getTime() ?? 0;
    const before = await now();
    await execute({ query }, "r", 1, [itemIn("w", { asks: [askOf("a", 1)] })]);
    const [row] = await query<{ at: Date }>("select at from periods");
    assert.ok(row && row.at.getTime() >= before && row.at.getTime() <= (await now()));
  },

  async "refuses each request of a workspace that is not there, and charges nothing"(query) {
    const asks = [askOf("a", 1), askOf("b", 2)];
    const extra = { credit: 0, running: 0, requests: 0, input: 0, output: 0 };
    const refused = { refusal: { refusal: "unauthenticated" } };
    const reply = { state: "done", grant: 0, extra, minute: 0, msLeft: 0, isOver: false };
    assert.deepEqual(await send(query, "r", itemIn("w", { asks, posts: [postAt("c", 5)] })), {
      ...reply,
      verdicts: [refused, refused],
      charges: { c: 0 },
    });
    assert.deepEqual(await send(query, "r", itemIn("w")), { ...reply, verdicts: [], charges: {} });
  },

  async "does not answer an older item, and repeats its answer to the last one"(query) {
    await openAccount(query, "w", { granted: 100 });
    const [first, second] = [itemIn("w", { asks: [askOf("a", 1)] }), itemIn("w", { asks: [askOf("b", 2)] })];
    const { grant } = await done(query, "r", first);
    const last = await done(query, "r", { ...second, grant, after: first.seq });
    assert.equal(await send(query, "r", first), undefined);
    assert.deepEqual(await send(query, "r", second), last);
  },

  async "does not execute an item that keeps a part of a minute that is over"(query) {
    await openAccount(query, "w", { granted: 100 });
    for (const part of ["requests", "input", "output"] as const) {
      const minute = AT - (AT % 60_000);
      const keep = { ...NOTHING, [part]: 1 };
      assert.deepEqual(await send(query, part, itemIn("w", { keep, minute: minute - 60_000 })), { state: "again" });
      assert.equal((await send(query, part, itemIn("w", { keep, minute })))?.state, "done");
    }
  },

  async "returns what a part is without a limit, whatever else is kept"(query) {
    await openAccount(query, "w", { granted: 100 });
    const limitless = { running: LIMITLESS, requests: LIMITLESS, input: LIMITLESS, output: LIMITLESS };
    const extra = async (rest: Partial<Item>) => (await done(query, "r", itemIn("w", rest))).extra;
    assert.deepEqual(await extra({ keep: NOTHING }), { ...NOTHING });
    for (const part of ["running", "requests", "input", "output"] as const) {
      assert.deepEqual(await extra({ keep: { ...NOTHING, [part]: LIMITLESS } }), { credit: 0, ...limitless });
    }
    assert.deepEqual(await extra({ keep: { ...NOTHING, credit: 1 } }), { credit: 0, ...limitless });
    assert.deepEqual(await extra({ spare: { n: 1, credit: 1, input: 0, output: 0 } }), { credit: 1, ...limitless });
  },

  async "keeps a grant that is to be closed while something is held or runs"(query) {
    await openAccount(query, "w", { granted: 100 });
    await done(query, "r", itemIn("w", { close: true, asks: [askOf("a", 7)] }));
    await done(query, "s", itemIn("w", { close: true, asks: [askOf("b", 0)] }));
    await done(query, "t", itemIn("w", { close: true, keep: { ...NOTHING, credit: 3 } }));
    await done(query, "u", itemIn("w", { close: true }));
    assert.deepEqual(await grantsIn(query), ["w r 7 7", "w s 0 0", "w t 3 0"]);
  },

  async "counts a limit of running requests that is new for its replica"(query) {
    await openAccount(query, "w", { granted: 100, limits: { concurrent_requests: 5 } });
    await done(query, "r", itemIn("w", { keep: { ...NOTHING, running: LIMITLESS }, held: { credit: 9, running: 2 } }));
    assert.deepEqual(await query("select running::int, running_now::int from grants"), [
      { running: 2, running_now: 2 },
    ]);
  },

  async "notes when a grant was opened"(query) {
    await openAccount(query, "w", { granted: 100 });
    const first = itemIn("w", { asks: [askOf("a", 1)] });
    const { grant } = await done(query, "r", first);
    await done(query, "r", itemIn("w", { grant, after: first.seq }), AT + 5_000);
    assert.deepEqual(await query("select opened_at, at from grants"), [
      { opened_at: new Date(AT), at: new Date(AT + 5_000) },
    ]);
  },

  async "replaces only the grant of its replica and workspace"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    await openAll(query, ["v", "w"], ["r", "s"]);
    await done(query, "r", itemIn("w"));
    assert.deepEqual(await grantsIn(query), ["v r 100 100", "v s 100 100", "w r 0 0", "w s 100 100"]);
    await done(query, "r", itemIn("w", { close: true }));
    assert.deepEqual(await grantsIn(query), ["v r 100 100", "v s 100 100", "w s 100 100"]);
  },

  async "posts what waits in the log of its workspaces first"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    for (const w of ["v", "w"]) await send(query, "r", append(w, last(w, "r"), `${w} r`));
    await done(query, "s", itemIn("w", { ...last("w", "s"), held: { credit: 100, running: 1 } }));
    assert.deepEqual(await query("select workspace_id as w from settlement_log"), [{ w: "v" }]);
    assert.deepEqual(await query("select granted_micro::int as left from accounts order by workspace_id"), [
      { left: 1_000 },
      { left: 990 },
    ]);
  },

  async "counts requests that were admitted at the start of a minute in it, and none of an earlier minute"(query) {
    await openAccount(query, "w", { granted: 100 });
    const start = AT - (AT % 60_000);
    const counts = async () => (await query<{ requests: string[] }>("select requests from periods"))[0]?.requests;
    const first = itemIn("w", { keep: { ...NOTHING, credit: 1 } });
    const { grant } = await done(query, "r", first, start);
    const second = itemIn("w", { grant, after: first.seq, used: { requests: 2, input: 0 } });
    await done(query, "r", second, start + 100);
    assert.deepEqual(await counts(), ["2", "2", "2", "2"]);
    const third = itemIn("w", { grant, after: second.seq, used: { requests: 1, input: 0 } });
    await done(query, "r", third, start + 60_000);
    assert.deepEqual(await counts(), ["0", "3", "3", "3"]);
  },
};

const APPEND_CASES: Cases = {
  async "appends after the last item, posted or not, of the replica in the workspace"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    let after = last("w", "r");
    for (let i = 0; i < 3; i++) {
      const item = append("w", after, `a${i}`);
      assert.deepEqual(await send(query, "r", item), { state: "appended" });
      after = { ...after, after: item.seq };
    }
    // What others have appended does not count.
    for (const [w, r] of [
      ["v", "r"],
      ["w", "s"],
    ] as const)
      assert.deepEqual(await send(query, r, append(w, last(w, r), `${w} ${r}`)), { state: "appended" }, `${w} ${r}`);
    assert.deepEqual(await send(query, "r", append("w", last("w", "r"), "old")), { state: "ended" });
    assert.deepEqual(await send(query, "r", append("w", { ...after, grant: -1 }, "other")), { state: "ended" });
    await query("select post_settlements(array['w'])");
    assert.deepEqual(await send(query, "r", append("w", after, "b")), { state: "appended" });
  },

  async "ends only the grants of the replica in the workspace, and says how many"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    for (const w of ["v", "w"]) await send(query, "r", append(w, last(w, "r"), `${w} r`));
    const end = (w: string, r: string) => query(`select end_grants('${w}', '${r}', $1) as ended`, [new Date(AT)]);
    assert.deepEqual(await end("w", "r"), [{ ended: 1 }]);
    assert.deepEqual(await end("w", "r"), [{ ended: 0 }]);
    assert.deepEqual(await grantsIn(query), ["v r 100 100", "v s 100 100", "w s 100 100"]);
    assert.deepEqual(await query("select workspace_id as w from settlement_log"), [{ w: "v" }]);
  },
};

/** All cases. */
export const CASES: Cases = {
  ...EXCHANGE_CASES,
  ...APPEND_CASES,
  ...SETTLE_CASES,
  ...LIMIT_CASES,
  ...REFUSAL_CASES,
  ...RESERVE_CASES,
  ...CAP_CASES,
  ...CAP_RULE_CASES,
  ...POST_CASES,
  ...WINDOW_CASES,
  ...SHARE_CASES,
  ...SUBJECT_GRANT_CASES,
  ...LOCK_CASES,
};
