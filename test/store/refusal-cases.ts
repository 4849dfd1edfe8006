import assert from "node:assert/strict";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import type { Query } from "../../src/store/pool.ts";
import { AT, askOf, type Cases, done, itemIn, openAccount } from "./case-helpers.ts";

const MINUTE_LEFT = 51_000;
const DAY_LEFT = Date.UTC(2026, 4, 7) - AT;
const WEEK_LEFT = Date.UTC(2026, 4, 11) - AT;
const MONTH_LEFT = Date.UTC(2026, 5, 1) - AT;

/** What a workspace has used, by minute, day, week and month, before it asks. */
interface State {
  granted?: number;
  purchased?: number;
  limits?: object;
  spend?: object;
  used?: Partial<Record<"requests" | "input_tokens" | "output_tokens" | "spent_micro", string>>;
  /** Hold of a request of another replica that runs. */
  running?: number;
}

/** Why a request of hold 10 and 5 tokens is refused. */
async function refusal(query: Query, { used = {}, running, ...account }: State): Promise<unknown> {
  for (const table of ["accounts", "periods", "grants"]) await query(`delete from ${table}`);
  await openAccount(query, "w", account);
  const counts = { requests: "{0,0,0,0}", input_tokens: "{0,0,0,0}", output_tokens: "{0,0,0,0}", ...used };
  const { requests, input_tokens: input, output_tokens: output, spent_micro: spent = "{0,0,0,0}" } = counts;
  const at = new Date(AT);
  await query("insert into periods values ('w', $1, $2, $3, $4, $5, $1)", [at, requests, input, output, spent]);
  const held = { credit: running ?? 0, running: running === undefined ? 0 : 1 };
  await done(query, "s", itemIn("w", { held, keep: NOTHING }));
  const { verdicts } = await done(query, "r", itemIn("w", { asks: [askOf("a", 10, 5)] }));
  return verdicts[0]?.refusal;
}

const rate = (limit: string, retry_ms: number) => ({ refusal: "rate_limited", limit, retry_ms });
const never = (limit: string) => ({ refusal: "rate_limited", limit, never: true });
const SPENT = { refusal: "spend_limit_reached" };

export const REFUSAL_CASES: Cases = {
  async "refuses what exceeds a limit of a window until it ends, the longest wait first"(query) {
    const granted = 1_000;
    const check = async (limits: object, used: State["used"], expected: unknown) =>
      assert.deepEqual(await refusal(query, { granted, limits, used: used ?? {} }), expected, JSON.stringify(limits));
    for (const [unit, left, i] of [
      ["minute", MINUTE_LEFT, 0],
      ["day", DAY_LEFT, 1],
      ["month", MONTH_LEFT, 3],
    ] as const) {
      const of = (n: number) => `{${[0, 0, 0, 0].with(i, n)}}`;
      await check({ [`requests_per_${unit}`]: 3 }, { requests: of(2) }, undefined);
      await check({ [`requests_per_${unit}`]: 3 }, { requests: of(3) }, rate(`requests_per_${unit}`, left));
      await check({ [`requests_per_${unit}`]: 0 }, {}, never(`requests_per_${unit}`));
      await check({ [`requests_per_${unit}`]: 1 }, {}, undefined);
      await check({ [`input_tokens_per_${unit}`]: 8 }, { input_tokens: of(3) }, undefined);
      await check({ [`input_tokens_per_${unit}`]: 8 }, { input_tokens: of(4) }, rate(`input_tokens_per_${unit}`, left));
      await check({ [`input_tokens_per_${unit}`]: 5 }, {}, undefined);
      await check({ [`input_tokens_per_${unit}`]: 4 }, {}, never(`input_tokens_per_${unit}`));
      await check({ [`output_tokens_per_${unit}`]: 8 }, { output_tokens: of(7) }, undefined);
      await check(
        { [`output_tokens_per_${unit}`]: 8 },
        { output_tokens: of(8) },
        rate(`output_tokens_per_${unit}`, left),
      );
      await check({ [`output_tokens_per_${unit}`]: 0 }, {}, never(`output_tokens_per_${unit}`));
      await check({ [`output_tokens_per_${unit}`]: 1 }, {}, undefined);
      await check(
        { [`output_tokens_per_${unit}`]: 1 },
        { output_tokens: of(1) },
        rate(`output_tokens_per_${unit}`, left),
      );
    }
    const all = { requests_per_minute: 1, requests_per_day: 1, input_tokens_per_month: 5 };
    await check(all, { requests: "{1,1,1,1}", input_tokens: "{1,1,1,1}" }, rate("input_tokens_per_month", MONTH_LEFT));
    await check(all, { requests: "{1,1,1,1}" }, rate("requests_per_day", DAY_LEFT));
    await check({ ...all, output_tokens_per_minute: 0 }, { requests: "{1,1,1,1}" }, never("output_tokens_per_minute"));
  },

  async "refuses while as many run as may, and names a longer wait first"(query) {
    const limits = { concurrent_requests: 1, requests_per_minute: 1 };
    const granted = 1_000;
    assert.equal(await refusal(query, { granted, limits }), undefined);
    assert.deepEqual(await refusal(query, { granted, limits, running: 1 }), rate("concurrent_requests", 1_000));
    assert.deepEqual(
      await refusal(query, { granted, limits, running: 1, used: { requests: "{1,1,1,1}" } }),
      rate("requests_per_minute", MINUTE_LEFT),
    );
    assert.deepEqual(
      await refusal(query, { granted, limits: { concurrent_requests: 0 } }),
      never("concurrent_requests"),
    );
  },

  async "refuses what exceeds a spend limit, by purchased credit only"(query) {
    const check = async (state: State, expected: unknown) =>
      assert.deepEqual(await refusal(query, state), expected, JSON.stringify(state));
    for (const [unit, left, i] of [
      ["day", DAY_LEFT, 1],
      ["week", WEEK_LEFT, 2],
      ["month", MONTH_LEFT, 3],
    ] as const) {
      const spent_micro = `{${[0, 0, 0, 0].with(i, 91)}}`;
      const state = { purchased: 1_000, spend: { [unit]: 100 }, used: { spent_micro } };
      await check(state, { ...SPENT, retry_ms: left });
      await check({ ...state, granted: 1 }, undefined);
      await check({ ...state, spend: { [unit]: 101 } }, undefined);
      await check({ ...state, granted: 1, running: 1 }, rate("held_credit", 1_000));
      await check({ ...state, granted: 2, running: 1 }, undefined);
      await check({ purchased: 1_000, spend: { [unit]: 9 } }, { ...SPENT, never: true });
      await check({ purchased: 1_000, spend: { [unit]: 10 } }, undefined);
      await check({ purchased: 1_000, granted: 1, spend: { [unit]: 9 } }, undefined);
      await check({ ...state, granted: 1, spend: { [unit]: 9 } }, { ...SPENT, retry_ms: left });
      // The limit was lowered to less than what was spent.
      await check({ ...state, granted: 10, spend: { [unit]: 9 } }, undefined);
      await check({ ...state, granted: 11, running: 1, spend: { [unit]: 9 } }, undefined);
      await check({ ...state, granted: 10, running: 1, spend: { [unit]: 9 } }, rate("held_credit", 1_000));
    }
    const spent_micro = "{0,91,91,91}";
    const spend = { day: 100, week: 100, month: 200 };
    await check({ purchased: 1_000, spend, used: { spent_micro } }, { ...SPENT, retry_ms: WEEK_LEFT });
    await check({ purchased: 1_000, spend: { ...spend, day: 9 }, used: { spent_micro } }, { ...SPENT, never: true });
    await check({ granted: 1_000, spend: { day: 0 } }, undefined);
  },

  async "can charge the granted credit, and of the purchased credit what each spend limit leaves"(query) {
    const capacity = async (spend: object) => {
      await query("delete from accounts");
      await openAccount(query, "w", { granted: 7, purchased: 100, spend });
      const rows = await query("select credit_capacity(a, p)::int as c from accounts a, periods p");
      return rows[0]?.c;
    };
    await query(
      "insert into periods values ('w', now(), '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}', '{1,20,30,40}', now())",
    );
    for (const [spend, most] of [
      [{}, 107],
      [{ day: 50 }, 37],
      [{ week: 50 }, 27],
      [{ month: 50 }, 17],
      [{ day: 19 }, 7],
      [{ day: 500, week: 500, month: 500 }, 107],
    ] as const)
      assert.equal(await capacity(spend), most, JSON.stringify(spend));
  },

  async "refuses what exceeds the balance, with a wait if only what runs is in the way"(query) {
    const check = async (state: State, expected: unknown) =>
      assert.deepEqual(await refusal(query, state), expected, JSON.stringify(state));
    await check({ granted: 4, purchased: 6 }, undefined);
    await check({ granted: 4, purchased: 5 }, { refusal: "insufficient_credit" });
    await check({ granted: 4, purchased: 7, running: 1 }, undefined);
    await check({ granted: 4, purchased: 7, running: 2 }, rate("held_credit", 1_000));
  },
};
