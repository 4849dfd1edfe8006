import { LedgerEntryKindSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { allPages, type Progress } from "../all-pages.ts";
import { day, iso } from "../format.ts";
import { credits } from "../rpc.ts";
import { saveCsv } from "../save.ts";
import { type LedgerFilter, requestOf } from "./filter.ts";

/**
 * Saves the bookings and charges that match a filter as a CSV file, newest first, without holds and releases.
 * @returns a sentence about the result
 */
export async function saveStatement(of: LedgerFilter, progress: Progress, signal: AbortSignal): Promise<string> {
  const { rows, isCut } = await allPages(async (pageToken) => {
    const { entries, nextPageToken } = await credits.listLedger(
      { ...requestOf(of), chargesOnly: true, pageSize: 1000, pageToken },
      { signal },
    );
    return { rows: entries, next: nextPageToken };
  }, progress);
  saveCsv(`chorus-statement-${day(of.period.from)}.csv`, [
    ["time", "movement", "reference", "granted", "purchased", "balance"],
    ...rows.map((row) => [
      row.at ? iso(row.at) : "",
      wordOf(LedgerEntryKindSchema, row.kind),
      row.reference,
      row.granted,
      row.purchased,
      row.balance,
    ]),
  ]);
  return isCut
    ? `Saved the newest ${rows.length} movements; there are more. Choose a shorter period.`
    : `Saved ${rows.length} movements.`;
}
