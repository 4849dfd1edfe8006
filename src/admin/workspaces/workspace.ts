import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { SpendLimitSettingSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import {
  LimitNameSchema,
  type LimitSchema,
  WorkspaceKindSchema,
  type WorkspaceSchema,
  type WorkspaceService,
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { SpendPeriodSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid } from "../../contract/failure.ts";
import { numberOf } from "../../contract/json-names.ts";
import type { Query } from "../../store/pool.ts";
import type { Admin } from "../shared/admin.ts";
import { amountText } from "../shared/amount.ts";
import { type Actor, confinedTo } from "../shared/audit.ts";

export type WorkspaceAdmin = Admin<typeof WorkspaceService>;

/** A row of `COLUMNS`. Amounts are in millionths of a credit. */
export interface WorkspaceRow {
  id: string;
  name: string;
  kind: string;
  createdAt: Date;
  tier: string;
  tierOverridden: boolean;
  limits: Record<string, number>;
  overriddenLimits: string[];
  granted: bigint;
  purchased: bigint;
  held: bigint;
  purchasedTotal: bigint;
  running: number;
  spendLimits: Record<string, number>;
  /** 0: the text of requests is not kept. */
  runTextDays: number;
}

export const COLUMNS = `w.id, w.name, w.kind, w.created_at as "createdAt", a.tier,
  coalesce(a.tier = a.tier_override, false) as "tierOverridden", a.limits,
  array(select jsonb_object_keys(a.overrides) order by 1) as "overriddenLimits", a.granted_micro as granted,
  a.purchased_micro as purchased, u.held, a.purchased_total_micro as "purchasedTotal", u.running,
  a.spend_limits as "spendLimits", coalesce(w.run_text_days, 0) as "runTextDays"`;

/**
 * Finds a workspace that an actor may see.
 * @param nameOrId empty: the workspace of the owner
 * @throws Failure `unknown_entity`, with one message for a workspace that does not exist and one of another owner
 */
export async function findWorkspace(
  query: Query,
  actor: Actor,
  nameOrId: string,
): Promise<{ id: string; name: string }> {
  const own = confinedTo(actor);
  const wanted = nameOrId || own;
  if (!wanted) throw invalid("workspace", "Name the workspace, or give its identifier.");
  const [row] = wanted.includes("\0")
    ? []
    : await query<{ id: string; name: string }>(
        "select id, name from workspaces where (id = $1 or name = $1) and ($2::text is null or id = $2)",
        [wanted, own ?? null],
      );
  if (!row) {
    const shown = JSON.stringify(wanted.slice(0, 200));
    throw new Failure("unknown_entity", { field: "workspace", message: `There is no workspace ${shown}.` });
  }
  return row;
}

/** Reads a workspace with its balance and limits. @throws Failure `unknown_entity` */
export async function readWorkspace(query: Query, id: string): Promise<MessageInitShape<typeof WorkspaceSchema>> {
  const [row] = await query<WorkspaceRow>(
    `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id, in_use(w.id) u where w.id = $1`,
    [id],
  );
  if (!row) throw new Failure("unknown_entity", { field: "workspace" });
  return workspaceMessage(row);
}

export function workspaceMessage(row: WorkspaceRow): MessageInitShape<typeof WorkspaceSchema> {
  return {
    ...row,
    kind: numberOf(WorkspaceKindSchema, row.kind),
    createdAt: timestampFromDate(row.createdAt),
    limits: limitMessages(row.limits),
    overriddenLimits: row.overriddenLimits.map((name) => numberOf(LimitNameSchema, name)),
    granted: amountText(row.granted),
    purchased: amountText(row.purchased),
    held: amountText(row.held),
    purchasedTotal: amountText(row.purchasedTotal),
    spendLimits: spendLimitMessages(row.spendLimits),
  };
}

export function limitMessages(limits: Record<string, number>): MessageInitShape<typeof LimitSchema>[] {
  return Object.entries(limits).map(([name, limit]) => ({
    name: numberOf(LimitNameSchema, name),
    value: BigInt(limit),
  }));
}

/** Reads the column `spend_limits`. Its amounts are small enough to be exact as numbers. */
export function spendLimitMessages(column: Record<string, number>): MessageInitShape<typeof SpendLimitSettingSchema>[] {
  return Object.entries(column)
    .map(([period, micro]) => ({ period: numberOf(SpendPeriodSchema, period), amount: amountText(BigInt(micro)) }))
    .sort((a, b) => a.period - b.period);
}
