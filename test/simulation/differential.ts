import assert from "node:assert/strict";
import { inspect } from "node:util";
import { CapActionSchema, CapFigureSchema, CapPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Item, Reply } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import { numberOf } from "../../src/contract/json-names.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import type { Account, Limits } from "./account.ts";
import type { Call } from "./actors.ts";
import type { Cap } from "./caps.ts";
import { columnsOf, expectedOf, foundIn, keyed } from "./differential-books.ts";

/** Runs calls of the model's database with the SQL functions, and compares answers and books. */
export class Differential {
  readonly pool: Pool;
  /** Of its workspaces, replicas and requests, so that several can share a database. */
  readonly prefix: string;
  /** Number of a grant in the model → in the database, since both count on their own. */
  readonly #grants = new Map<number, number>();

  /** @param pool one that posts nothing by itself */
  constructor(pool: Pool, prefix: string) {
    this.pool = pool;
    this.prefix = prefix;
  }

  /**
   * Repeats the calls of a schedule.
   * @throws AssertionError at the first answer that differs
   */
  async repeat(calls: readonly Call[]): Promise<void> {
    for (const [i, call] of calls.entries()) {
      const replies = await this.execute(call, String(i));
      if (call.do === "exchange") {
        this.compareReplies(replies, call.replies, `call ${i} of ${this.prefix}`);
        this.note(replies, call.replies);
      }
      if (call.do === "post") await this.compare(call.workspace, call.after);
    }
  }

  /**
   * Executes a call.
   * @param reference of a booking
   * @returns the replies to the items of an exchange
   */
  async execute(call: Call, reference: string, pool = this.pool): Promise<(Reply | undefined)[]> {
    const { prefix } = this;
    if (call.do === "exchange") {
      const items = call.items.map((item) => this.#named(item));
      const replies = await execute(pool, prefix + call.replica, call.live, items, call.at);
      return replies.map((reply, i) => withoutPrices(reply, items[i]));
    }
    if (call.do === "end") {
      await pool.query("select end_grants(workspace_id, replica, $2) from grants where replica = $1", [
        prefix + call.replica,
        new Date(call.at),
      ]);
      return [];
    }
    const workspace = prefix + call.workspace;
    if (call.do === "open") await this.#open(workspace, call);
    else if (call.do === "limits") await limit(pool, workspace, call.limits);
    else if (call.do === "set cap") await this.#setCap(pool, workspace, call.cap, call.at);
    else if (call.do === "clear cap") await this.#clearCap(pool, workspace, call.cap, call.at);
    else if (call.do === "grant")
      await pool.query("select book_credit($1, 'grant', $2, $3)", [workspace, reference, call.amount]);
    else await pool.query("select post_settlements($1, $2)", [[workspace], new Date(call.at)]);
    return [];
  }

  compareReplies(sql: readonly (Reply | undefined)[], model: readonly (Reply | undefined)[], where: string): void {
    assert.deepEqual(sql.map(plain), model.map(plain), where);
    for (const [n, reply] of sql.entries()) {
      const other = model[n];
      if (reply?.state !== "done" || other?.state !== "done") continue;
      assert.equal(reply.grant, this.#grants.get(other.grant) ?? reply.grant, where);
    }
  }

  /** Notes the numbers of the grants that replies name. */
  note(sql: readonly (Reply | undefined)[], model: readonly (Reply | undefined)[]): void {
    for (const [n, reply] of sql.entries()) {
      const other = model[n];
      if (reply?.state === "done" && other?.state === "done") this.#grants.set(other.grant, reply.grant);
    }
  }

  /** Compares the books of a workspace. */
  async compare(workspace: string, account: Account): Promise<void> {
    const id = this.prefix + workspace;
    assert.deepEqual(await foundIn(this.pool, id), expectedOf(account, this.prefix), id);
  }

  /** Compares the books of all workspaces, and checks that each is right by itself. */
  async end(accounts: ReadonlyMap<string, Account>): Promise<void> {
    for (const [workspace, account] of accounts) {
      await this.compare(workspace, account);
      // Limits change without the entries of the audit that these two read.
      const wrong = await this.pool.query(
        "select * from check_books($1) where check_name not like 'reserved %s%' and check_name <> 'spend limit'",
        [this.prefix + workspace],
      );
      assert.deepEqual(wrong, []);
    }
  }

  async #open(workspace: string, { granted, purchased, limits, at }: Extract<Call, { do: "open" }>): Promise<void> {
    const { pool } = this;
    await pool.query("insert into accounts (workspace_id, tier_override) values ($1, 'none')", [workspace]);
    await pool.query("insert into workspaces (id, name) values ($1, $1)", [workspace]);
    await pool.query(
      `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
       select $1, id, sha256(convert_to(id, 'UTF8')), '', '{}' from unnest($2::text[]) as k (id)`,
      [workspace, ["k1", "k2"].map((key) => `${workspace}_${key}`)],
    );
    for (const [kind, amount] of [
      ["grant", granted],
      ["purchase", purchased],
    ] as const)
      await pool.query("select book_credit($1, $2, $2, $3)", [workspace, kind, amount]);
    await limit(pool, workspace, limits);
    await pool.query("insert into periods select (periods_at($1, $2)).*", [workspace, new Date(at)]);
  }

  async #setCap(pool: Pool, workspace: string, cap: Cap, at: number): Promise<void> {
    const { amount, endsAt } = cap;
    const { caps } = adminOf(pool, { clock: () => at });
    await caps.setCap({
      workspace,
      cap: {
        subject: this.#subject(cap.subject),
        figure: numberOf(CapFigureSchema, cap.figure),
        period: numberOf(CapPeriodSchema, cap.period),
        action: numberOf(CapActionSchema, cap.action),
        amount: cap.figure === "credits" ? (amount / 1e6).toFixed(6) : String(amount),
        ...(endsAt === undefined ? {} : { endsAt: { seconds: BigInt(endsAt / 1_000), nanos: 0 } }),
      },
    });
    await recordAt(pool, workspace, at);
  }

  async #clearCap(pool: Pool, workspace: string, cap: Cap, at: number): Promise<void> {
    const { subject, figure, period, action, endsAt } = cap;
    const [row] = await pool.query<{ id: string }>(
      `select id from caps where workspace_id = $1 and subject = $2 and figure = $3 and period = $4 and action = $5
         and (ends_at is not null) = $6`,
      [workspace, this.#subject(subject), figure, period, action, endsAt !== undefined],
    );
    await adminOf(pool, { clock: () => at }).caps.clearCap({ workspace, id: row?.id ?? "" });
    await recordAt(pool, workspace, at);
  }

  #subject(subject: string): string {
    return keyed(subject, this.prefix);
  }

  /** An item with names of its own, and rows that the database accepts. */
  #named(item: Item): Item {
    const { prefix } = this;
    return {
      ...item,
      workspace: prefix + item.workspace,
      grant: item.grant === 0 ? 0 : (this.#grants.get(item.grant) ?? -1),
      asks: item.asks.map((ask) =>
        ask.subjects ? { ...ask, subjects: ask.subjects.map((subject) => this.#subject(subject)) } : ask,
      ),
      subjects: (item.subjects ?? []).map((report) => ({ ...report, subject: this.#subject(report.subject) })),
      posts: item.posts.map((post) => ({
        ...post,
        ...(post.shared ? { shared: post.shared.map((subject) => this.#subject(subject)) } : {}),
        ...(post.admittedBy === undefined ? {} : { admittedBy: prefix + post.admittedBy }),
        row: { ...ROW, ...post.row, ...this.#keyOf(post.row), id: `gen_${post.requestId}` },
      })),
    };
  }

  #keyOf({ key_id }: { key_id?: string }): object {
    return key_id === undefined ? {} : { key_id: this.prefix + key_id };
  }
}

/** Changes the time of the last entry of the audit, which check_books() compares with the periods of caps. */
async function recordAt(pool: Pool, workspace: string, at: number): Promise<void> {
  await pool.query(
    "update audit set at = $2 where workspace_id = $1 and id = (select max(id) from audit where workspace_id = $1)",
    [workspace, new Date(at)],
  );
}

/** Changes limits in one statement, which locks the account first. */
async function limit(pool: Pool, workspace: string, of: Limits): Promise<void> {
  const { limits, spend } = columnsOf(of);
  await pool.tx(async (query) => {
    await query("update accounts set overrides = $2, spend_limits = $3 where workspace_id = $1", [
      workspace,
      JSON.stringify(limits),
      JSON.stringify(spend),
    ]);
    await query("select refresh_limits($1)", [workspace]);
  });
}

const ROW = {
  created_at: new Date(Date.UTC(2026, 10, 30)),
  key_id: "key_1",
  streamed: false,
  shape: "text",
  effort: "auto",
  level: "low",
  input_tokens: 3,
  cached_tokens: 1,
  outcome: "ok",
  latency_ms: 1,
};

/** Of a settlement that is posted already, the functions name the charge even if it is the price. */
function withoutPrices(reply: Reply | undefined, item: Item | undefined): Reply | undefined {
  if (reply?.state !== "done") return reply;
  const prices = new Map(item?.posts.map(({ requestId, charge }) => [requestId, charge]));
  const charges = Object.entries(reply.charges).filter(([requestId, charge]) => prices.get(requestId) !== charge);
  return { ...reply, charges: Object.fromEntries(charges) };
}

/**
 * What both have to answer alike. Waits of the workspace's limits are not modelled, and numbers of grants are compared
 * apart.
 */
function plain(reply: Reply | undefined): unknown {
  if (reply?.state !== "done") return reply;
  const verdicts = reply.verdicts.map(({ refusal, calledBack = false, response, low }) => ({
    refusal: refusal?.refusal,
    limit: refusal?.limit,
    ...(refusal?.limit?.includes(":") ? { never: refusal.never, wait: refusal.retry_ms } : {}),
    calledBack,
    response,
    low,
  }));
  const { charges, extra, minute, msLeft, isOver } = reply;
  // Keys have other names in the database. Subjects come in any order.
  const named = (reply.subjects ?? []).map((one) => ({ ...one, subject: one.subject.replace(/^key:.*/, "key") }));
  const subjects = named.toSorted((a, b) => (inspect(a) < inspect(b) ? -1 : 1));
  return { verdicts, charges, extra, minute, msLeft, isOver, subjects };
}
