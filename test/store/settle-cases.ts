import assert from "node:assert/strict";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import type { Query } from "../../src/store/pool.ts";
import { AT, askOf, type Cases, done, itemIn, openAccount, openAll, postAt, send } from "./case-helpers.ts";

const HOUR = 3_600_000;

const lines = async (query: Query, sql: string): Promise<string[]> => {
  const rows = await query<Record<string, unknown>>(sql);
  return rows.map((row) => Object.values(row).join(" "));
};

const USAGE = `select concat_ws(' ', unit, to_char(start at time zone 'UTC', 'DD HH24:MI'), key_id, requests,
  failed_requests, input_tokens, output_tokens, cached_tokens, credits_micro) from usage order by unit, start, key_id`;

export const SETTLE_CASES: Cases = {
  async "adds the settlements of one statement and of the next to the usage of their keys"(query) {
    await openAccount(query, "w", { granted: 100, purchased: 1_000 });
    const ok = { input_tokens: 5, cached_tokens: 2, output: 3 };
    await done(query, "r", itemIn("w", { posts: [postAt("a", 60, ok), postAt("b", 70, { ...ok, key_id: "key_2" })] }));
    const failed = { outcome: "internal", ...ok };
    await done(query, "r", itemIn("w", { posts: [postAt("c", 50, ok), postAt("d", 0, failed)] }), AT + 1_000);
    await done(query, "r", itemIn("w", { posts: [postAt("e", 0, failed, AT - HOUR)] }), AT + 2_000);
    assert.deepEqual(await lines(query, USAGE), [
      "day 06 00:00 key_1 2 2 10 6 4 110",
      "day 06 00:00 key_2 1 0 5 3 2 70",
      "hour 06 06:00 key_1 0 1 0 0 0 0",
      "hour 06 07:00 key_1 2 1 10 6 4 110",
      "hour 06 07:00 key_2 1 0 5 3 2 70",
      "minute 06 06:08 key_1 0 1 0 0 0 0",
      "minute 06 07:08 key_1 2 1 10 6 4 110",
      "minute 06 07:08 key_2 1 0 5 3 2 70",
    ]);
    assert.deepEqual(
      await lines(
        query,
        "select concat_ws(' ', reference, kind, granted_micro, purchased_micro) from ledger order by id",
      ),
      ["a settlement -60 0", "b settlement -40 -30", "c settlement 0 -50"],
    );
    assert.deepEqual(await lines(query, "select granted_micro, purchased_micro from accounts"), ["0 920"]);
    assert.deepEqual(await lines(query, "select spent_micro, output_tokens from periods"), ["80,80,80,80 15,15,15,15"]);
  },

  async "adds settlements to the use of their level, also where levels were not counted before"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const [low, medium, high] = ["low", "medium", "high"].map((level) => ({ level }));
    const failed = { ...high, outcome: "internal" };
    const posts = [postAt("a", 1, low), postAt("b", 2, medium), postAt("c", 4, medium), postAt("d", 8, failed)];
    await done(query, "r", itemIn("w", { posts: [...posts, postAt("e", 16, { ...low, key_id: "key_2" })] }));
    await query("update usage set level_requests = null, level_credits_micro = null where key_id = 'key_2'");
    const more = [postAt("f", 32, high), postAt("g", 64, low), postAt("h", 128, { ...high, key_id: "key_2" })];
    await done(query, "r", itemIn("w", { posts: more }), AT + 1_000);
    const levels =
      "select unit, key_id, level_requests::text, level_credits_micro::text from usage order by unit, key_id";
    assert.deepEqual(
      await lines(query, levels),
      ["day", "hour", "minute"].flatMap((unit) => [
        `${unit} key_1 {2,2,1} {65,6,40}`,
        `${unit} key_2 {0,0,1} {0,0,128}`,
      ]),
    );
  },

  async "adds settlements to the usage of their end user and of each tag"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const figures = { input_tokens: 5, cached_tokens: 2, output: 3 };
    const user = { end_user: "u", ...figures };
    const failed = { outcome: "internal", ...figures };
    const tagged = { tags: { team: "x" }, ...figures };
    const posts = [
      ...[postAt("a", 10, user), postAt("b", 20, { ...user, ...tagged }), postAt("c", 40, tagged)],
      ...[postAt("d", 0, { ...user, ...failed }), postAt("e", 80, figures)],
    ];
    await done(query, "r", itemIn("w", { posts }));
    await done(query, "r", itemIn("w", { posts: [postAt("f", 1, user), postAt("g", 0, { ...user, ...failed })] }));
    await done(query, "r", itemIn("w", { posts: [postAt("h", 0, { ...user, ...failed }, AT - HOUR)] }));
    const usage = `select concat_ws(' ', unit, subject, requests, failed_requests, input_tokens, output_tokens,
      cached_tokens, credits_micro) from usage_subjects where unit <> 'minute' order by unit, subject, start`;
    assert.deepEqual(await lines(query, usage), [
      ...["day tag:team=x 2 0 10 6 4 60", "day user:u 3 3 15 9 6 31"],
      ...["hour tag:team=x 2 0 10 6 4 60", "hour user:u 0 1 0 0 0 0", "hour user:u 3 2 15 9 6 31"],
    ]);
  },

  async "notes what the last of several items has said about a grant"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const last = await openAll(query, ["w"], ["r"]);
    let { after } = last("w", "r");
    for (const [charge, credit, running] of [
      [10, 90, 2],
      [20, 95, 1],
      [30, 35, 3],
    ] as const) {
      const rest = { held: { credit, running }, posts: [postAt(`${charge}`, charge)] };
      const item = itemIn("w", { ...last("w", "r"), after, mode: "append", ...rest });
      await send(query, "r", item);
      after = item.seq;
    }
    await query(`select post_settlements(array['w'], ${timeOf(AT)})`);
    const grants = "select credit_micro, held_micro, running, running_now, seq from grants";
    assert.deepEqual(await lines(query, grants), [`40 35 3 3 ${after}`]);
  },

  async "posts a request once that is in the log twice, as the first item says"(query) {
    await openAccount(query, "w", { granted: 100 });
    const row = (seq: number, charge: number) => [seq, JSON.stringify([rowOf(charge)])];
    for (const [seq, posts] of [row(2, 20), row(1, 10)])
      await query("insert into settlement_log values ('w', 'r', $1, 0, 0, 0, 0, 0, 0, $2)", [seq, posts]);
    assert.deepEqual(await lines(query, `select post_settlements(array['w'], ${timeOf(AT)})`), ["1"]);
    assert.deepEqual(await lines(query, "select granted_micro from accounts"), ["90"]);
    assert.deepEqual(await lines(query, `select post_settlements(array['w'], ${timeOf(AT)})`), ["0"]);
  },

  async "keeps the drafts of settlements that have some, once"(query) {
    await openAccount(query, "w", { granted: 100 });
    const drafts = { drafts: { groups: [1] } };
    for (let i = 0; i < 2; i++)
      await done(
        query,
        "r",
        itemIn("w", { posts: [postAt("a", 1, drafts), postAt("b", 1), postAt("c", 1, { drafts: null })] }),
      );
    assert.deepEqual(await lines(query, "select id, drafts from outcomes"), [`gen_a ${drafts.drafts}`]);
  },

  async "keeps no drafts of a settlement that is posted already, and those of one that is in the log twice"(query) {
    await openAccount(query, "w", { granted: 100 });
    const drafts = { drafts: { groups: [1] } };
    for (const row of [{}, drafts]) await done(query, "r", itemIn("w", { posts: [postAt("b", 1, row)] }));
    assert.deepEqual(await query("select from outcomes"), []);
    const posts = JSON.stringify([{ ...rowOf(1), ...drafts }]);
    for (const seq of [1, 2])
      await query("insert into settlement_log values ('w', 'r', $1, 0, 0, 0, 0, 0, 0, $2)", [seq, posts]);
    await query(`select post_settlements(array['w'], ${timeOf(AT)})`);
    assert.deepEqual(await lines(query, "select id from outcomes"), ["gen_a"]);
  },

  async "says that it has posted nothing when all that waits was posted before"(query) {
    await openAccount(query, "w", { granted: 100 });
    const posts = JSON.stringify([rowOf(1)]);
    const post = async () => {
      await query("insert into settlement_log values ('w', 'r', 1, 0, 0, 0, 0, 0, 0, $1)", [posts]);
      return lines(query, `select post_settlements(array['w'], ${timeOf(AT)})`);
    };
    assert.deepEqual([await post(), await post()], [["1"], ["0"]]);
  },

  async "lets a grant hold no more than it has after what was posted"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const last = await openAll(query, ["w"], ["r"]);
    const rest = { held: { credit: 90, running: 1 }, posts: [postAt("a", 30)] };
    await send(query, "r", itemIn("w", { ...last("w", "r"), mode: "append", ...rest }));
    await query(`select post_settlements(array['w'], ${timeOf(AT)})`);
    assert.deepEqual(await lines(query, "select credit_micro, held_micro from grants"), ["70 70"]);
  },

  async "takes what is posted from the grant that contains it, and from no other"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000, limits: { requests_per_day: 90 } });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    for (const [n, w] of ["v", "w"].entries()) {
      for (const [m, r] of ["r", "s"].entries()) {
        const size = 10 * n + m + 1;
        const held = { credit: 100 - 2 * size, running: 2 };
        const used = { requests: size, input: 2 * size };
        const posts = [postAt(`${w} ${r}`, size, { output: 3 * size })];
        await query("update grants set requests = 50, input_tokens = 60, output_tokens = 70");
        const item = itemIn(w, { ...last(w, r), mode: "append", held, used, posts });
        assert.deepEqual(await send(query, r, item), { state: "appended" });
      }
    }
    await query(`select post_settlements(array['v', 'w'], ${timeOf(AT)})`);
    const grants = `select concat_ws(' ', workspace_id, replica, credit_micro, held_micro, running, running_now,
      requests,      input_tokens, output_tokens) from grants order by workspace_id, replica`;
    assert.deepEqual(await lines(query, grants), [
      "v r 99 98 2 2 49 58 67",
      "v s 98 96 2 2 48 56 64",
      "w r 89 78 2 2 39 38 37",
      "w s 88 76 2 2 38 36 34",
    ]);
    assert.deepEqual(await lines(query, "select workspace_id, granted_micro from accounts order by 1"), [
      "v 997",
      "w 977",
    ]);
    const counts = "select workspace_id, requests, input_tokens, output_tokens from periods order by 1";
    // Two requests that were asked for, each with one token of input.
    assert.deepEqual(await lines(query, counts), [
      "v 5,5,5,5 8,8,8,8 9,9,9,9",
      "w 25,25,25,25 48,48,48,48 69,69,69,69",
    ]);
  },

  async "counts in the windows of the grant's minute, day, week and month only"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const at = Date.UTC(2026, 4, 1);
    const item = itemIn("w", { asks: [askOf("a", 10)] });
    const { grant } = await done(query, "r", item, at);
    const append = itemIn("w", {
      grant,
      after: item.seq,
      mode: "append",
      used: { requests: 5, input: 7 },
      posts: [postAt("a", 1)],
    });
    await send(query, "r", append);
    // A day later, in the same week and month.
    await query(`select post_settlements(array['w'], ${timeOf(at + 24 * HOUR)})`);
    assert.deepEqual(await lines(query, "select requests, input_tokens from periods"), ["0,0,6,6 0,0,8,8"]);
  },

  async "charges a late settlement what is left of its grant and what nobody has reserved"(query) {
    await openAccount(query, "w", { granted: 100, purchased: 200, spend: { day: 150 } });
    await openAccount(query, "v", { granted: 500 });
    await done(query, "gone", itemIn("v", { keep: { ...NOTHING, credit: 500 } }));
    await done(query, "r", itemIn("w", { asks: [askOf("a", 60)], keep: { ...NOTHING, credit: 40 } }));
    const item = itemIn("w", { asks: [askOf("b", 50)] });
    const { grant } = await done(query, "s", item);
    const late = (id: string, charge: number, by: string) => ({ ...postAt(id, charge), admittedBy: by });
    // 250 can be charged, and 150 are reserved.
    const { charges } = await done(
      query,
      "s",
      itemIn("w", {
        ...{ grant, after: item.seq, held: { credit: 50, running: 1 } },
        posts: [late("x", 30, "gone"), late("a", 130, "r"), late("y", 90, "gone"), late("z", 90, "s")],
      }),
    );
    assert.deepEqual(charges, { y: 40, z: 0 });
    const grants = "select replica, seq, credit_micro, held_micro from grants where replica = 'r'";
    assert.deepEqual(await lines(query, grants), ["r 0 0 0"]);
    const left = "select granted_micro, purchased_micro from accounts where workspace_id = 'w'";
    assert.deepEqual(await lines(query, left), ["0 100"]);
  },

  async "charges a late settlement of the replica that posts it nothing of what that replica has now"(query) {
    await openAccount(query, "w", { granted: 100 });
    const item = itemIn("w", { asks: [askOf("b", 50)] });
    const { grant } = await done(query, "s", item);
    const posts = [
      { ...postAt("z", 10), admittedBy: "s" },
      { ...postAt("y", 90), admittedBy: "gone" },
    ];
    const held = { credit: 50, running: 1 };
    const { charges } = await done(query, "s", itemIn("w", { grant, after: item.seq, held, posts }));
    assert.deepEqual(charges, { y: 40 });
  },

  async "takes a late settlement from its own grant first, as far as that goes"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await done(query, "r", itemIn("w", { asks: [askOf("a", 60)], keep: { ...NOTHING, credit: 40 } }));
    const posts = [{ ...postAt("a", 30), admittedBy: "r" }];
    await done(query, "s", itemIn("w", { posts }));
    const grants = "select replica, seq, credit_micro, held_micro from grants where replica = 'r'";
    assert.deepEqual(await lines(query, grants), ["r 0 70 60"]);
  },

  async "charges a late settlement nothing whose key another request has used, or that is posted"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const key = { key: "0a", body: "0b" };
    await done(query, "r", itemIn("w", { asks: [{ ...askOf("a", 60), ...key }] }));
    const late = (id: string, charge: number, row = {}) => ({ ...postAt(id, charge, row), admittedBy: "gone" });
    const own = itemIn("w", { posts: [late("a", 9, key), late("b", 8, key), late("c", 7, { key: "0c", body: "0b" })] });
    assert.deepEqual((await done(query, "s", own)).charges, { b: 0 });
    const again = itemIn("w", { posts: [late("c", 5), late("d", 6)] });
    assert.deepEqual((await done(query, "s", again)).charges, { c: 7 });
    assert.deepEqual(await lines(query, "select granted_micro from accounts"), ["978"]);
  },

  async "does not count a late settlement again that is posted, or a key of another workspace"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 100 });
    const key = { key: "0a", body: "0b" };
    await done(query, "r", itemIn("v", { asks: [{ ...askOf("q", 1), ...key }] }));
    await done(query, "r", itemIn("w", { posts: [postAt("a", 60)] }));
    const posts = [postAt("a", 60), postAt("b", 40, key)].map((post) => ({ ...post, admittedBy: "gone" }));
    assert.deepEqual((await done(query, "s", itemIn("w", { posts }))).charges, {});
    assert.deepEqual(await lines(query, "select granted_micro from accounts where workspace_id = 'w'"), ["0"]);
  },

  async "posts the items together that continue their grant, and no other"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w, { granted: 1_000 });
    const last = await openAll(query, ["v", "w"], ["r", "s"]);
    let after = last("v", "r").after;
    for (const id of ["a", "b"]) {
      const item = itemIn("v", { ...last("v", "r"), after, mode: "append", posts: [postAt(id, 1)] });
      await send(query, "r", item);
      after = item.seq;
    }
    const logged = async (w: string, change: object = {}) => {
      const rates = { requests: 0, input: null, output: 0 };
      const item = { workspace: w, ...last(w, "r"), ...rates, posts: [{ id: "x" }], ...change };
      const [row] = await query<{ ws: string[] }>("select log_posts('r', $1) as ws", [JSON.stringify([item])]);
      return row?.ws.join();
    };
    assert.equal(await logged("w"), "w");
    assert.deepEqual(await query("delete from settlement_log where replica = '' returning seq"), [{ seq: 0n }]);
    assert.equal(await logged("w", { posts: [] }), "");
    for (const part of ["requests", "input", "output"]) assert.equal(await logged("w", { [part]: 1 }), "");
    for (const grant of [0, last("w", "s").grant, last("v", "r").grant]) assert.equal(await logged("w", { grant }), "");
    for (const other of [0, last("w", "s").after, after]) assert.equal(await logged("w", { after: other }), "");
    assert.equal(await logged("w", { posts: [{ id: "x", admitted_by: "r" }] }), "");
    // After what the replica has appended.
    assert.equal(await logged("v"), "");
    assert.equal(await logged("v", { after }), "v");
  },

  async "answers for a repeated settlement what it was charged"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    const keep = { ...NOTHING, requests: 1 };
    const minute = AT - (AT % 60_000);
    const item = () => itemIn("w", { keep, minute, posts: [postAt("a", 9), postAt("b", 8)] });
    assert.deepEqual((await done(query, "r", item())).charges, {});
    const other = itemIn("w", { keep, minute, posts: [postAt("a", 5), postAt("b", 8), postAt("c", 7)] });
    assert.deepEqual((await done(query, "r", other)).charges, { a: 9 });
    assert.deepEqual(await lines(query, "select granted_micro from accounts"), ["976"]);
  },

  async "closes a grant that has ended only if all that it posts is posted"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await done(query, "r", itemIn("w", { posts: [postAt("a", 1), postAt("b", 1)] }));
    const state = async (close: boolean, ...posts: ReturnType<typeof postAt>[]) =>
      (await send(query, "s", itemIn("w", { grant: 99, after: 1, close, posts })))?.state;
    assert.equal(await state(false, postAt("a", 1)), "ended");
    assert.equal(await state(true, postAt("a", 1), postAt("c", 1)), "ended");
    assert.equal(await state(true, postAt("a", 1, {}, AT + 1)), "ended");
    assert.equal(await state(true, postAt("a", 1), postAt("b", 1)), "done");
    assert.equal(await state(true), "done");
  },
};

function rowOf(charge: number): object {
  const { row } = postAt("a", charge);
  return { ...row, request_id: "a", credits_micro: charge, output_tokens: 1 };
}

function timeOf(at: number): string {
  return `'${new Date(at).toISOString()}'`;
}
