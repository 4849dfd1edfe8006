import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type ActivityService, ActorKindSchema, type ListAuditRequest } from "../../gen/chorus/admin/v1/activity_pb.js";
import { invalid } from "../contract/failure.ts";
import { numberOf, readEnum } from "../contract/json-names.ts";
import type { Pool } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { auditedReceiver } from "./shared/audit.ts";
import { readTimestamp } from "./shared/fields.ts";
import { readPageToken, sizeOfPage, timeOf } from "./shared/page.ts";
import { type Extent, pageOfSearch, searchIn, searchLimit } from "./shared/search.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

interface AuditRow extends Extent {
  id: bigint;
  at: Date;
  micros: bigint;
  actorKind: string;
  actorId: string;
  actorName: string;
  action: string;
  details: string;
  workspaceId: string;
  workspace: string;
}

const MAX_ACTOR = 200;

/** Lists changes in pages, newest first, in one workspace or, for an operator, in all of them and the service. */
export function listAudit(pool: Pool): Admin<typeof ActivityService>["listAudit"] {
  return async (request, actor) => {
    const { workspace, pageSize, pageToken } = request;
    const size = sizeOfPage(pageSize);
    const [micros, last] = readPageToken(pageToken, /^(\d{1,16}) (\d{1,18})$/) ?? [];
    const isWhole = workspace === "" && actor.kind === "operator";
    const values: unknown[] = isWhole ? [] : [(await findWorkspace(pool.query, actor, workspace)).id];
    // Bounds with the workspace in them are answered by the index of one workspace, not by that of all.
    const [columns, given] = isWhole ? ["", ""] : ["workspace_id, ", "$1, "];
    const bound = (operator: string, time: Date) => `(${columns}at) ${operator} (${given}$${values.push(time)})`;
    const { indexed, others } = conditionsOf(request, values, bound);
    if (!isWhole) indexed.push("workspace_id = $1");
    if (micros !== undefined)
      indexed.push(`(${columns}at, id) < (${given}$${values.push(timeOf(micros))}, $${values.push(last)})`);
    const found = await pool.query<AuditRow | (Extent & { micros: null })>(
      `with ${searchIn({ table: "audit", time: "at", indexed, others }, size)}
       select e.*, f.micros, f.id, f.at, f.actor_kind as "actorKind", f.actor_id as "actorId", f.action,
         f.details::text as details, f.workspace_id as "workspaceId", coalesce(w.name, '') as workspace,
         coalesce((select coalesce(nullif(p.name, ''), p.email) from people p where p.id = f.actor_id), '')
           as "actorName"
       from edge e left join found f on true left join workspaces w on w.id = f.workspace_id
       order by f.at desc, f.id desc`,
      values,
    );
    const { rows, ...page } = pageOfSearch<AuditRow>(found, size, searchLimit(others, size));
    const entries = rows.map(({ id, at, actorKind, actorId, actorName, action, details, workspaceId, workspace }) => ({
      ...{ id: `${id}`, at: timestampFromDate(at), actorKind: numberOf(ActorKindSchema, actorKind) },
      ...{ actorId, actorName, action, details: shownDetails(action, details), workspaceId, workspace },
    }));
    return { entries, ...page };
  };
}

/** Hides the path of a webhook, which earlier versions recorded and no statement may change. */
function shownDetails(action: string, details: string): string {
  if (action !== "alerts.set") return details;
  const shown = JSON.parse(details);
  return JSON.stringify({ ...shown, webhookUrl: auditedReceiver(`${shown.webhookUrl}`) });
}

/**
 * Writes the filter as SQL conditions. An index answers those on the time; others are checked on the rows.
 * @param values gets the parameters of the statement
 * @param bound writes a condition on the time
 * @throws Failure `invalid_request` with the field
 */
function conditionsOf(
  request: ListAuditRequest,
  values: unknown[],
  bound: (operator: string, time: Date) => string,
): { indexed: string[]; others: string[] } {
  const { action, actorId } = request;
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const indexed: string[] = [];
  const others: string[] = [];
  const [from, to] = [readTimestamp("from", request.startTime), readTimestamp("to", request.endTime)];
  if (from) indexed.push(bound(">=", from));
  if (to) indexed.push(bound("<", to));
  if (action !== "") {
    if (!/^[a-z_]{1,64}(\.[a-z_]{1,64})?$/.test(action))
      throw invalid("action", "action must be an action such as key.create, or the part before the dot, such as key.");
    others.push(
      action.includes(".") ? `action = ${parameter(action)}` : `starts_with(action, ${parameter(`${action}.`)})`,
    );
  }
  const actorKind = readEnum("actor_kind", ActorKindSchema, request.actorKind);
  if (actorKind !== "") others.push(`actor_kind = ${parameter(actorKind)}`);
  if (actorId !== "") {
    if (actorId.length > MAX_ACTOR || /\p{Cc}/u.test(actorId))
      throw invalid("actor_id", `actor_id may have up to ${MAX_ACTOR} characters, and no control characters.`);
    others.push(`actor_id = ${parameter(actorId)}`);
  }
  return { indexed, others };
}
