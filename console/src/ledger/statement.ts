import { LedgerEntryKindSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { allPages, type Progress } from "../all-pages.ts";
import { saveCsv } from "../csv.ts";
import { counted, day, iso } from "../format.ts";
import { still } from "../parts/period.tsx";
import { credits } from "../rpc.ts";
import { type LedgerFilter, requestOf } from "./filter.ts";
import { readHours } from "./hours.ts";

type Read = (token: string) => Promise<{ rows: readonly string[][]; next: string }>;

/**
 * Saves what a filter shows as a CSV file, newest first: movements without holds and releases, or hours.
 * @returns a sentence about the result
 */
export async function saveStatement(filter: LedgerFilter, progress: Progress, signal: AbortSignal): Promise<string> {
  const of = { ...filter, period: still(filter.period) };
  const [noun, header, read] = of.show === "hours" ? hoursOf(of, signal) : movementsOf(of, signal);
  const { rows, isCut } = await allPages(read, progress);
  saveCsv(`chorus-statement-${day(of.period.from)}.csv`, [header, ...rows]);
  return isCut
    ? `Saved the newest ${counted(rows.length, noun)}; there are more. Choose a shorter period.`
    : `Saved ${counted(rows.length, noun)}.`;
}

function movementsOf(of: LedgerFilter, signal: AbortSignal): [noun: string, header: string[], read: Read] {
  const read: Read = async (pageToken) => {
    const request = { ...requestOf(of), chargesOnly: true, pageSize: 1000, pageToken };
    const { entries, nextPageToken } = await credits.listLedger(request, { signal });
    const rows = entries.map(({ at, kind, reference, granted, purchased, balance }) => [
      ...[at ? iso(at) : "", wordOf(LedgerEntryKindSchema, kind), reference],
      ...[granted, purchased, balance],
    ]);
    return { rows, next: nextPageToken };
  };
  return ["movement", ["time", "movement", "reference", "granted", "purchased", "balance"], read];
}

function hoursOf({ period }: LedgerFilter, signal: AbortSignal): [noun: string, header: string[], read: Read] {
  const read: Read = async (pageToken) => {
    const { hours, nextPageToken } = await readHours(period, pageToken, 1000, signal);
    const rows = hours.map(({ startTime, settlements, granted, purchased }) => [
      ...[startTime ? iso(startTime) : "", `${settlements}`, granted, purchased],
    ]);
    return { rows, next: nextPageToken };
  };
  return ["hour", ["hour", "settlements", "granted", "purchased"], read];
}
