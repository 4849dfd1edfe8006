import { ActorKindSchema } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { allPages, type Progress } from "../all-pages.ts";
import { saveCsv } from "../csv.ts";
import { counted, iso } from "../format.ts";
import { type Calls, type Filter, findChanges } from "./filter.ts";

/** Saves the changes that match a filter as a CSV file, newest first. @returns a sentence about the result */
export async function saveAudit(
  calls: Calls,
  filter: Filter,
  progress: Progress,
  signal: AbortSignal,
): Promise<string> {
  const { rows, isCut } = await allPages(async (pageToken) => {
    const { entries, next } = await findChanges(calls, filter, { pageSize: 1000, pageToken }, signal);
    return { rows: entries, next };
  }, progress);
  saveCsv("chorus-audit.csv", [
    ["time", "action", "actor", "actor_id", "details", "actor_name", "workspace_id", "workspace"],
    ...rows.map((row) => [
      row.at ? iso(row.at) : "",
      row.action,
      wordOf(ActorKindSchema, row.actorKind),
      row.actorId,
      row.details,
      row.actorName,
      row.workspaceId,
      row.workspace,
    ]),
  ]);
  const saved = counted(rows.length, "change");
  return isCut ? `Saved the newest ${saved}; there are more.` : `Saved ${saved}.`;
}
