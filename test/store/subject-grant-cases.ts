import assert from "node:assert/strict";
import { type Item, NOTHING, type SubjectReport } from "../../src/admission/escrow/exchange.ts";
import type { Query } from "../../src/store/pool.ts";
import { AT, askOf, type Cases, done, itemIn, openAccount, postAt, send } from "./case-helpers.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;
const NO_USE = { requests: 0, input: 0 };
const EMPTY = { credit: 0, running: 0 };

async function cap(query: Query, figure: string, period: string, amount: number, endsAt: Date | null = null) {
  await query("insert into caps values ('w', $1, 'user:u', $2, $3, $4, 'refuse', $5, $6)", [
    `${figure} ${period}`,
    ...[figure, period, amount, endsAt, new Date(AT)],
  ]);
}

/** What an item wants for `n` requests of 10 micro-credits of the user u. */
function wants(n: number, rest: Partial<SubjectReport> = {}): SubjectReport {
  return {
    subject: "user:u",
    used: NO_USE,
    held: EMPTY,
    returns: true,
    spare: { n, credit: 10, input: 2, output: 3 },
    ...rest,
  };
}

async function reservedIn(query: Query): Promise<string[]> {
  const rows = await query<{ text: string }>(
    `select concat_ws(' ', workspace_id, subject, credit_micro, running, requests, input_tokens, output_tokens,
       has_idle) as text from subject_grants order by workspace_id, subject, grant_id`,
  );
  return rows.map(({ text }) => text);
}

/** Requests, input tokens and credits of minute, day, week, month and all time. */
async function usedIn(query: Query): Promise<string[]> {
  const rows = await query<{ text: string }>(
    "select concat_ws(' ', requests, input_tokens, spent_micro) as text from subject_periods",
  );
  return rows.map(({ text }) => text);
}

/** Opens an account, and a grant of r that has reserved headroom of the user for `n` requests. */
async function openShare(query: Query, n: number) {
  await openAccount(query, "w", { granted: 10_000 });
  await cap(query, "credits", "day", 1_000);
  await cap(query, "requests", "minute", 100);
  const item = itemIn("w", { subjects: [wants(n)] });
  const { grant, subjects } = await done(query, "r", item);
  return { grant, subjects, next: { grant, after: item.seq } };
}

const append = (rest: Partial<Item>) => itemIn("w", { mode: "append", ...rest });

export const SUBJECT_GRANT_CASES: Cases = {
  async "reserves headroom of a subject in the parts that have caps, until the minute ends"(query) {
    const { subjects } = await openShare(query, 5);
    const extra = { credit: 50, running: LIMITLESS, requests: 5, input: LIMITLESS, output: LIMITLESS };
    assert.deepEqual(subjects, [{ subject: "user:u", extra, msLeft: 51_000 }]);
    assert.deepEqual(await reservedIn(query), ["w user:u 50 0 5 0 0 t"]);
  },

  async "reserves half of what is left at most, and nothing near the edge"(query) {
    // Of 100 requests of a minute.
    const { next, subjects } = await openShare(query, 80);
    assert.equal(subjects?.[0]?.extra.requests, 50);
    // The other replica finds 50.
    const s = await done(query, "s", itemIn("w", { subjects: [wants(80)] }));
    assert.equal(s.subjects?.[0]?.extra.requests, 25);
    await query("update caps set amount = 82 where figure = 'requests'");
    const t = await done(query, "t", itemIn("w", { subjects: [wants(80)] }));
    assert.deepEqual(t.subjects, []);
    // What it returns is there for others at once.
    await done(
      query,
      "r",
      itemIn("w", { ...next, subjects: [{ subject: "user:u", used: NO_USE, held: EMPTY, returns: true }] }),
    );
    assert.deepEqual(await reservedIn(query), ["w user:u 250 0 25 0 0 t"]);
    const again = await done(query, "t", itemIn("w", { subjects: [wants(80)] }));
    assert.equal(again.subjects?.[0]?.extra.requests, 28);
  },

  async "reserves nothing beyond what a running request of another grant holds"(query) {
    await openShare(query, 4);
    const asks = [{ ...askOf("a", 900), subjects: ["user:u"] }];
    assert.deepEqual((await done(query, "s", itemIn("w", { asks }))).verdicts, [{}]);
    assert.deepEqual((await done(query, "t", itemIn("w", { subjects: [wants(20)] }))).subjects, []);
  },

  async "ends headroom with a raise of a cap"(query) {
    await openAccount(query, "w", { granted: 10_000 });
    await cap(query, "credits", "day", 1_000, new Date(AT + 4_000));
    const { subjects } = await done(query, "r", itemIn("w", { subjects: [wants(5)] }));
    assert.equal(subjects?.[0]?.msLeft, 4_000);
  },

  async "says that a subject without caps has no limit, and reserves nothing"(query) {
    await openAccount(query, "w", { granted: 10_000 });
    const { subjects } = await done(query, "r", itemIn("w", { subjects: [wants(5)] }));
    assert.deepEqual(Object.values(subjects?.[0]?.extra ?? {}), Array(5).fill(LIMITLESS));
    assert.deepEqual(await reservedIn(query), []);
  },

  async "adds headroom to that of the same minute, and none to that of an earlier one"(query) {
    const { next } = await openShare(query, 5);
    const minute = Math.floor(AT / 60_000) * 60_000;
    const more = (of: number) => [
      { subject: "user:u", used: NO_USE, held: EMPTY, spare: { n: 6, credit: 10, input: 2, output: 3, minute: of } },
    ];
    const item = itemIn("w", { ...next, subjects: more(minute) });
    assert.equal((await done(query, "r", item)).subjects?.length, 1);
    assert.deepEqual(await reservedIn(query), ["w user:u 110 0 11 0 0 t"]);
    const late = itemIn("w", { grant: next.grant, after: item.seq, subjects: more(minute) });
    assert.deepEqual((await done(query, "r", late, AT + 60_000)).subjects, []);
  },

  async "counts what a replica has admitted by itself, in the exchange and in the log"(query) {
    const { next } = await openShare(query, 10);
    const used = { requests: 3, input: 6 };
    const shared = ["user:u"];
    const post = (id: string) => ({ ...postAt(id, 7, { end_user: "u" }), shared });
    const logged = append({
      ...next,
      posts: [post("a")],
      subjects: [{ subject: "user:u", used, held: { credit: 20, running: 2 } }],
    });
    assert.deepEqual(await send(query, "r", logged), { state: "appended" });
    await query("select post_settlements('{w}', $1)", [new Date(AT)]);
    assert.deepEqual(await reservedIn(query), ["w user:u 93 0 7 0 0 t"]);
    const subjects = [{ subject: "user:u", used: { requests: 1, input: 2 }, held: { credit: 10, running: 1 } }];
    await done(query, "r", itemIn("w", { grant: next.grant, after: logged.seq, posts: [post("b")], subjects }));
    assert.deepEqual(await reservedIn(query), ["w user:u 86 0 6 0 0 t"]);
    assert.deepEqual(await usedIn(query), ["{4,4,4,4,4} {8,8,8,8,8} {14,14,14,14,14}"]);
  },

  async "counts what was admitted before midnight in no window that has begun since"(query) {
    const { next } = await openShare(query, 10);
    const midnight = Math.floor(AT / 86_400_000 + 1) * 86_400_000;
    const subjects = [{ subject: "user:u", used: { requests: 3, input: 6 }, held: EMPTY, returns: true }];
    await done(query, "r", itemIn("w", { ...next, subjects }), midnight + 1_000);
    assert.deepEqual(await usedIn(query), ["{0,0,3,3,3} {0,0,6,6,6} {0,0,0,0,0}"]);
  },

  async "calls headroom of a subject back for a request that it would let pass, and for no other"(query) {
    await openShare(query, 50);
    await query("update caps set amount = 520 where figure = 'credits'");
    const asked = async (hold: number) => {
      const asks = [{ ...askOf(`a${hold}`, hold), subjects: ["user:u"] }];
      return (await done(query, "s", itemIn("w", { asks }))).verdicts;
    };
    const refusal = { refusal: "rate_limited", limit: "user:credits_per_day" };
    assert.deepEqual(await asked(30), [{ refusal: { ...refusal, retry_ms: 1_000 }, calledBack: true }]);
    assert.deepEqual(await asked(521), [{ refusal: { ...refusal, never: true } }]);
    assert.deepEqual(await asked(20), [{}]);
  },

  async "ends headroom of subjects with its grant"(query) {
    const { next } = await openShare(query, 5);
    await done(query, "s", itemIn("w", { subjects: [wants(4)] }));
    await query("select end_grants('w', 's', $1)", [new Date(AT)]);
    assert.deepEqual(await reservedIn(query), ["w user:u 50 0 5 0 0 t"]);
    // A grant that its replica does not know is replaced.
    await done(query, "t", itemIn("w", { subjects: [wants(4)] }));
    await done(query, "t", itemIn("w"));
    assert.deepEqual(await reservedIn(query), ["w user:u 50 0 5 0 0 t"]);
    await done(query, "u", itemIn("w", { subjects: [wants(4)] }));
    await done(query, "r", itemIn("w", { ...next, keep: NOTHING, close: true }));
    assert.deepEqual(await reservedIn(query), ["w user:u 40 0 4 0 0 t"]);
  },

  async "charges a late settlement what the grant that has admitted it reserved for its user"(query) {
    const { next } = await openShare(query, 50);
    // Beside it, the cap leaves nothing.
    await query("update caps set amount = 500 where figure = 'credits'");
    await done(query, "r", itemIn("w", { ...next, keep: { ...NOTHING, credit: 500 } }));
    const late = (id: string, charge: number, admittedBy: string) => ({
      ...postAt(id, charge, { end_user: "u" }),
      admittedBy,
    });
    const posts = [late("x", 60, "r"), late("y", 70, "gone")];
    assert.deepEqual((await done(query, "s", itemIn("w", { posts }))).charges, { y: 0 });
    assert.deepEqual(await reservedIn(query), ["w user:u 440 0 50 0 0 t"]);
  },
};
