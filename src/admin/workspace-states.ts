import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type OperationsService,
  WorkspaceCondition,
  WorkspaceOrder,
  WorkspaceOrderSchema,
  type WorkspaceTotalsSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { LimitNameSchema } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { maxPriceOf, type Rates } from "../admission/price.ts";
import { numberOf, readEnum } from "../contract/json-names.ts";
import type { Pool } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText } from "./shared/amount.ts";
import { checkLabel } from "./shared/fields.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage } from "./shared/page.ts";
import { COLUMNS, type WorkspaceRow, workspaceMessage } from "./workspaces/workspace.ts";

/** Their price is 0 only if each rate is. */
const MANY_TOKENS = 1_000_000;

/** The use of a workspace since the start of an hour, 24 to 25 hours ago. */
interface Use {
  requests: bigint;
  failed: bigint;
  /** In millionths of a credit. */
  charged: bigint;
}

interface StateRow extends WorkspaceRow, Use {
  /** Value of the order, as text. */
  key: string;
  reached: string[];
  /** Purchased credit that the spend limits leave, in millionths; null: there are none. */
  spendable: bigint | null;
}

/** Sums over the workspaces whose name matches, in each row of a first page. Amounts are in millionths of a credit. */
interface TotalsRow {
  all_workspaces: bigint;
  all_granted: bigint;
  all_purchased: bigint;
  all_requests: bigint;
  all_failed: bigint;
  all_charged: bigint;
}

const SUMS = `coalesce(sum(requests), 0)::bigint as requests, coalesce(sum(failed_requests), 0)::bigint as failed,
  coalesce(sum(credits_micro), 0)::bigint as charged`;
const RECENT = "unit = 'hour' and start >= date_trunc('hour', now() - interval '24 hours', 'UTC')";

interface Order {
  /** In tokens of pages, of which one of another order names no place in this one. */
  word: string;
  /** SQL of the value by which it sorts. */
  key: string;
  type: "text" | "bigint";
}

const BY_NAME: Order = { word: "name", key: "w.name", type: "text" };
const ORDERS: Readonly<Record<WorkspaceOrder, Order>> = {
  [WorkspaceOrder.UNSPECIFIED]: BY_NAME,
  [WorkspaceOrder.NAME]: BY_NAME,
  [WorkspaceOrder.CREATED]: { word: "created", key: microsOf("w.created_at"), type: "bigint" },
  [WorkspaceOrder.BALANCE]: { word: "balance", key: "a.granted_micro + a.purchased_micro", type: "bigint" },
  [WorkspaceOrder.SPEND]: { word: "spend", key: "coalesce(d.charged, 0)", type: "bigint" },
};
const KEYS = { text: "[\\w.-]+", bigint: "-?\\d{1,18}" };

/**
 * Lists workspaces in pages, in one of the orders. The first page has the sums over all. Only they and the order by
 * spend need the use of every workspace; else it is read for those of the page.
 * @param rates prices in force: where nothing costs anything, no lack of credit stops a request
 */
export function listWorkspaceStates(
  pool: Pool,
  rates: () => Rates,
): Admin<typeof OperationsService>["listWorkspaceStates"] {
  return async ({ pageSize, pageToken, name: part, order, descending }) => {
    checkLabel("name", part);
    readEnum("order", WorkspaceOrderSchema, order);
    const { word, key, type } = ORDERS[order];
    const [beyond, direction] = descending ? ["<", "desc"] : [">", "asc"];
    const size = sizeOfPage(pageSize);
    const place = new RegExp(`^${word} ${direction} (${KEYS[type]}) ([\\w-]+)$`);
    const [after, last] = readPageToken(pageToken, place) ?? [];
    const isFirst = after === undefined;
    const hasUse = isFirst || order === WorkspaceOrder.SPEND;
    const found = await pool.query<(StateRow | { id: null }) & TotalsRow>(
      `with used as (
         select workspace_id, ${SUMS} from usage where ${RECENT} group by workspace_id),
       chosen as (
         select w.id, ${key} as key, a.granted_micro, a.purchased_micro ${hasUse ? ", requests, failed, charged" : ""}
         from workspaces w join accounts a on a.workspace_id = w.id
           ${hasUse ? "left join used d on d.workspace_id = w.id" : ""}
         where strpos(lower(w.name), lower($1)) > 0),
       page as (
         select id, key from chosen where $2::${type} is null or (key, id) ${beyond} ($2::${type}, $3)
         order by key ${direction}, id ${direction} limit $4),
       totals as (select ${isFirst ? TOTALS : "1 as one"})
       select t.*, p.key::text as key, s.*
       from totals t left join page p on true left join lateral (
         select ${COLUMNS}, d.*, ${REACHED} as reached, ${SPENDABLE} as spendable
         from workspaces w join accounts a on a.workspace_id = w.id cross join in_use(w.id) u
           cross join lateral (select ${SUMS} from usage where workspace_id = w.id and ${RECENT}) d
         where w.id = p.id) s on true
       order by p.key ${direction}, p.id ${direction}`,
      [part, after ?? null, last ?? null, size + 1],
    );
    const states = found.filter((row) => row.id !== null);
    const page = pageOf(states, size, ({ key, id }) => `${word} ${direction} ${key} ${id}`);
    const totals = isFirst && found[0] ? { totals: totalsMessage(found[0]) } : {};
    const isFree = maxPriceOf(rates(), MANY_TOKENS, MANY_TOKENS) === 0n;
    const workspaces = page.rows.map((row) => stateMessage(row, isFree));
    return { workspaces, nextPageToken: page.nextPageToken, ...totals };
  };
}

const TOTALS = `count(*) as all_workspaces, coalesce(sum(granted_micro), 0)::bigint as all_granted,
  coalesce(sum(purchased_micro), 0)::bigint as all_purchased, coalesce(sum(requests), 0)::bigint as all_requests,
  coalesce(sum(failed), 0)::bigint as all_failed, coalesce(sum(charged), 0)::bigint as all_charged from chosen`;

/** The limits of the workspace `w` that are reached. */
const REACHED = `array(
    select l.name from current_periods(w.id, clock_timestamp()) p
      cross join lateral (values
        ('requests_per_' || p.unit, p.requests),
        ('input_tokens_per_' || p.unit, p.input_tokens),
        ('output_tokens_per_' || p.unit, p.output_tokens),
        ('concurrent_requests', case p.unit when 'minute' then u.running end)) l (name, used)
    where l.used >= (a.limits ->> l.name)::bigint order by 1)`;

const SPENDABLE = `(select min((a.spend_limits ->> p.unit)::bigint - p.spent_micro)
    from current_periods(w.id, clock_timestamp()) p)`;

function stateMessage(row: StateRow, isFree: boolean) {
  return {
    workspace: workspaceMessage(row),
    condition: conditionOf(row, isFree),
    reachedLimits: row.reached.map((name) => numberOf(LimitNameSchema, name)),
    requests: row.requests,
    failedRequests: row.failed,
    credits: amountText(row.charged),
    balance: amountText(row.granted + row.purchased),
  };
}

function totalsMessage(row: TotalsRow): MessageInitShape<typeof WorkspaceTotalsSchema> {
  return {
    workspaces: row.all_workspaces,
    balance: amountText(row.all_granted + row.all_purchased),
    requests: row.all_requests,
    failedRequests: row.all_failed,
    credits: amountText(row.all_charged),
  };
}

function conditionOf(row: StateRow, isFree: boolean): WorkspaceCondition {
  const { granted, purchased, held, requests, failed, reached, spendable } = row;
  const least = isFree ? 0n : 1n;
  if (granted + purchased - held < least) return WorkspaceCondition.NO_CREDIT;
  const isSpent = spendable !== null && granted + (spendable > 0n ? spendable : 0n) - held < least;
  if (isSpent) return WorkspaceCondition.SPEND_LIMIT_REACHED;
  if (reached.length > 0) return WorkspaceCondition.LIMIT_REACHED;
  return requests + failed === 0n ? WorkspaceCondition.UNUSED : WorkspaceCondition.OPEN;
}
