import assert from "node:assert/strict";
import type { Item, Reply } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import type { Pool } from "../../src/store/pool.ts";
import type { Account, Grant, Limits } from "./account.ts";
import type { Call } from "./actors.ts";
import type { KeyUse } from "./keys.ts";
import { UNITS } from "./windows.ts";

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
    for (const [kind, amount] of [
      ["grant", granted],
      ["purchase", purchased],
    ] as const)
      await pool.query("select book_credit($1, $2, $2, $3)", [workspace, kind, amount]);
    await limit(pool, workspace, limits);
    await pool.query("insert into periods select (periods_at($1, $2)).*", [workspace, new Date(at)]);
  }

  /** An item with names of its own, and rows that the database accepts. */
  #named(item: Item): Item {
    const { prefix } = this;
    return {
      ...item,
      workspace: prefix + item.workspace,
      grant: item.grant === 0 ? 0 : (this.#grants.get(item.grant) ?? -1),
      posts: item.posts.map((post) => ({
        ...post,
        ...(post.admittedBy === undefined ? {} : { admittedBy: prefix + post.admittedBy }),
        row: { ...ROW, ...post.row, id: `gen_${post.requestId}` },
      })),
    };
  }
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

/** What both have to answer alike. Waits are not modelled, and numbers of grants are compared apart. */
function plain(reply: Reply | undefined): unknown {
  if (reply?.state !== "done") return reply;
  const verdicts = reply.verdicts.map(({ refusal, calledBack = false, response }) => ({
    refusal: refusal?.refusal,
    limit: refusal?.limit,
    calledBack,
    response,
  }));
  const { charges, extra, minute, msLeft, isOver } = reply;
  return { verdicts, charges, extra, minute, msLeft, isOver };
}

function columnsOf({ running, requests, input, output, spend = {} }: Limits): { limits: object; spend: object } {
  const perUnit = (name: string, counts: object | undefined) =>
    Object.fromEntries(Object.entries(counts ?? {}).map(([unit, most]) => [`${name}_per_${unit}`, most]));
  const limits = {
    ...(running === undefined ? {} : { concurrent_requests: running }),
    ...perUnit("requests", requests),
    ...perUnit("input_tokens", input),
    ...perUnit("output_tokens", output),
  };
  return { limits, spend };
}

async function foundIn(pool: Pool, workspace: string): Promise<unknown> {
  const [found] = await pool.query(
    `select granted_micro::text as granted, purchased_micro::text as purchased, limits,
       spend_limits as spend, requests, input_tokens as input,
       output_tokens as output, spent_micro as spent,
       (extract(epoch from at) * 1000)::float8 as at, (extract(epoch from clock) * 1000)::float8 as clock,
       (select array_agg(concat_ws(' ', encode(key, 'hex'), encode(body, 'hex'), request_id, encode(response, 'base64'))
         order by key) from idempotency i where i.workspace_id = $1) as keys,
       (select array_agg(concat_ws(' ', replica, seq, credit_micro, held_micro, running, running_now, requests,
          input_tokens, output_tokens, (extract(epoch from at) * 1000)::float8) order by replica collate "C")
        from grants g where g.workspace_id = $1) as grants,
       (select array_agg(concat_ws(' ', request_id, credits_micro) order by request_id collate "C")
        from generations g where g.workspace_id = $1) as posted,
       (select coalesce(sum(json_array_length(posts)), 0)::text from settlement_log l
        where l.workspace_id = $1) as waiting,
       (select coalesce(sum(requests), 0)::text from usage u where u.workspace_id = $1 and unit = 'hour') as answered
     from accounts a left join periods p using (workspace_id) where workspace_id = $1`,
    [workspace],
  );
  return found;
}

function expectedOf(account: Account, prefix: string): object {
  const counts = (of: Account["requests"]) => UNITS.map((unit) => String(of[unit]));
  const { granted, purchased, requests, input, output, spent, at, clock, posted, keys, grants, log } = account;
  const orNull = (texts: string[]) => (texts.length > 0 ? texts.sort() : null);
  return {
    granted: String(granted),
    purchased: String(purchased),
    ...columnsOf(account.limits),
    requests: counts(requests),
    input: counts(input),
    output: counts(output),
    spent: counts(spent),
    at,
    clock,
    keys: orNull([...keys].map(usedBy)),
    grants: orNull([...grants].map((entry) => reservedBy(entry, prefix))),
    posted: orNull([...posted].map(([request, charge]) => `${request} ${charge}`)),
    waiting: String(log.flatMap(({ posts }) => posts).length),
    answered: String(posted.size),
  };
}

function usedBy([key, { body, requestId, response }]: [string, KeyUse]): string {
  return [key, body, requestId, ...(response === undefined ? [] : [response])].join(" ");
}

function reservedBy([replica, grant]: [string, Grant], prefix: string): string {
  const { seq, credit, held, running, runningNow, requests, input, output, at } = grant;
  return [prefix + replica, seq, credit, held, running, runningNow, requests, input, output, at].join(" ");
}
