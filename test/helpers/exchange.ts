import assert from "node:assert/strict";
import { type Ask, type Item, NOTHING, type Post, type Reply } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import type { Refusal } from "../../src/admission/escrow/refusal.ts";
import type { Pool } from "../../src/store/pool.ts";

let seq = 0;

type Queries = Pick<Pool, "query">;

/**
 * Admits a request in the database, under a grant of a replica that has the name of the request.
 * @returns why it is refused; undefined: it is admitted
 */
export async function admitIn(
  pool: Queries,
  workspace: string,
  request: string,
  {
    hold,
    input = 1,
    key,
    ...of
  }: { hold: number; input?: number; key?: Pick<Ask, "key" | "body"> } & Pick<Ask, "subjects">,
  at?: Date,
): Promise<Refusal | undefined> {
  const asks = [{ requestId: request, hold, input, ...key, ...of }];
  const reply = await send(pool, { ...itemOf(workspace), asks }, request, at);
  assert.ok(reply?.state === "done");
  return reply.verdicts[0]?.refusal;
}

/**
 * Ends a request that `admitIn` has admitted.
 * @param row columns of `generations` that differ from the default
 * @returns what is charged; undefined: its grant has ended
 */
export async function settleIn(
  pool: Queries,
  workspace: string,
  request: string,
  row: { charge: number; output?: number; [column: string]: unknown },
  at?: Date,
): Promise<number | undefined> {
  const [grant] = await pool.query<{ id: bigint }>("select id from grants where workspace_id = $1 and replica = $2", [
    workspace,
    request,
  ]);
  const item = { ...itemOf(workspace), grant: Number(grant?.id ?? -1), posts: [postOf(request, row, at)] };
  const reply = await send(pool, item, request, at);
  return reply?.state === "done" ? (reply.charges[request] ?? row.charge) : undefined;
}

/** Records requests without a grant. */
export async function recordIn(pool: Queries, workspace: string, posts: readonly Post[], at?: Date): Promise<void> {
  const reply = await send(pool, { ...itemOf(workspace), posts }, "r", at);
  assert.equal(reply?.state, "done");
}

/** The end of a request. The row is one of an answer, except for what is given. */
export function postOf(
  request: string,
  { charge, output = 1, ...row }: { charge: number; output?: number; [column: string]: unknown },
  at = new Date(),
): Post {
  const columns = { key_id: "key_1", streamed: false, shape: "text", effort: "auto", level: "low" };
  const figures = { input_tokens: 1, cached_tokens: 0, outcome: "ok", latency_ms: 1 };
  const ids = { id: `gen_${request}`, created_at: at };
  return { requestId: request, charge, output, row: { ...ids, ...columns, ...figures, ...row } };
}

async function send(pool: Queries, item: Item, replica: string, at: Date | undefined): Promise<Reply | undefined> {
  const [reply] = await execute(pool, replica, 1, [item], at?.getTime());
  return reply;
}

/** An item that keeps nothing, and closes the grant if nothing is held. */
export function itemOf(workspace: string): Item {
  return {
    workspace,
    seq: ++seq,
    grant: 0,
    after: 0,
    minute: 0,
    keep: NOTHING,
    held: { credit: 0, running: 0 },
    used: { requests: 0, input: 0 },
    asks: [],
    posts: [],
    freed: [],
    spare: { n: 0, credit: 0, input: 0, output: 0 },
    close: true,
    mode: "exchange",
  };
}
