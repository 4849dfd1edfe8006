import { type LedgerEntry, LedgerEntryKindSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../../../src/json-names.ts";
import { day, iso } from "../format.ts";
import { MOST_ROWS, type Progress } from "../parts/export-button.tsx";
import { boundsOf, type Period } from "../parts/period.tsx";
import { credits } from "../rpc.ts";
import { saveCsv } from "../save.ts";

/**
 * Saves the grants, purchases and charges of a period as a CSV file, newest first.
 * @returns a sentence about the result
 */
export async function saveStatement(period: Period, progress: Progress, signal: AbortSignal): Promise<string> {
  const rows: LedgerEntry[] = [];
  let token = "";
  do {
    const page = await credits.listLedger(
      { ...boundsOf(period), chargesOnly: true, pageSize: 1000, pageToken: token },
      { signal },
    );
    rows.push(...page.entries);
    token = page.nextPageToken;
    progress(rows.length);
  } while (token && rows.length < MOST_ROWS);
  const kept = rows.slice(0, MOST_ROWS);
  saveCsv(`chorus-statement-${day(period.from)}.csv`, [
    ["time", "movement", "reference", "granted", "purchased"],
    ...kept.map((row) => [
      row.at ? iso(row.at) : "",
      wordOf(LedgerEntryKindSchema, row.kind),
      row.reference,
      row.granted,
      row.purchased,
    ]),
  ]);
  const isCut = token !== "" || rows.length > MOST_ROWS;
  return isCut
    ? `Saved the newest ${kept.length} movements; there are more. Choose a shorter period.`
    : `Saved ${kept.length} movements.`;
}
