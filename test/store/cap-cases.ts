import assert from "node:assert/strict";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import type { Query } from "../../src/store/pool.ts";
import { AT, askOf, type Cases, done, itemIn, openAccount, postAt, send } from "./case-helpers.ts";

/** A cap on the credits of a day, in micro-credits. */
async function cap(query: Query, workspace: string, subject: string, amount: number): Promise<void> {
  await query("insert into caps values ($1, $2, $3, 'credits', 'day', $4, 'refuse', null, $5)", [
    workspace,
    `cap_${subject}`,
    subject,
    amount,
    new Date(AT),
  ]);
}

const askFor = (requestId: string, hold: number, ...subjects: string[]) => ({ ...askOf(requestId, hold), subjects });

const OVER = { refusal: { refusal: "rate_limited", limit: "user:credits_per_day", never: true } };

async function holdsIn(query: Query): Promise<string[]> {
  const rows = await query<{ text: string }>(
    `select concat_ws(' ', workspace_id, request_id, subject, hold_micro) as text from subject_holds
     order by workspace_id, request_id, subject`,
  );
  return rows.map(({ text }) => text);
}

async function spentBySubject(query: Query): Promise<string[]> {
  const rows = await query<{ text: string }>(
    `select concat_ws(' ', workspace_id, subject, requests[2], output_tokens[2], spent_micro[2]) as text
     from subject_periods order by workspace_id, subject`,
  );
  return rows.map(({ text }) => text);
}

/** Admits requests of the user u in each workspace, under a cap that allows them. @returns the last item of each */
async function openCapped(query: Query, workspaces: readonly string[], replica: string, ...ids: readonly string[]) {
  const last = new Map<string, { after: number; grant: number }>();
  for (const w of workspaces) {
    const item = itemIn(w, { asks: ids.map((id) => askFor(id, 60, "user:u")) });
    const { grant, verdicts } = await done(query, replica, item);
    assert.deepEqual(
      verdicts,
      ids.map(() => ({})),
    );
    last.set(w, { after: item.seq, grant });
  }
  return (w: string) => last.get(w) ?? { after: 0, grant: 0 };
}

async function openAccounts(query: Query, ...workspaces: readonly string[]): Promise<void> {
  for (const w of workspaces) {
    await openAccount(query, w, { granted: 1_000 });
    await cap(query, w, "user:u", 500);
  }
}

export const CAP_CASES: Cases = {
  async "checks the caps of each ask, and names what the workspace refuses first"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await cap(query, "w", "user:u", 50);
    const asks = [
      ...[askOf("a", 2_000), askFor("b", 60, "user:u"), askFor("c", 2_000, "user:u")],
      ...[askFor("d", 60, "user:v"), askFor("e", 40, "user:u"), askFor("f", 20, "user:u")],
    ];
    const first = itemIn("w", { asks: [askOf("first", 1)] });
    const { grant } = await done(query, "r", first);
    const held = { credit: 1, running: 1 };
    const { verdicts } = await done(query, "r", itemIn("w", { grant, after: first.seq, held, asks }));
    const poor = { refusal: { refusal: "insufficient_credit" } };
    const full = { refusal: { refusal: "rate_limited", limit: "user:credits_per_day", retry_ms: 1_000 } };
    assert.deepEqual(verdicts, [poor, OVER, poor, {}, {}, full]);
    assert.deepEqual(await holdsIn(query), ["w e user:u 40"]);
  },

  async "names a cap although headroom of another replica is in the way, and calls nothing back for it"(query) {
    await openAccount(query, "w", { granted: 1_000 });
    await cap(query, "w", "user:u", 50);
    await done(query, "s", itemIn("w", { keep: { ...NOTHING, credit: 950 } }));
    const { verdicts } = await done(query, "r", itemIn("w", { asks: [askFor("a", 60, "user:u")] }));
    assert.deepEqual(verdicts, [OVER]);
  },

  async "frees what a request holds of caps that ran nowhere, and nothing else"(query) {
    await openAccounts(query, "v", "w");
    const last = await openCapped(query, ["v", "w"], "r", "a", "b");
    const held = { credit: 60, running: 1 };
    await done(query, "r", itemIn("w", { ...last("w"), held, freed: [{ requestId: "a" }] }));
    assert.deepEqual(await holdsIn(query), ["v a user:u 60", "v b user:u 60", "w b user:u 60"]);
  },

  async "frees what a settled request holds of caps, and nothing else"(query) {
    await openAccounts(query, "v", "w");
    const last = await openCapped(query, ["v", "w"], "r", "a", "b");
    const held = { credit: 60, running: 1 };
    await done(query, "r", itemIn("w", { ...last("w"), held, posts: [postAt("a", 7, { end_user: "u" })] }));
    assert.deepEqual(await holdsIn(query), ["v a user:u 60", "v b user:u 60", "w b user:u 60"]);
    // Settlements of several workspaces, posted together.
    const [v, w] = [await openCapped(query, ["v"], "s", "x", "y"), await openCapped(query, ["w"], "s", "x", "y")];
    for (const [name, { after, grant }, id] of [
      ["v", v("v"), "x"],
      ["w", w("w"), "y"],
    ] as const)
      await send(query, "s", itemIn(name, { after, grant, held, mode: "append", posts: [postAt(`${id}`, 1)] }));
    await query("select post_settlements(array['v', 'w'], $1)", [new Date(AT)]);
    const left = ["v a user:u 60", "v b user:u 60", "v y user:u 60", "w b user:u 60", "w x user:u 60"];
    assert.deepEqual(await holdsIn(query), left);
  },

  async "adds a settlement to the counters of its subjects in its workspace"(query) {
    await openAccounts(query, "w");
    for (const subject of ["key:key_1", "tag:team=x", "user:other"]) await cap(query, "w", subject, 500);
    const subjects = ["key:key_1", "user:u", "tag:team=x"];
    const ask = (w: string) => itemIn(w, { asks: [askFor("a", 60, ...subjects), askFor("b", 60, "user:other")] });
    const post = postAt("a", 7, { output: 3, end_user: "u", tags: { team: "x" } });
    const settle = async (w: string) => {
      const item = ask(w);
      const { grant } = await done(query, "r", item);
      const held = { credit: 60, running: 1 };
      await done(query, "r", itemIn(w, { grant, after: item.seq, held, posts: [post] }));
    };
    await settle("w");
    const ofUser = ["w key:key_1 1 3 7", "w tag:team=x 1 3 7", "w user:other 1 0 0", "w user:u 1 3 7"];
    assert.deepEqual(await spentBySubject(query), ofUser);
    // The same subjects in another workspace.
    await openAccounts(query, "v");
    await openCapped(query, ["v"], "r", "c");
    await done(query, "s", itemIn("w", { posts: [postAt("d", 9, { end_user: "u" })] }));
    const more = ["w key:key_1 1 4 16", "w tag:team=x 1 3 7", "w user:other 1 0 0", "w user:u 1 4 16"];
    assert.deepEqual(await spentBySubject(query), ["v user:u 1 0 0", ...more]);
  },

  async "adds what is posted together to the subjects of each workspace"(query) {
    await openAccounts(query, "v", "w");
    const last = await openCapped(query, ["v", "w"], "r", "a");
    for (const [w, charge] of [
      ["v", 5],
      ["w", 7],
    ] as const) {
      const posts = [postAt("a", charge, { end_user: "u", output: charge })];
      await send(query, "r", itemIn(w, { ...last(w), mode: "append", posts }));
    }
    await query("select post_settlements(array['v', 'w'], $1)", [new Date(AT)]);
    assert.deepEqual(await spentBySubject(query), ["v user:u 1 5 5", "w user:u 1 7 7"]);
  },

  async "frees what the requests of a grant hold of caps when it ends, and nothing of other grants"(query) {
    await openAccounts(query, "v", "w");
    await openCapped(query, ["v", "w"], "r", "a");
    await openCapped(query, ["w"], "s", "b");
    await query("select end_grants('w', 'r', $1)", [new Date(AT)]);
    assert.deepEqual(await holdsIn(query), ["v a user:u 60", "w b user:u 60"]);
    // A grant that its replica does not know is replaced.
    await done(query, "s", itemIn("w"));
    assert.deepEqual(await holdsIn(query), ["v a user:u 60"]);
  },

  async "charges a late settlement what the cap of its user leaves beside running requests"(query) {
    await openAccounts(query, "w");
    await openCapped(query, ["w"], "r", "a");
    const late = (id: string, charge: number) => ({ ...postAt(id, charge, { end_user: "u" }), admittedBy: "gone" });
    const { charges } = await done(query, "s", itemIn("w", { posts: [late("x", 400), late("y", 100)] }));
    assert.deepEqual(charges, { y: 40 });
  },
};
