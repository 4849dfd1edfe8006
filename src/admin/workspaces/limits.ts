import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  LimitNameSchema,
  type LimitOverride,
  type WorkspaceSchema,
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { LIMIT_NAMES, MAX_LIMIT } from "../../config/tiers.ts";
import { invalid } from "../../contract/failure.ts";
import { readEnum } from "../../contract/json-names.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { amountText } from "../shared/amount.ts";
import { type Actor, record } from "../shared/audit.ts";
import { findWorkspace, limitMessages, readWorkspace, type WorkspaceAdmin } from "./workspace.ts";

/** Finds the tier that purchases lead to next. There is none above the highest, and when an operator set the tier. */
export function getNextTier(pool: Pool): WorkspaceAdmin["getNextTier"] {
  return async ({ workspace }, actor) => {
    const { id } = await findWorkspace(pool.query, actor, workspace);
    const [next] = await pool.query<{
      name: string;
      purchased: bigint;
      limits: Record<string, number>;
      missing: bigint;
    }>(
      `select t.name, t.threshold_micro as purchased, t.limits, t.threshold_micro - a.purchased_total_micro as missing
       from accounts a join tiers t on t.threshold_micro > a.purchased_total_micro
       where a.workspace_id = $1 and a.tier is distinct from a.tier_override order by t.place limit 1`,
      [id],
    );
    if (!next) return {};
    const { name, purchased, limits, missing } = next;
    const tier = { name, purchased: amountText(purchased), limits: limitMessages(limits) };
    return { tier, missing: amountText(missing) };
  };
}

/** Sets the tier of a workspace, which applies at once. Without a tier, the one that follows from the purchases. */
export function setTier(pool: Pool): WorkspaceAdmin["setTier"] {
  return async ({ workspace, tier }, actor) => {
    const changed = await changeAccount(pool, actor, workspace, async (query, id) => {
      await checkTier(query, tier);
      await query("update accounts set tier_override = nullif($2, '') where workspace_id = $1", [id, tier]);
      return { action: "tier.set", details: { tier: tier || null } };
    });
    return { workspace: changed };
  };
}

/** @throws Failure `invalid_request` with `tier`, unless it is empty or the name of a tier */
async function checkTier(query: Query, tier: string): Promise<void> {
  const tiers = await query<{ name: string }>("select name from tiers order by place");
  if (tier === "" || tiers.some(({ name }) => name === tier)) return;
  const names = tiers.map(({ name }) => name).join(", ");
  throw invalid(
    "tier",
    `There is no such tier. Use one of ${names}, or leave it empty for the tier that follows from the purchases ` +
      "(on the command line: auto).",
  );
}

/** Overrides limits, all or none. They apply at once. */
export function setLimits(pool: Pool): WorkspaceAdmin["setLimits"] {
  return async ({ workspace, overrides }, actor) => {
    const { set, reset } = readOverrides(overrides);
    const changed = await changeAccount(pool, actor, workspace, async (query, id) => {
      await query("update accounts set overrides = (overrides - $2::text[]) || $3 where workspace_id = $1", [
        id,
        reset,
        JSON.stringify(set),
      ]);
      return { action: "limits.set", details: { set, reset } };
    });
    return { workspace: changed };
  };
}

/**
 * Splits overrides into limits to set, by name, and limits to reset to the tier's value. Null is no limit.
 * @throws Failure `invalid_request` with the field
 */
function readOverrides(overrides: LimitOverride[]): { set: Record<string, number | null>; reset: string[] } {
  if (overrides.length === 0) throw invalid("overrides", "Name at least one limit to change.");
  const set: Record<string, number | null> = {};
  const reset: string[] = [];
  for (const [i, override] of overrides.entries()) {
    const { change } = override;
    const field = `overrides[${i}]`;
    const name = readEnum(`${field}.name`, LimitNameSchema, override.name);
    if (name === "") throw invalid(`${field}.name`, `A limit is one of ${LIMIT_NAMES.join(", ")}.`);
    if (name in set || reset.includes(name)) {
      throw invalid(`${field}.name`, `${name} appears twice. List each limit once.`);
    }
    if (change.case === undefined) throw invalid(field, `${name} needs a value, unlimited or reset.`);
    if (change.case === "reset") reset.push(name);
    else if (change.case === "unlimited") set[name] = null;
    else if (change.value >= 0n && change.value <= BigInt(MAX_LIMIT)) set[name] = Number(change.value);
    else throw invalid(`${field}.value`, `${name} must be a whole number from 0 to ${MAX_LIMIT}.`);
  }
  return { set, reset };
}

/**
 * Changes the account of a workspace and applies its limits, in one transaction.
 * @param make returns the entry for the audit
 * @returns the workspace as it is afterwards
 */
function changeAccount(
  pool: Pool,
  actor: Actor,
  workspace: string,
  make: (query: Query, id: string) => Promise<{ action: string; details: object }>,
): Promise<MessageInitShape<typeof WorkspaceSchema>> {
  return pool.tx(async (query) => {
    const { id } = await findWorkspace(query, actor, workspace);
    const { action, details } = await make(query, id);
    await query("select refresh_limits($1)", [id]);
    await record(query, actor, id, action, details);
    return readWorkspace(query, id);
  });
}
