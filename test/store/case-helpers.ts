import assert from "node:assert/strict";
import type { Item, Post } from "../../src/admission/escrow/exchange.ts";
import { execute } from "../../src/admission/escrow/execute.ts";
import type { Query } from "../../src/store/pool.ts";
import { itemOf, postOf } from "../helpers/exchange.ts";

/** What a function of the money path does in a state that schedules seldom reach. Each starts from empty tables. */
export type Cases = Record<string, (query: Query) => Promise<void>>;

export const AT = Date.UTC(2026, 4, 6, 7, 8, 9);
export async function openAccount(
  query: Query,
  workspace: string,
  {
    granted = 0,
    purchased = 0,
    limits = {},
    spend = {},
  }: Partial<Record<"granted" | "purchased", number>> & {
    limits?: object;
    spend?: object;
  } = {},
): Promise<void> {
  await query(
    `insert into accounts (workspace_id, granted_micro, purchased_micro, limits, spend_limits)
     values ($1, $2, $3, $4, $5)`,
    [workspace, granted, purchased, JSON.stringify(limits), JSON.stringify(spend)],
  );
}

export async function send(query: Query, replica: string, item: Item, at: number | undefined = AT) {
  const [reply] = await execute({ query }, replica, 1, [item], at);
  return reply;
}

/** Sends an item that is executed. */
export async function done(query: Query, replica: string, item: Item, at: number | undefined = AT) {
  const reply = await send(query, replica, item, at);
  assert.ok(reply?.state === "done", `${replica} gets ${reply?.state}`);
  return reply;
}

/** An item that stays open. */
export function itemIn(workspace: string, rest: Partial<Item> = {}): Item {
  return { ...itemOf(workspace), close: false, ...rest };
}

export function askOf(requestId: string, hold: number, input = 1) {
  return { requestId, hold, input };
}

export function postAt(request: string, charge: number, row: object = {}, at = AT): Post {
  return postOf(request, { charge, ...row }, new Date(at));
}

/** Admits a request of each replica in each workspace. @returns number of the last item and of the grant */
export async function openAll(query: Query, workspaces: string[], replicas: string[]) {
  const last = new Map<string, { after: number; grant: number }>();
  for (const w of workspaces) {
    for (const r of replicas) {
      const item = itemIn(w, { asks: [askOf(`${w} ${r}`, 100)] });
      const { grant } = await done(query, r, item);
      last.set(`${w} ${r}`, { after: item.seq, grant });
    }
  }
  return (w: string, r: string) => last.get(`${w} ${r}`) ?? { after: 0, grant: 0 };
}

export async function grantsIn(query: Query): Promise<string[]> {
  const rows = await query<{ text: string }>(
    "select concat_ws(' ', workspace_id, replica, credit_micro, held_micro) as text from grants order by 1",
  );
  return rows.map(({ text }) => text);
}
