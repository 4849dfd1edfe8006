import { ActorKindSchema } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { allPages, type Progress } from "../all-pages.ts";
import { iso } from "../format.ts";
import { activity } from "../rpc.ts";
import { saveCsv } from "../save.ts";

/** Saves the audit log as a CSV file, newest first. @returns a sentence about the result */
export async function saveAudit(progress: Progress, signal: AbortSignal): Promise<string> {
  const { rows, isCut } = await allPages(async (pageToken) => {
    const { entries, nextPageToken } = await activity.listAudit({ pageSize: 1000, pageToken }, { signal });
    return { rows: entries, next: nextPageToken };
  }, progress);
  saveCsv("chorus-audit.csv", [
    ["time", "action", "actor", "actor_id", "details", "actor_name"],
    ...rows.map((row) => [
      row.at ? iso(row.at) : "",
      row.action,
      wordOf(ActorKindSchema, row.actorKind),
      row.actorId,
      row.details,
      row.actorName,
    ]),
  ]);
  return isCut ? `Saved the newest ${rows.length} changes; there are more.` : `Saved ${rows.length} changes.`;
}
