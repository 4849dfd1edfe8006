import assert from "node:assert/strict";
import { test } from "vitest";
import type { Item, Reply } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Account, Grant, Limits } from "./account.ts";
import type { Call } from "./actors.ts";
import type { KeyUse } from "./keys.ts";
import { runSchedule } from "./schedule.ts";

/** Schedules of a run; set CHORUS_TEST_RUNS for a longer search. */
const SCHEDULES = Number(process.env.CHORUS_TEST_RUNS ?? 30);

test("the SQL functions answer as the model of the simulation does, and reach the same books", async (t) => {
  const { url } = await testDatabase(t);
  // The pool of testDatabase() would post the log of all workspaces when one is compared.
  const pool = openPool(url);
  t.onTestFinished(() => pool.end());
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const calls: Call[] = [];
    const { database } = runSchedule(seed, { calls });
    const prefix = `s${seed}_`;
    for (const [i, call] of calls.entries()) {
      const where = `call ${i} of seed ${seed}`;
      if (call.do !== "exchange") await repeat(pool, prefix, call, i);
      else {
        const items = call.items.map((item) => named(item, prefix));
        const replies = await execute(pool, prefix + call.replica, call.live, items, call.at);
        // Numbers of grants are compared by their order.
        assert.deepEqual(replies.map(plain), call.replies.map(plain), where);
        for (const [n, reply] of replies.entries()) noteGrants(prefix, call.replies[n], reply);
      }
    }
    for (const [workspace, account] of database.accounts) await compare(pool, prefix + workspace, account, prefix);
  }
});

/** Number of a grant in the model → in the database, since both count on their own. */
const grants = new Map<string, number>();

function noteGrants(prefix: string, model: Reply | undefined, sql: Reply | undefined): void {
  if (model?.state === "done" && sql?.state === "done") grants.set(prefix + model.grant, sql.grant);
}

/** An item with names of its own for each schedule, and rows that the database accepts. */
function named(item: Item, prefix: string): Item {
  return {
    ...item,
    workspace: prefix + item.workspace,
    grant: item.grant === 0 ? 0 : (grants.get(prefix + item.grant) ?? -1),
    posts: item.posts.map((post) => ({
      ...post,
      ...(post.admittedBy === undefined ? {} : { admittedBy: prefix + post.admittedBy }),
      row: {
        ...post.row,
        id: `gen_${post.requestId}`,
        created_at: new Date(Date.UTC(2026, 10, 30)),
        key_id: "key_1",
        streamed: false,
        shape: "text",
        effort: "auto",
        level: "low",
        input_tokens: 1,
        cached_tokens: 0,
        outcome: "ok",
        latency_ms: 1,
      },
    })),
  };
}

/** What both have to answer alike. Waits are not modelled. */
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

async function repeat(pool: Pool, prefix: string, call: Exclude<Call, { do: "exchange" }>, n: number): Promise<void> {
  if (call.do === "open") {
    const { granted, purchased } = call;
    const { limits, spend } = columnsOf(call.limits);
    await pool.query(
      `insert into accounts (workspace_id, granted_micro, purchased_micro, limits, spend_limits)
       values ($1, $2, $3, $4, $5)`,
      [prefix + call.workspace, granted, purchased, limits, spend],
    );
    await pool.query("insert into periods select (periods_at($1, $2)).*", [prefix + call.workspace, new Date(call.at)]);
  } else if (call.do === "limits") {
    const { limits, spend } = columnsOf(call.limits);
    await pool.query("update accounts set limits = $2, spend_limits = $3 where workspace_id = $1", [
      prefix + call.workspace,
      limits,
      spend,
    ]);
  } else if (call.do === "grant") {
    await pool.query("select book_credit($1, 'grant', $2, $3)", [prefix + call.workspace, String(n), call.amount]);
  } else if (call.do === "post") {
    await pool.query("select post_settlements($1, $2)", [[prefix + call.workspace], new Date(call.at)]);
    await compare(pool, prefix + call.workspace, call.after, prefix);
  } else {
    await pool.query("select end_grants(workspace_id, replica, $2) from grants where replica = $1", [
      prefix + call.replica,
      new Date(call.at),
    ]);
  }
}

function columnsOf({ running, requests, input, output, spend }: Limits): { limits: string; spend: string } {
  const perUnit = (name: string, counts: object | undefined) =>
    Object.fromEntries(Object.entries(counts ?? {}).map(([unit, most]) => [`${name}_per_${unit}`, most]));
  const limits = {
    ...(running === undefined ? {} : { concurrent_requests: running }),
    ...perUnit("requests", requests),
    ...perUnit("input_tokens", input),
    ...perUnit("output_tokens", output),
  };
  return { limits: JSON.stringify(limits), spend: JSON.stringify(spend ?? {}) };
}

function usedBy([key, { requestId, response = "" }]: [string, KeyUse]): string {
  return `${key} ${requestId} ${response}`;
}

function reservedBy([replica, grant]: [string, Grant], prefix: string): string {
  const { seq, credit, held, running, runningNow, requests, input, output } = grant;
  return [prefix + replica, seq, credit, held, running, runningNow, requests, input, output].join(" ");
}

async function compare(pool: Pool, workspace: string, account: Account, prefix: string): Promise<void> {
  const [found] = await pool.query(
    `select granted_micro as granted, purchased_micro as purchased, requests, input_tokens as input,
       output_tokens as output, spent_micro as spent, 
       (select array_agg(encode(key, 'hex') || ' ' || request_id || ' ' || coalesce(encode(response, 'base64'), '')
         order by key) from idempotency i where i.workspace_id = $1) as keys,
       (select array_agg(concat_ws(' ', replica, seq, credit_micro, held_micro, running, running_now, requests,
          input_tokens, output_tokens) order by replica) from grants g where g.workspace_id = $1) as grants,
       (select count(*) from settlement_log l where l.workspace_id = $1) as waiting,
       (select -coalesce(sum(granted_micro + purchased_micro), 0)::bigint from ledger l
        where l.workspace_id = $1 and kind = 'settlement') as charged
     from accounts a left join periods p using (workspace_id) where workspace_id = $1`,
    [workspace],
  );
  const counts = (of: Account["requests"]) => [of.minute, of.day, of.week, of.month].map(String);
  const { granted, purchased, requests, input, output, spent, posted, keys } = account;
  const charged = [...posted.values()].reduce((sum, charge) => sum + charge, 0);
  const expected = {
    granted: BigInt(granted),
    purchased: BigInt(purchased),
    requests: counts(requests),
    input: counts(input),
    output: counts(output),
    spent: counts(spent),
    keys: keys.size > 0 ? [...keys].map(usedBy).sort() : null,
    grants: account.grants.size > 0 ? [...account.grants].map((entry) => reservedBy(entry, prefix)).sort() : null,
    waiting: BigInt(account.log.flatMap(({ posts }) => posts).length),
    charged: BigInt(charged),
  };
  assert.deepEqual(found, expected, `${workspace} of ${prefix}`);
}
