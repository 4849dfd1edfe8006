import assert from "node:assert/strict";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import type { Query } from "../../src/store/pool.ts";
import { AT, askOf, type Cases, done, itemIn, openAccount, openAll, postAt, send } from "./case-helpers.ts";

const MINUTE = AT - (AT % 60_000);

/** Times of the last items of other replicas, and the windows in which they are. */
const TIMES = [
  [AT, ["minute", "day", "month"]],
  [MINUTE, ["minute", "day", "month"]],
  [MINUTE - 1, ["day", "month"]],
  [Date.UTC(2026, 4, 6), ["day", "month"]],
  [Date.UTC(2026, 4, 6) - 1, ["month"]],
  [Date.UTC(2026, 4, 1), ["month"]],
  [Date.UTC(2026, 4, 1) - 1, []],
] as const;

const PARTS = [
  ["requests", "requests", 1],
  ["input", "input_tokens", 1_000],
  ["output", "output_tokens", 1_000_000],
] as const;

/** Reserves 10, 20, 40, … of each part for other replicas, and counts 7. @returns what is in a window */
async function reserveEverywhere(query: Query): Promise<(unit: string) => number> {
  for (const [i, [at]] of TIMES.entries()) {
    const n = 10 * 2 ** i;
    await query(
      `insert into grants (workspace_id, replica, seq, at, credit_micro, held_micro, running, running_now, requests,
         input_tokens, output_tokens, reply, opened_at)
       values ('w', $1, 1, $2, 0, 0, 0, 0, $3, $4, $5, '{}', $2)`,
      [`other ${i}`, new Date(at), n, 1_000 * n, 1_000_000 * n],
    );
  }
  await query("insert into periods values ('w', $1, '{7,7,7,7}', $2, $3, '{0,0,0,0}', $1)", [
    new Date(AT),
    "{7000,7000,7000,7000}",
    "{7000000,7000000,7000000,7000000}",
  ]);
  return (unit) =>
    7 + TIMES.reduce((sum, [, units], i) => sum + ((units as readonly string[]).includes(unit) ? 10 * 2 ** i : 0), 0);
}

export const RESERVE_CASES: Cases = {
  async "calls nothing back for what only requests of the same replica are in the way of"(query) {
    await openAccount(query, "w", { granted: 100 });
    const refused = { refusal: { refusal: "rate_limited", limit: "held_credit", retry_ms: 1_000 } };
    const item = itemIn("w", { asks: [askOf("a", 60), askOf("b", 50)] });
    const { grant, verdicts } = await done(query, "r", item);
    assert.deepEqual(verdicts, [{}, refused]);
    const next = itemIn("w", { grant, after: item.seq, held: { credit: 60, running: 1 }, asks: [askOf("c", 50)] });
    assert.deepEqual((await done(query, "r", next)).verdicts, [refused]);
  },

  async "says what is left of each limit beside all that is reserved"(query) {
    const spare = { n: 10, credit: 1, input: 2, output: 3 };
    const limits = { requests_per_minute: 100, input_tokens_per_day: 200, output_tokens_per_month: 300 };
    const left: unknown[] = [];
    for (const of of [limits, ...Object.entries(limits).map(([name, limit]) => ({ [name]: limit }))]) {
      for (const table of ["accounts", "grants", "periods"]) await query(`delete from ${table}`);
      await openAccount(query, "w", { granted: 1_000, limits: of });
      left.push((await done(query, "r", itemIn("w", { spare }))).left);
    }
    const parts = {
      requests_per_minute: [100, 90],
      input_tokens_per_day: [200, 180],
      output_tokens_per_month: [300, 270],
    };
    assert.deepEqual(left, [parts, ...Object.entries(parts).map(([name, part]) => ({ [name]: part }))]);
  },

  async "reserves for one of several replicas its part of the requests that can run"(query) {
    await openAccount(query, "w", { granted: 1_000, limits: { concurrent_requests: 60 } });
    const item = itemIn("w", { spare: { n: 100, credit: 1, input: 0, output: 0 } });
    const [reply] = await execute({ query }, "r", 3, [item], AT);
    assert.ok(reply?.state === "done");
    assert.deepEqual([reply.extra.running, reply.extra.credit], [10, 10]);
  },

  async "reserves in advance what all replicas have left of each window"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const sumOf = await reserveEverywhere(query);
    const ask = async (name: string, unit: string, limit: number, keep: object) => {
      await query("update accounts set limits = $1", [JSON.stringify({ [`${name}_per_${unit}`]: limit })]);
      const spare = { n: 1, credit: 0, input: 1_000, output: 1_000_000 };
      return done(query, "r", itemIn("w", { keep: { ...NOTHING, ...keep }, minute: MINUTE, spare }));
    };
    for (const unit of ["minute", "day", "month"]) {
      for (const [part, name, size] of PARTS) {
        // Its own part counts, too.
        const keep = { [part]: 3 * size };
        const all = (sumOf(unit) + 3) * size;
        const extra = async (limit: number) => (await ask(name, unit, limit, keep)).extra[part];
        assert.equal(await extra(all + 2 * size), size, `${name} of the ${unit}`);
        assert.equal(await extra(all + 2 * size - 1), 0, `${name} of the ${unit}`);
        assert.equal((await ask(name, unit, all, keep)).isOver, false, `${name} of the ${unit}`);
        assert.equal((await ask(name, unit, all - 1, keep)).isOver, true, `${name} of the ${unit}`);
        assert.equal((await ask(name, unit, all - 1, {})).isOver, false, `${name} of the ${unit}`);
      }
    }
  },

  async "asks other replicas for what they have reserved in the window of a limit"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const sumOf = await reserveEverywhere(query);
    for (const unit of ["minute", "day", "month"]) {
      for (const [name, size] of [
        ["requests", 1],
        ["input_tokens", 1_000],
      ] as const) {
        const verdict = async (limit: number) => {
          await query("update accounts set limits = $1", [JSON.stringify({ [`${name}_per_${unit}`]: limit })]);
          // Nothing is counted, so that each is like the first.
          const before = await query("select * from periods");
          const { verdicts } = await done(query, "r", itemIn("w", { asks: [askOf("a", 1, 1_000)] }));
          await query("update periods set requests = $1, input_tokens = $2", [
            before[0]?.requests,
            before[0]?.input_tokens,
          ]);
          return verdicts[0];
        };
        const limit = (sumOf(unit) + 1) * size;
        assert.deepEqual(await verdict(limit), {}, `${name} of the ${unit}`);
        const { refusal, calledBack } = (await verdict(limit - 1)) ?? {};
        const { limit: named, retry_ms } = refusal ?? {};
        assert.deepEqual([named, retry_ms, calledBack], [`${name}_per_${unit}`, 1_000, true], `${name} of the ${unit}`);
      }
    }
  },

  async "counts against each limit what one replica alone has, and each ask of an item"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    for (const unit of ["minute", "day", "month"]) {
      await query("delete from periods");
      for (const [part, name] of PARTS) {
        const extra = async (limit: number) => {
          await query("update accounts set limits = $1", [JSON.stringify({ [`${name}_per_${unit}`]: limit })]);
          const spare = { n: 1, credit: 0, input: 1, output: 1 };
          return (await done(query, "r", itemIn("w", { spare }))).extra[part];
        };
        assert.deepEqual([await extra(2), await extra(1)], [1, 0], `${name} of the ${unit}`);
      }
      for (const [name, size] of [
        ["requests", 1],
        ["input_tokens", 3],
      ] as const) {
        await query("delete from periods");
        await query("update accounts set limits = $1", [JSON.stringify({ [`${name}_per_${unit}`]: 2 * size })]);
        const asks = ["a", "b", "c"].map((id) => askOf(id, 1, 3));
        const { verdicts } = await done(query, "r", itemIn("w", { asks }));
        const limits = verdicts.map(({ refusal }) => refusal?.limit);
        assert.deepEqual(limits, [undefined, undefined, `${name}_per_${unit}`]);
      }
    }
  },

  async "admits an ask although output is reserved, and names what is reached without what is reserved"(query) {
    await openAccount(query, "w", { granted: 1_000, limits: { output_tokens_per_day: 5 } });
    await done(query, "s", itemIn("w", { keep: { ...NOTHING, output: 5 }, minute: MINUTE }));
    assert.deepEqual((await done(query, "r", itemIn("w", { asks: [askOf("a", 1)] }))).verdicts, [{}]);
    await query(`update accounts set limits = '{"requests_per_day": 5, "concurrent_requests": 2}'`);
    const held = { credit: 0, running: 2 };
    await done(query, "s", itemIn("w", { keep: { ...NOTHING, requests: 4 }, minute: MINUTE, held }));
    const { verdicts } = await done(query, "r", itemIn("w", { asks: [askOf("b", 1)] }));
    assert.equal(verdicts[0]?.refusal?.limit, "concurrent_requests");
  },

  async "stores what it reserves in advance"(query) {
    const limits = {
      concurrent_requests: 99,
      requests_per_day: 99,
      input_tokens_per_day: 99,
      output_tokens_per_day: 99,
    };
    await openAccount(query, "w", { granted: 1_000, limits });
    await done(query, "r", itemIn("w", { spare: { n: 4, credit: 7, input: 2, output: 3 } }));
    assert.deepEqual(
      await query(`select credit_micro::int as c, running::int as r, requests::int as q, input_tokens::int as i,
        output_tokens::int as o from grants`),
      [{ c: 28, r: 4, q: 4, i: 8, o: 12 }],
    );
  },

  async "says that more is reserved than can be charged or may run, if some of it is not used"(query) {
    const isOver = async (account: object, rest: Parameters<typeof itemIn>[1]) => {
      await query("delete from accounts");
      await openAccount(query, "w", account);
      return (await done(query, "r", itemIn("w", rest))).isOver;
    };
    const credit = { keep: { ...NOTHING, credit: 5 } };
    assert.equal(await isOver({ granted: 5 }, credit), false);
    assert.equal(await isOver({ granted: 4 }, credit), true);
    assert.equal(await isOver({ granted: 4 }, { held: { credit: 5, running: 1 } }), false);
    const running = { keep: { ...NOTHING, running: 2 }, spare: { n: 1, credit: 0, input: 0, output: 0 } };
    assert.equal(await isOver({ limits: { concurrent_requests: 2 } }, running), false);
    assert.equal(await isOver({ limits: { concurrent_requests: 1 } }, running), true);
  },

  async "gives a key that has expired to the next request"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const day = 86_400_000;
    const ask = (id: string, body: string) => ({ ...askOf(id, 1), key: "01", body });
    await done(query, "r", itemIn("w", { asks: [ask("a", "0a")] }));
    await query("update idempotency set response = 'r'");
    await done(query, "r", itemIn("w", { asks: [ask("b", "0b")] }), AT + day);
    assert.deepEqual(
      await query(`select request_id, encode(body, 'hex') as body, response, expires_at,
        grant_id = (select max(id) from grants) as own from idempotency`),
      [{ request_id: "b", body: "0b", response: null, expires_at: new Date(AT + 2 * day), own: true }],
    );
  },

  async "stores what an item keeps, of a new grant and of one that goes on"(query) {
    const limits = {
      concurrent_requests: 9,
      requests_per_day: 99,
      input_tokens_per_day: 99,
      output_tokens_per_day: 99,
    };
    await openAccount(query, "w", { granted: 1_000, limits });
    const keep = (n: number) => ({ credit: n, running: n + 1, requests: n + 2, input: n + 3, output: n + 4 });
    const stored = () =>
      query(
        "select credit_micro::int as c, running::int as r, requests::int as q, input_tokens::int as i, " +
          "output_tokens::int as o from grants",
      );
    const first = itemIn("w", { keep: keep(1), minute: MINUTE });
    const { grant } = await done(query, "r", first);
    assert.deepEqual(await stored(), [{ c: 1, r: 2, q: 3, i: 4, o: 5 }]);
    await done(query, "r", itemIn("w", { grant, after: first.seq, keep: keep(5), minute: MINUTE }));
    assert.deepEqual(await stored(), [{ c: 5, r: 6, q: 7, i: 8, o: 9 }]);
  },

  async "numbers a grant anew that its replica does not know, and goes on with that number"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const { grant: before } = await done(query, "r", itemIn("w", { asks: [askOf("a", 1)] }));
    const item = itemIn("w", { asks: [askOf("b", 1)] });
    const { grant } = await done(query, "r", item);
    assert.notEqual(grant, before);
    assert.equal((await send(query, "r", itemIn("w", { grant, after: item.seq })))?.state, "done");
  },

  async "checks an ask against what the posts of its item have left"(query) {
    await openAccount(query, "w", { granted: 100 });
    // Posted alone, because the item keeps a part of the minute.
    const keep = { ...NOTHING, requests: 1 };
    const item = itemIn("w", {
      keep,
      minute: MINUTE,
      posts: [postAt("a", 60)],
      asks: [askOf("b", 41), askOf("c", 40)],
    });
    const { verdicts } = await done(query, "r", item);
    assert.deepEqual(verdicts, [{ refusal: { refusal: "insufficient_credit" } }, {}]);
  },

  async "posts what waits in the log of its workspace, also if no other one has something there"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const last = await openAll(query, ["w"], ["r", "s"]);
    const posts = [postAt("w r", 10)];
    await send(query, "r", itemIn("w", { ...last("w", "r"), mode: "append", posts }));
    await done(query, "s", itemIn("w", last("w", "s")));
    assert.deepEqual(await query("select from settlement_log"), []);
  },

  async "leaves the session as it was"(query) {
    await done(query, "r", itemIn("nobody"));
    await query("commit");
    assert.deepEqual(await query("select current_setting('synchronous_commit') as s"), [{ s: "on" }]);
    await query("begin");
  },
};
