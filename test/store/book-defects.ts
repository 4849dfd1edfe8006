import assert from "node:assert/strict";
import { type Item, NOTHING, type Post } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import type { Query } from "../../src/store/pool.ts";
import { itemOf, postOf } from "../helpers/exchange.ts";

/** A change of the books, and what `check_books` has to say about it: check, workspace, subject, expected, found. */
export interface BookDefect {
  what: string;
  sql: string;
  finds: readonly string[];
}

const AT = Date.UTC(2026, 4, 6, 7, 8, 9);
const HOUR = 3_600_000;
/** The start of a day, in which purchased credit is booked and spent. */
const DAY = Date.UTC(2026, 4, 6);

/** Books of two workspaces, of every kind of row. They are right. */
export async function keepBooks(query: Query): Promise<void> {
  for (const w of ["ws_1", "ws_2"]) {
    await query(
      `insert into accounts (workspace_id, overrides, limits, spend_limits)
       values ($1, $2, $2, '{"day": 3000000, "month": 9000000}')`,
      [
        w,
        JSON.stringify({
          ...{ requests_per_minute: 100, requests_per_day: 1_000, requests_per_month: 5_000 },
          ...{ input_tokens_per_minute: 1_000, input_tokens_per_day: 5_000, input_tokens_per_month: 9_000 },
        }),
      ],
    );
    const at = new Date(AT - 40 * 24 * HOUR);
    await query("select book_credit($1, 'grant', 'first', 1000000, $2)", [w, at]);
    await query("select book_credit($1, 'grant', 'back', -1000, $2)", [w, at]);
    await query("select book_credit($1, 'purchase', 'second', 5000000, $2)", [w, new Date(DAY)]);
    for (const [created, posts] of requestsOf(w)) {
      await send(query, "r0", { ...itemOf(w), posts: posts.map((post) => withTime(post, created)) }, created);
    }
    await reserve(query, w);
  }
  assert.deepEqual(await found(query), []);
}

/** By the time of their admission and settlement: of this minute, hour, day and month, and of others. */
function requestsOf(w: string): [at: number, posts: Post[]][] {
  const post = (id: string, charge: number, row: object = {}) => postOf(`${w}_${id}`, { charge, output: 7, ...row });
  return [
    [Date.UTC(2026, 2, 1), [post("old", 300_000)]],
    [Date.UTC(2026, 2, 20), [post("march", 1)]],
    [AT - 30 * HOUR, [post("yesterday", 500_000, { cached_tokens: 1 }), post("failed", 0, { outcome: "internal" })]],
    [DAY, [post("both", 600_000), post("left", 50, { outcome: "caller_gone", streamed: true })]],
    [AT - HOUR, [post("alone", 0, { outcome: "internal", cached_tokens: 1 })]],
    [AT, [post("now", 10), post("gone", 0, { outcome: "caller_gone" }), post("cut", 0, { outcome: "cut_short" })]],
  ];
}

function withTime(post: Post, at: number): Post {
  return { ...post, row: { ...post.row, created_at: new Date(at) } };
}

/** A running request and spare headroom of r1, with a settlement in the log, and a running request of r2. */
async function reserve(query: Query, w: string): Promise<void> {
  const asks = ["a", "b"].map((id) => ({ requestId: `${w}_${id}`, hold: 1_000, input: 5 }));
  const spare = { n: 4, credit: 100, input: 2, output: 1 };
  const open = { ...itemOf(w), asks, spare, close: false };
  const reply = await send(query, "r1", open, AT);
  await send(query, "r2", { ...itemOf(w), asks: [{ requestId: `${w}_c`, hold: 2_000, input: 1 }], close: false }, AT);
  assert.ok(reply?.state === "done" && reply.verdicts.every(({ refusal }) => !refusal));
  const append: Item = {
    ...itemOf(w),
    ...{ mode: "append", grant: reply.grant, after: open.seq, keep: NOTHING },
    ...{ held: { credit: 1_000, running: 1 }, used: { requests: 1, input: 2 } },
    posts: [withTime(postOf(`${w}_a`, { charge: 900 }), AT)],
  };
  assert.deepEqual(await send(query, "r1", append, AT), { state: "appended" });
}

async function send(query: Query, replica: string, item: Item, at: number) {
  const [reply] = await execute({ query }, replica, 1, [item], at);
  return reply;
}

/** What `check_books` finds, sorted. */
export async function found(query: Query, workspace: string | null = null): Promise<string[]> {
  const rows = await query<Record<string, string>>("select * from check_books($1)", [workspace]);
  return rows.map((row) => Object.values(row).join(" | ")).sort();
}

/** Makes a defect, and fails unless it is found: in all workspaces, and in its own, but not in another one. */
export async function checkDefect(query: Query, { what, sql, finds }: BookDefect): Promise<void> {
  await query(sql);
  const all = await found(query);
  assert.deepEqual(all, [...finds].sort(), what);
  for (const w of ["ws_1", "ws_2", "ws_3"]) {
    const of = finds.filter((line) => line.split(" | ")[1] === w);
    assert.deepEqual(await found(query, w), of.sort(), `${what}, in ${w}`);
  }
}
