import assert from "node:assert/strict";
import type { Query } from "../../src/store/pool.ts";
import { AT, askOf, type Cases, done, itemIn, openAccount, postAt } from "./case-helpers.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

async function one<T>(query: Query, sql: string, values: unknown[] = []): Promise<T> {
  const [row] = await query<Record<string, T>>(sql, values);
  return Object.values(row ?? {})[0] as T;
}

const text = (at: number): string => new Date(at).toISOString();

/** Time of the windows and their counters at a reading of the clock. At `at`, when it read `clock`, each was 1. */
async function periodsAt(query: Query, at: number, clock: number | null, reading: number): Promise<string> {
  await query("delete from periods");
  const ones = "{1,1,1,1}";
  await query("insert into periods values ('w', $1, $2, $2, $2, $2, $3)", [
    text(at),
    ones,
    clock === null ? null : text(clock),
  ]);
  const rows = await query<{ at: Date; clock: Date; counts: string }>(
    `select at, clock, concat_ws(' ', array_to_string(requests, ''), array_to_string(input_tokens, ''),
       array_to_string(output_tokens, ''), array_to_string(spent_micro, '')) as counts from periods_at('w', $1)`,
    [text(reading)],
  );
  const [row] = rows;
  assert.equal(row?.clock.getTime(), reading);
  const [counts = "", ...others] = row?.counts.split(" ") ?? [];
  for (const other of others) assert.equal(other, counts);
  return `${(row?.at.getTime() ?? 0) - at} ${counts}`;
}

const PERIOD_CASES: Cases = {
  async "ends each window when the clock reaches its end"(query) {
    const at = Date.UTC(2026, 3, 29, 10, 20, 30);
    for (const [reading, counts] of [
      [at, "1111"],
      [Date.UTC(2026, 3, 29, 10, 20, 59, 999), "1111"],
      [Date.UTC(2026, 3, 29, 10, 21), "0111"],
      [Date.UTC(2026, 3, 29, 23, 59, 59, 999), "0111"],
      [Date.UTC(2026, 3, 30), "0011"],
      [Date.UTC(2026, 4, 1), "0010"],
      [Date.UTC(2026, 4, 4), "0000"],
    ] as const)
      assert.equal(await periodsAt(query, at, at, reading), `${reading - at} ${counts}`, text(reading));
  },

  async "advances at half the speed of a clock that is behind by up to a day"(query) {
    const at = AT;
    const half = (clock: number | null, reading: number) => periodsAt(query, at, clock, reading);
    assert.equal(await half(at - HOUR, at - HOUR), "0 1111");
    assert.equal(await half(at - HOUR, at - HOUR + 20_000), "10000 1111");
    assert.equal(await half(at - HOUR, at - 2 * HOUR), "0 1111");
    assert.equal(await half(null, at - HOUR), "0 1111");
    assert.equal(await half(at - HOUR, at), "0 1111");
    assert.equal(await half(at - HOUR, at + 1_000), "1000 1111");
    assert.equal(await half(at - DAY, at - DAY), "0 1111");
    assert.equal(await half(at - DAY, at - DAY - 1), `${-DAY - 1} 1111`);
    // A minute ends at half the speed, too.
    assert.equal(await half(at - HOUR, at - HOUR + 2 * MINUTE), `${MINUTE} 0111`);
  },

  async "has counters of 0 for a workspace without any"(query) {
    const [row] = await query("select * from periods_at('w', $1)", [text(AT)]);
    const none = ["0", "0", "0", "0"];
    const counts = { requests: none, input_tokens: none, output_tokens: none, spent_micro: none };
    assert.deepEqual(row, { workspace_id: "w", at: new Date(AT), ...counts, clock: new Date(AT) });
  },

  async "says when a window ends, also while the clock is behind"(query) {
    const left = (unit: string, at: string, clock: string) =>
      one<string>(query, "select ms_left_in_period($1, $2, $3)::float8", [unit, at, clock]);
    assert.equal(await left("minute", "2026-05-06 07:08:50Z", "2026-05-06 07:08:50Z"), 10_000);
    assert.equal(await left("minute", "2026-05-06 07:08:50.0005Z", "2026-05-06 07:08:50.0005Z"), 9_999.5);
    assert.equal(await left("week", "2026-05-06Z", "2026-05-06Z"), 5 * DAY);
    assert.equal(await left("month", "2026-02-27Z", "2026-02-27Z"), 2 * DAY);
    // An hour behind: at half the speed. 15 s behind: at half the speed until the clock has caught up.
    assert.equal(await left("minute", "2026-05-06 07:08:50Z", "2026-05-06 06:08:50Z"), 20_000);
    assert.equal(await left("minute", "2026-05-06 07:08:50Z", "2026-05-06 07:08:35Z"), 25_000);
    assert.equal(await left("minute", "2026-05-06 07:08:50Z", "2026-05-06 07:08:30Z"), 30_000 - 10_000 + 10_000);
    assert.equal(await left("minute", "2026-05-06 07:08:50Z", "2026-05-06 07:08:29Z"), 20_000);
  },
};

const TIER_CASES: Cases = {
  async "puts a workspace into the last tier that it has reached, or the one that an operator has set"(query) {
    await query("delete from tiers");
    for (const [i, [name, threshold, limits]] of [
      ["free", 0, '{"a": 1, "b": 2}'],
      ["one", 10, '{"a": 3}'],
      ["two", 20, "{}"],
      ["special", null, '{"c": 4}'],
    ].entries())
      await query("insert into tiers values ($1, $2, $3, $4)", [name, i, threshold, limits]);
    const tier = async (total: number, override: string | null, overrides: string) => {
      const [row] = await query<{ tier: string; limits: object }>("select * from limits_in_force($1, $2, $3)", [
        total,
        override,
        overrides,
      ]);
      return `${row?.tier} ${JSON.stringify(row?.limits)}`;
    };
    assert.equal(await tier(9, null, "{}"), 'free {"a":1,"b":2}');
    assert.equal(await tier(10, null, '{"b": 9}'), 'one {"a":3,"b":9}');
    assert.equal(await tier(25, "gone", "{}"), "two {}");
    assert.equal(await tier(25, "special", '{"d": null, "a": null}'), 'special {"c":4}');
    assert.equal(await tier(25, "free", '{"a": null}'), 'free {"b":2}');
  },

  async "computes the limits of the named workspaces anew, and of no other"(query) {
    for (const w of ["u", "v", "w"]) await openAccount(query, w, { limits: { old: 1 } });
    await query("update accounts set overrides = '{\"new\": 2}'");
    await query("select refresh_limits('u', 'w')");
    assert.deepEqual(
      (await query<{ limits: object }>("select limits from accounts order by workspace_id")).map(
        ({ limits }) => limits,
      ),
      [{ new: 2 }, { old: 1 }, { new: 2 }],
    );
  },
};

/** The verdict of a booking, with the balances and the held credit that it answers. */
async function book(query: Query, kind: string, reference: string, amount: bigint | number, at: number | null = AT) {
  const [row] = await query<Record<string, unknown>>(
    "select verdict, granted::text, purchased::text, held::text from book_credit('w', $1, $2, $3, $4)",
    [kind, reference, amount, at === null ? null : text(at)],
  );
  return Object.values(row ?? {}).join(" ");
}

const BOOKING_CASES: Cases = {
  async "books a reference once, of one kind and amount"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w);
    await query("select book_credit('v', 'grant', 'a', 1)");
    assert.equal(await book(query, "grant", "a", 100), "booked 100 0 0");
    assert.equal(await book(query, "grant", "a", 100), "earlier 100 0 0");
    assert.equal(await book(query, "purchase", "a", 100), "other 100 0 0");
    assert.equal(await book(query, "grant", "a", 101), "other 100 0 0");
    assert.equal(await book(query, "purchase", "b", 50), "booked 100 50 0");
    assert.equal(await book(query, "grant", "c", -30), "booked 70 50 0");
    const ledger = await query(
      `select concat_ws(' ', kind, reference, granted_micro, purchased_micro) as entry from ledger
       where workspace_id = 'w' order by id`,
    );
    assert.deepEqual(
      ledger.map(({ entry }) => entry),
      ["grant a 100 0", "purchase b 0 50", "adjustment c -30 0"],
    );
    assert.equal(await one(query, "select purchased_total_micro::int from accounts where workspace_id = 'w'"), 50);
    const at = await one<Date>(query, "select booked_at from book_credit('w', 'grant', 'a', 100, '2026-06-01Z')");
    assert.equal(at.getTime(), AT);
  },

  async "takes back only what is neither held nor reserved"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await openAccount(query, "v", { granted: 1_000 });
    await done(query, "r", itemIn("v", { asks: [askOf("b", 999)] }));
    await done(query, "r", itemIn("w", { asks: [askOf("a", 300)], spare: { n: 4, credit: 50, input: 0, output: 0 } }));
    assert.equal(await book(query, "grant", "a", -701), "too_low 1000 0 300");
    assert.equal(await book(query, "grant", "b", -700), "reserved 1000 0 300");
    assert.equal(await book(query, "grant", "c", -501), "reserved 1000 0 300");
    assert.equal(await book(query, "grant", "d", -500), "booked 500 0 300");
    await query("update accounts set granted_micro = 100, purchased_micro = 900 where workspace_id = 'w'");
    assert.equal(await book(query, "grant", "e", -1), "too_low 100 900 300");
  },

  async "books up to a trillion credits of each kind"(query) {
    const most = 10n ** 18n;
    await openAccount(query, "w");
    assert.equal(await book(query, "grant", "a", most + 1n), "too_high 0 0 0");
    assert.equal(await book(query, "grant", "a", most), `booked ${most} 0 0`);
    assert.equal(await book(query, "grant", "b", 1), `too_high ${most} 0 0`);
    assert.equal(await book(query, "purchase", "c", most + 1n), `too_high ${most} 0 0`);
    assert.equal(await book(query, "purchase", "d", most), `booked ${most} ${most} 0`);
    await query("update accounts set purchased_micro = 0");
    assert.equal(await book(query, "purchase", "e", 1), `too_high ${most} 0 0`);
  },

  async "computes the limits anew after a purchase, and reads the clock if it gets no time"(query) {
    await openAccount(query, "w", { limits: { old: 1 } });
    const limits = () => one<object>(query, "select limits from accounts");
    const before = await one<Date>(query, "select clock_timestamp()");
    await book(query, "grant", "a", 5, null);
    assert.deepEqual(await limits(), { old: 1 });
    await book(query, "purchase", "b", 5, null);
    assert.deepEqual(await limits(), {});
    const at = await one<Date>(query, "select min(at) from ledger");
    assert.ok(at >= before && at <= (await one<Date>(query, "select clock_timestamp()")));
  },
};

const KEY_CASES: Cases = {
  async "keeps the response of a key, and frees the key of its own request only"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await openAccount(query, "v", { granted: 1_000 });
    const keyed = (id: string, key: string) => ({ ...askOf(id, 10), key, body: "0b" });
    const item = itemIn("w", { asks: [keyed("a", "01"), keyed("b", "02"), keyed("c", "03"), keyed("d", "04")] });
    const { grant } = await done(query, "r", item);
    await done(query, "r", itemIn("v", { asks: [keyed("a", "01"), keyed("b", "02")] }));
    const end = (id: string, key: string, response?: string) =>
      postAt(id, 1, { key, body: "0b", ...(response ? { response } : {}) });
    const next = itemIn("w", {
      ...{ grant, after: item.seq, held: { credit: 10, running: 1 } },
      posts: [end("a", "01", "YQ=="), end("b", "02"), end("x", "03", "eA=="), end("y", "04"), end("e", "05", "ZQ==")],
      freed: [
        { requestId: "a", key: "01" },
        { requestId: "z", key: "03" },
      ],
    });
    await done(query, "r", next);
    const keys = await query<{ k: string }>(
      `select concat_ws(' ', workspace_id, encode(key, 'hex'), request_id, encode(response, 'base64')) as k
       from idempotency order by 1`,
    );
    assert.deepEqual(
      keys.map(({ k }) => k),
      ["v 01 a", "v 02 b", "w 01 a YQ==", "w 03 c", "w 04 d"],
    );
    const last = itemIn("w", { grant, after: next.seq, freed: [{ requestId: "c", key: "03" }] });
    await done(query, "r", last);
    assert.equal(await one(query, "select count(*)::int from idempotency where workspace_id = 'w'"), 2);
  },

  async "takes the key of a late answer again for a day, if nothing uses it"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await done(query, "r", itemIn("w", { asks: [{ ...askOf("a", 10), key: "01", body: "0b" }] }));
    const late = (id: string, key: string) => ({
      ...postAt(id, 1, { key, body: "0c", response: "YQ==" }),
      admittedBy: "gone",
    });
    await done(query, "s", itemIn("w", { posts: [late("x", "01"), late("y", "02"), late("z", "02")] }));
    const keys = await query<{ k: string }>(
      `select concat_ws(' ', encode(key, 'hex'), encode(body, 'hex'), request_id, encode(response, 'base64'),
         grant_id is null, expires_at = $1) as k from idempotency order by 1`,
      [text(AT + DAY)],
    );
    assert.deepEqual(
      keys.map(({ k }) => k),
      ["01 0b a f t", "02 0c y YQ== t t"],
    );
  },

  async "answers for a key what its earlier request means"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const keyed = (id: string, key: string, body = "0b") => ({ ...askOf(id, 10), key, body });
    const verdict = async (replica: string, ask: ReturnType<typeof keyed>, at = AT) =>
      (await done(query, replica, itemIn("w", { asks: [ask] }), at)).verdicts[0];
    const twice = itemIn("w", { asks: [keyed("x", "02"), keyed("y", "02")] });
    assert.deepEqual((await done(query, "t", twice)).verdicts, [
      {},
      { refusal: { refusal: "idempotency_key_in_use", retry_ms: 1_000 } },
    ]);
    assert.deepEqual(await verdict("r", keyed("a", "01")), {});
    assert.deepEqual(await verdict("s", keyed("b", "01")), {
      refusal: { refusal: "idempotency_key_in_use", retry_ms: 1_000 },
    });
    assert.deepEqual(await verdict("s", keyed("b", "01", "0c")), { refusal: { refusal: "idempotency_key_reused" } });
    // A late copy asks again.
    assert.deepEqual(await verdict("r", keyed("a", "01")), {});
    await query("update idempotency set response = 'r'");
    assert.deepEqual(await verdict("r", keyed("a", "01")), { response: "cg==" });
    assert.deepEqual(await verdict("s", keyed("b", "01", "0c")), { refusal: { refusal: "idempotency_key_reused" } });
    assert.deepEqual(await verdict("s", keyed("b", "01"), AT + DAY - 1), { response: "cg==" });
    assert.deepEqual(await verdict("s", keyed("b", "01"), AT + DAY), {});
    // Its grant has ended.
    await query("delete from grants where replica = 's'");
    assert.deepEqual(await verdict("r", keyed("c", "01"), AT + DAY), {});
  },
};

export const LIMIT_CASES: Cases = { ...PERIOD_CASES, ...TIER_CASES, ...BOOKING_CASES, ...KEY_CASES };
