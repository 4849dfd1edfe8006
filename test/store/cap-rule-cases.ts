import assert from "node:assert/strict";
import type { Query } from "../../src/store/pool.ts";
import { cap, check, DAY, holdOf, MINUTE, openGrant, share, textsOf, useOf } from "./cap-helpers.ts";
import { AT, type Cases } from "./case-helpers.ts";

const limited = (limit: string, rest: object) => ({ refusal: { refusal: "rate_limited", limit, ...rest } });
const SOON = { retry_ms: 1_000 };
const NEVER = { never: true };
/** From AT to the end of its minute and its day, in milliseconds. */
const [MINUTE_LEFT, DAY_LEFT] = [51_000, 60_711_000];

const capsOf = (query: Query, subject: string) =>
  textsOf(query, "select concat_ws(' ', figure, period, amount, action) from caps_of('w', $1, $2)", [
    subject,
    new Date(AT),
  ]);

const kindsOf = async (query: Query, workspace: string, key: string) =>
  (await query<{ kinds: string[] | null }>("select capped_kinds($1, $2) as kinds", [workspace, key]))[0]?.kinds;

const chargeOf = async (query: Query, row: object, charge: number, origin: number | null = null) =>
  Number(
    (
      await query<{ charge: string }>("select charge_under_caps('w', $1, $2, $3, $4) as charge", [
        JSON.stringify({ request_id: "x", key_id: "k", end_user: null, tags: null, ...row }),
        ...[charge, new Date(AT), origin],
      ])
    )[0]?.charge,
  );

const holdsIn = (query: Query) =>
  textsOf(query, "select concat_ws(' ', workspace_id, request_id, subject, grant_id, hold_micro) from subject_holds");

const CHOICE_CASES: Cases = {
  async "chooses one cap of each figure, period and action of a subject"(query) {
    const [soon, now, past] = [AT + 1_000, AT, AT - 1_000];
    await cap(query, "user:*", "credits", "day", 1);
    await cap(query, "user:u", "credits", "day", 2);
    await cap(query, "user:*", "credits", "day", 3, { endsAt: soon });
    await cap(query, "user:u", "credits", "day", 4, { action: "low" });
    await cap(query, "user:*", "requests", "day", 5);
    await cap(query, "user:*", "requests", "day", 6, { endsAt: soon });
    await cap(query, "user:u", "requests", "month", 7, { endsAt: now });
    await cap(query, "user:u", "requests", "total", 8, { endsAt: past });
    await cap(query, "user:v", "requests", "week", 9);
    await cap(query, "user:u", "requests", "week", 10, { workspace: "v" });
    await cap(query, "user:u", "input_tokens", "day", 11);
    await cap(query, "user:u", "input_tokens", "day", 12, { endsAt: soon });
    const ofUser = ["credits day 2 refuse", "credits day 4 low", "input_tokens day 12 refuse", "requests day 6 refuse"];
    assert.deepEqual(await capsOf(query, "user:u"), ofUser);
    assert.deepEqual(await capsOf(query, "user:x"), ["credits day 3 refuse", "requests day 6 refuse"]);
    assert.deepEqual(await capsOf(query, "key:u"), []);
  },

  async "chooses the lower one of an owner's cap and a developer's"(query) {
    const developer = { byDeveloper: true };
    const raise = { byDeveloper: true, endsAt: AT + 1_000 };
    await cap(query, "key:*", "requests", "day", 5);
    await cap(query, "key:k", "requests", "day", 9, developer);
    await cap(query, "key:k", "input_tokens", "day", 5);
    await cap(query, "key:k", "input_tokens", "day", 9, raise);
    await cap(query, "key:*", "credits", "day", 5);
    await cap(query, "key:k", "credits", "day", 2, developer);
    await cap(query, "key:k", "credits", "day", 3, raise);
    await cap(query, "key:k", "requests", "total", 7, developer);
    await cap(query, "key:*", "requests", "month", 5, { action: "low" });
    await cap(query, "key:k", "requests", "month", 9, { ...developer, action: "low" });
    assert.deepEqual(await capsOf(query, "key:k"), [
      ...["credits day 3 refuse", "input_tokens day 5 refuse"],
      ...["requests day 5 refuse", "requests month 5 low", "requests total 7 refuse"],
    ]);
  },

  async "names the kinds of subjects that can have caps, and of keys only the own one"(query) {
    assert.equal(await kindsOf(query, "w", "k"), null);
    await cap(query, "key:other", "requests", "day", 1);
    assert.equal(await kindsOf(query, "w", "k"), null);
    for (const subject of ["user:a=b", "user:c", "tag:team=x:y", "tag:team=*", "tag:user=z"])
      await cap(query, subject, "requests", "day", 1);
    await cap(query, "tag:away=z", "requests", "day", 1, { workspace: "v" });
    assert.deepEqual(await kindsOf(query, "w", "k"), ["tag:team", "tag:user", "user"]);
    await cap(query, "key:k", "requests", "day", 1);
    assert.deepEqual(await kindsOf(query, "w", "k"), ["key", "tag:team", "tag:user", "user"]);
    await cap(query, "key:*", "requests", "day", 1, { workspace: "v" });
    assert.deepEqual(await kindsOf(query, "v", "k"), ["key", "tag:away"]);
  },

  async "names the subjects of a request, and their templates"(query) {
    const subjects = (...of: unknown[]) => textsOf(query, "select subject from subjects_of($1, $2)", of);
    assert.deepEqual(await subjects("u", '{"a": "b=c", "d": "e"}'), ["tag:a=b=c", "tag:d=e", "user:u"]);
    assert.deepEqual(await subjects(null, null), []);
    const template = "select template_of(s) from unnest(array['tag:a=b=c', 'user:a=b:c', 'key:k']) s (s)";
    assert.deepEqual(await textsOf(query, template), ["key:*", "tag:a=*", "user:*"]);
  },
};

const CHECK_CASES: Cases = {
  async "admits what just fits each figure, and nothing more"(query) {
    const at = [0, 0, 0, 0, 0];
    await useOf(query, "user:u", { requests: at.with(1, 9), input: at.with(1, 8), spent: at.with(1, 7) });
    await cap(query, "user:u", "credits", "day", 100);
    await cap(query, "user:u", "input_tokens", "day", 50);
    assert.equal(await check(query, ["user:u"], 93, 42), null);
    assert.deepEqual(await check(query, ["user:u"], 94, 42), limited("user:credits_per_day", { retry_ms: DAY_LEFT }));
    assert.deepEqual(
      await check(query, ["user:u"], 93, 43),
      limited("user:input_tokens_per_day", { retry_ms: DAY_LEFT }),
    );
    assert.deepEqual(await check(query, ["user:u"], 101, 1), limited("user:credits_per_day", NEVER));
    assert.deepEqual(await check(query, ["user:u"], 100, 1), limited("user:credits_per_day", { retry_ms: DAY_LEFT }));
    await cap(query, "user:u", "requests", "day", 10);
    assert.equal(await check(query, ["user:u"], 93, 42), null);
    await query("update caps set amount = 9 where figure = 'requests'");
    assert.deepEqual(await check(query, ["user:u"], 1, 1), limited("user:requests_per_day", { retry_ms: DAY_LEFT }));
  },

  async "says that no wait helps against a cap for all time, unless running requests are in the way"(query) {
    await useOf(query, "tag:team=x", { spent: [0, 0, 0, 0, 60], requests: [0, 0, 0, 0, 5] });
    await cap(query, "tag:team=*", "credits", "total", 100);
    assert.equal(await check(query, ["tag:team=x"], 40, 1), null);
    const poor = { refusal: "insufficient_credit", limit: "tag.team:credits_total", ...NEVER };
    assert.deepEqual(await check(query, ["tag:team=x"], 41, 1), { refusal: poor });
    await holdOf(query, "q", "tag:team=x", 0, 30);
    assert.deepEqual(await check(query, ["tag:team=x"], 40, 1), limited("tag.team:credits_total", SOON));
    await cap(query, "tag:team=x", "requests", "total", 5);
    assert.deepEqual(await check(query, ["tag:team=x"], 1, 1), limited("tag.team:requests_total", NEVER));
  },

  async "names the cap with the longest wait of all subjects, and first one that no wait changes"(query) {
    for (const subject of ["user:u", "key:k"]) await useOf(query, subject, { requests: [3, 3, 3, 3, 3] });
    await cap(query, "user:u", "requests", "day", 3);
    await cap(query, "key:k", "requests", "minute", 3);
    const day = limited("user:requests_per_day", { retry_ms: DAY_LEFT });
    assert.deepEqual(await check(query, ["user:u", "key:k"], 1, 1), day);
    assert.deepEqual(await check(query, ["key:k", "user:u"], 1, 1), day);
    const minute = limited("key:requests_per_minute", { retry_ms: MINUTE_LEFT });
    assert.deepEqual(await check(query, ["key:k"], 1, 1), minute);
    await cap(query, "tag:a=b", "credits", "day", 9);
    assert.deepEqual(await check(query, ["user:u", "tag:a=b"], 10, 1), limited("tag.a:credits_per_day", NEVER));
  },

  async "says to wait until a cap ends, if what holds then has room"(query) {
    await useOf(query, "user:u", { requests: [3, 3, 3, 3, 3] });
    const endsAt = AT + 5_000;
    await cap(query, "user:u", "requests", "day", 0, { endsAt });
    const until = limited("user:requests_per_day", { retry_ms: 5_000 });
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until);
    await cap(query, "user:*", "requests", "day", 4);
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until);
    await query("update caps set amount = 3 where subject = 'user:u'");
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until);
    await query("update caps set amount = 3 where subject = 'user:*'");
    assert.deepEqual(await check(query, ["user:u"], 1, 1), limited("user:requests_per_day", { retry_ms: DAY_LEFT }));
    await query("update caps set amount = 0 where subject = 'user:u'");
    assert.deepEqual(await check(query, ["user:u"], 1, 1), limited("user:requests_per_day", { retry_ms: DAY_LEFT }));
    await query("update caps set amount = 0 where subject = 'user:*'");
    assert.deepEqual(await check(query, ["user:u"], 1, 1), limited("user:requests_per_day", NEVER));
    await cap(query, "key:k", "concurrent_requests", "", 0, { endsAt });
    assert.deepEqual(await check(query, ["key:k"], 1, 1), limited("key:concurrent_requests", { retry_ms: 5_000 }));
    await cap(query, "key:k", "requests", "total", 0, { endsAt });
    assert.deepEqual(await check(query, ["key:k"], 1, 1), limited("key:requests_total", NEVER));
  },

  async "says to wait until the last of several caps ends, if only then is room"(query) {
    await useOf(query, "user:u", { requests: [3, 3, 3, 3, 3] });
    await cap(query, "user:*", "requests", "day", 0, { endsAt: AT + 5_000 });
    await cap(query, "user:u", "requests", "day", 0, { endsAt: AT + 60_000 });
    const until = (retry_ms: number) => limited("user:requests_per_day", { retry_ms });
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until(60_000));
    await query("update caps set ends_at = to_timestamp($1::float8 / 1000) where subject = 'user:*'", [AT + 90_000]);
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until(90_000));
    await query("update caps set amount = 4 where subject = 'user:*'");
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until(60_000));
    const afterDay = AT + DAY_LEFT + 5_000;
    await query("update caps set amount = 1, ends_at = to_timestamp($1::float8 / 1000) where subject = 'user:*'", [
      afterDay,
    ]);
    assert.deepEqual(await check(query, ["user:u"], 1, 1), until(DAY_LEFT));
    // The next day has room for the request under the cap that still holds.
    await useOf(query, "user:v", { requests: [1, 1, 1, 1, 1] });
    await cap(query, "user:v", "requests", "day", 1, { endsAt: afterDay });
    assert.deepEqual(await check(query, ["user:v"], 1, 1), until(DAY_LEFT));
  },

  async "lowers the effort only if all other caps allow the request"(query) {
    await useOf(query, "user:u", { requests: [3, 3, 3, 3, 3] });
    await cap(query, "user:u", "requests", "day", 3, { action: "low" });
    await cap(query, "user:u", "credits", "day", 10);
    assert.deepEqual(await check(query, ["user:u"], 10, 1), { low: true });
    assert.deepEqual(await check(query, ["user:u"], 11, 1), limited("user:credits_per_day", NEVER));
    await query("update caps set amount = 4 where action = 'low'");
    assert.equal(await check(query, ["user:u"], 10, 1), null);
  },

  async "lowers the effort once the credits of a budget are charged, not while they are held"(query) {
    await cap(query, "user:u", "credits", "day", 5, { action: "low" });
    await holdOf(query, "q", "user:u", 0, 13);
    await useOf(query, "user:u", { spent: [4, 4, 4, 4, 4] });
    assert.equal(await check(query, ["user:u"], 13, 1), null);
    await useOf(query, "user:u", { spent: [5, 5, 5, 5, 5] });
    assert.deepEqual(await check(query, ["user:u"], 13, 1), { low: true });
  },

  async "waits for headroom of replicas only if nothing else is in the way"(query) {
    await cap(query, "user:u", "credits", "day", 100);
    await cap(query, "user:u", "input_tokens", "day", 100);
    await share(query, "user:u", 7, { credit: 60, input: 60 });
    const soon = (limit: string) => ({ ...limited(limit, SOON), calledBack: true });
    assert.deepEqual(await check(query, ["user:u"], 41, 1), soon("user:credits_per_day"));
    // The first of several.
    assert.deepEqual(await check(query, ["user:u"], 41, 41), soon("user:credits_per_day"));
    assert.equal(await check(query, ["user:u"], 40, 40), null);
    await holdOf(query, "q", "user:u", 0, 59);
    assert.deepEqual(await check(query, ["user:u"], 41, 1), soon("user:credits_per_day"));
    // Without the headroom, it is the hold that is in the way.
    assert.deepEqual(await check(query, ["user:u"], 42, 1), limited("user:credits_per_day", SOON));
    await query("delete from subject_holds");
    await query("update subject_grants set has_idle = false");
    assert.deepEqual(await check(query, ["user:u"], 41, 1), limited("user:credits_per_day", SOON));
    await useOf(query, "key:k", { requests: [3, 3, 3, 3, 3] });
    await cap(query, "key:k", "requests", "minute", 3);
    await query("update subject_grants set has_idle = true");
    const minute = limited("key:requests_per_minute", { retry_ms: MINUTE_LEFT });
    assert.deepEqual(await check(query, ["user:u", "key:k"], 41, 1), minute);
  },

  async "counts an admitted request for the subjects that have caps, once"(query) {
    await cap(query, "user:u", "requests", "day", 9);
    await useOf(query, "user:u", { requests: [1, 2, 3, 4, 5], input: [1, 2, 3, 4, 5], spent: [1, 1, 1, 1, 1] }, -DAY);
    const take = (grant: number, hold: number) =>
      query("select take_caps('w', '{user:u,user:v,tag:a=b}', 'q', $1, $2, 10, $3)", [grant, hold, new Date(AT)]);
    await cap(query, "tag:a=*", "requests", "day", 9);
    await take(1, 20);
    const counters = "concat_ws(' ', subject, requests, input_tokens, output_tokens, spent_micro, at = $1)";
    const counted = () => textsOf(query, `select ${counters} from subject_periods`, [new Date(AT)]);
    const ofTag = "tag:a=b {1,1,1,1,1} {10,10,10,10,10} {0,0,0,0,0} {0,0,0,0,0} t";
    assert.deepEqual(await counted(), [ofTag, "user:u {1,1,4,5,6} {10,10,13,14,15} {0,0,0,0,0} {0,0,1,1,1} t"]);
    assert.deepEqual(await holdsIn(query), ["w q tag:a=b 1 20", "w q user:u 1 20"]);
    await take(2, 30);
    assert.deepEqual(await holdsIn(query), ["w q tag:a=b 2 30", "w q user:u 2 30"]);
    assert.match((await counted())[1] ?? "", /^user:u \{2,2,5,6,7\}/);
  },
};

const CHARGE_CASES: Cases = {
  async "charges a late settlement what all caps on credits of its subjects leave"(query) {
    assert.equal(await chargeOf(query, {}, 90), 90);
    // Nothing is held where no cap can be exceeded.
    assert.deepEqual(await holdsIn(query), []);
    await cap(query, "user:v", "credits", "day", 1);
    assert.equal(await chargeOf(query, { end_user: "u" }, 90), 90);
    await cap(query, "user:*", "credits", "day", 80);
    await cap(query, "user:*", "credits", "week", 5, { action: "low" });
    await cap(query, "user:*", "requests", "week", 6);
    assert.equal(await chargeOf(query, { end_user: "u" }, 90), 80);
    assert.equal(await chargeOf(query, { end_user: "u" }, 79), 79);
    await cap(query, "tag:a=b", "credits", "day", 70);
    assert.equal(await chargeOf(query, { end_user: "u", tags: { a: "b" } }, 90), 70);
    await cap(query, "key:k", "credits", "day", 60);
    assert.equal(await chargeOf(query, { end_user: "u", tags: { a: "b" } }, 90), 60);
    assert.deepEqual(await holdsIn(query), ["w x key:k 0 60", "w x tag:a=b 0 60", "w x user:u 0 60"]);
    // Beside what is used, what others hold and what replicas have.
    await useOf(query, "key:k", { spent: [0, 1, 1, 1, 1] });
    await holdOf(query, "other", "key:k", 0, 2);
    await holdOf(query, "x", "key:k", 0, 500, "v");
    await share(query, "key:k", 7, { credit: 4 });
    assert.equal(await chargeOf(query, {}, 90), 53);
    await useOf(query, "key:k", { spent: [0, 100, 1, 1, 1] });
    assert.equal(await chargeOf(query, {}, 90), 0);
    assert.deepEqual(await holdsIn(query), ["v x key:k 0 500", "w other key:k 0 2", "w x key:k 0 0"]);
  },

  async "uses up for a late settlement what the grant that admitted it has of its subjects, and nothing else"(query) {
    await cap(query, "user:u", "credits", "day", 100);
    await share(query, "user:u", 7, { credit: 30 });
    await share(query, "user:u", 8, { credit: 50 });
    await share(query, "user:v", 7, { credit: 20 });
    await share(query, "user:u", 7, { credit: 10 }, "v");
    const left = () =>
      textsOf(query, "select concat_ws(' ', workspace_id, subject, grant_id, credit_micro) from subject_grants");
    assert.equal(await chargeOf(query, { end_user: "u" }, 25, 7), 25);
    const others = ["w user:u 8 50", "w user:v 7 20"];
    assert.deepEqual(await left(), ["v user:u 7 10", "w user:u 7 5", ...others]);
    assert.equal(await chargeOf(query, { end_user: "u" }, 90, 7), 50);
    assert.deepEqual(await left(), ["v user:u 7 10", "w user:u 7 0", ...others]);
  },
};

const USE_CASES: Cases = {
  async "finds what is used, held and reserved of each cap"(query) {
    await useOf(query, "user:u", {
      requests: [1, 2, 3, 4, 5],
      input: [11, 12, 13, 14, 15],
      output: [21, 22, 23, 24, 25],
    });
    await openGrant(query, "w", 7);
    await openGrant(query, "v", 8);
    await holdOf(query, "a", "user:u", 7, 100);
    await holdOf(query, "b", "user:u", 0, 200);
    // The grants of these have ended, or are those of another workspace.
    await holdOf(query, "c", "user:u", 9, 1_000);
    await holdOf(query, "d", "user:u", 8, 2_000);
    await holdOf(query, "e", "user:v", 7, 4_000);
    await holdOf(query, "f", "user:u", 0, 8_000, "v");
    const parts = { credit: 31, held: 3, running: 32, runs: 4, requests: 33, input: 34, output: 35 };
    await share(query, "user:u", 7, parts);
    await share(query, "user:u", 8, { ...parts, isIdle: false }, "w", -MINUTE);
    await share(query, "user:u", 7, { credit: 9_000, running: 9_000, requests: 9_000, held: 9_000 }, "v");
    await share(query, "user:v", 7, { credit: 9_000, running: 9_000, requests: 9_000, held: 9_000 });
    for (const [figure, period] of FIGURES) await cap(query, "user:u", figure, period, 1);
    await cap(query, "user:alone", "credits", "day", 1);
    const columns = "concat_ws(' ', figure, period, used, held, reserved, taken, has_idle)";
    const use = (subject: string) => textsOf(query, `select ${columns} from cap_use('w', $1, $2)`, [subject, NOW]);
    assert.deepEqual(await use("user:u"), [
      ...["concurrent_requests  0 2 64 8 t", "credits week 0 300 62 6 t", "input_tokens month 14 0 68 0 t"],
      ...["output_tokens total 25 0 70 0 t", "requests day 2 0 66 0 t", "requests minute 1 0 33 0 t"],
    ]);
    assert.deepEqual(await use("user:alone"), ["credits day 0 0 0 0 f"]);
    await query("update subject_grants set has_idle = false");
    assert.match((await use("user:u"))[0] ?? "", / f$/);
    // From the first moment of a minute.
    await query("update subject_grants set at = date_trunc('minute', $1::timestamptz, 'UTC') where grant_id = 7", [
      NOW,
    ]);
    assert.equal((await use("user:u"))[5], "requests minute 1 0 33 0 f");
    await query("update subject_grants set at = $1::timestamptz - interval '1 year'", [NOW]);
    assert.deepEqual((await use("user:u")).slice(3, 5), ["output_tokens total 25 0 70 0 f", "requests day 2 0 0 0 f"]);
  },
};

const NOW = new Date(AT);
const FIGURES = [
  ["credits", "week"],
  ["concurrent_requests", ""],
  ["requests", "minute"],
  ["requests", "day"],
  ["input_tokens", "month"],
  ["output_tokens", "total"],
] as const;

/** The functions that decide under caps, called alone. */
export const CAP_RULE_CASES: Cases = { ...CHOICE_CASES, ...CHECK_CASES, ...CHARGE_CASES, ...USE_CASES };
