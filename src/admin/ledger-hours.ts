import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import type { Pool } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText } from "./shared/amount.ts";
import { readTimestamp } from "./shared/fields.ts";
import { microsOf, pageToken, readPageToken, sizeOfPage, timeOf } from "./shared/page.ts";
import { MS } from "./shared/period.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

/** Sums of settlements of an hour. Amounts are in millionths of a credit. */
interface Hour {
  start: Date;
  settlements: bigint;
  granted: bigint;
  purchased: bigint;
  /** Time of its oldest settlement, in microseconds since 1970. */
  micros: bigint;
  /** Identifier of the oldest settlement that was read, if it is in this hour. */
  last: bigint | null;
}

/** Most settlements to read for a page. Reading them takes about 200 ms. */
const MAX_READ = 100_000n;

/** The oldest settlement that was read, and the sums of what was read of its hour, if that was not the whole hour. */
const PLACE = /^(\d{1,16}) (\d{1,18}) (\d{1,12}) (-?[0-3]?\d{1,18}) (-?[0-3]?\d{1,18})$/;

/**
 * Lists the sums of settlements by hour in pages, newest first. An hour that one page cannot read to its end continues
 * on the next one: the token has its sums so far.
 */
export function listLedgerHours(pool: Pool): Admin<typeof CreditService>["listLedgerHours"] {
  return async (request, actor) => {
    const from = readTimestamp("from", request.startTime);
    const to = readTimestamp("to", request.endTime);
    const size = sizeOfPage(request.pageSize);
    const place = readPageToken(request.pageToken, PLACE);
    const { id } = await findWorkspace(pool.query, actor, request.workspace);
    const read = await pool.query<Hour>(
      // The hour and the last row are found in the order of the index, so that nothing is sorted.
      `select start, count(*) as settlements, sum(granted_micro)::bigint as granted,
         sum(purchased_micro)::bigint as purchased, ${microsOf("min(at)")} as micros,
         max(id) filter (where is_last) as last
       from (
         select *, date_trunc('hour', at, 'UTC') as start, lead(id) over (order by at desc, id desc) is null as is_last
         from (
           select at, id, granted_micro, purchased_micro from ledger
           where workspace_id = $1 and kind = 'settlement'
             and ($2::timestamptz is null or (at <= $2 and (at, id) < ($2, $3)))
             and ($4::timestamptz is null or at >= $4) and ($5::timestamptz is null or at < $5)
           order by at desc, id desc limit ${MAX_READ}) newest) placed
       group by start order by start desc`,
      [id, timeOf(place?.[0]), place?.[1] ?? null, wholeHour(from, Math.floor), wholeHour(to, Math.ceil)],
    );
    const isCut = read.reduce((sum, { settlements }) => sum + settlements, 0n) >= MAX_READ;
    const { hours, nextPageToken } = pageOfHours(withBegun(read, place), size, isCut);
    return { hours: hours.map(messageOf), nextPageToken };
  };
}

function wholeHour(at: Date | undefined, round: (hours: number) => number): Date | null {
  return at ? new Date(round(at.getTime() / MS.hour) * MS.hour) : null;
}

/** Adds what the previous page has read of an hour. */
function withBegun(read: readonly Hour[], place: readonly string[] | undefined): readonly Hour[] {
  if (!place) return read;
  const [micros = 0n, last = 0n, settlements = 0n, granted = 0n, purchased = 0n] = place.map(BigInt);
  if (settlements === 0n) return read;
  const start = new Date(Math.floor(Number(micros / 1_000n) / MS.hour) * MS.hour);
  const [first, ...others] = read;
  if (first?.start.getTime() !== start.getTime()) {
    return [{ start, settlements, granted, purchased, micros, last }, ...read];
  }
  const sum = { ...first, settlements: first.settlements + settlements };
  return [{ ...sum, granted: first.granted + granted, purchased: first.purchased + purchased }, ...others];
}

/** @param isCut whether there may be more settlements, also of the last hour */
function pageOfHours(found: readonly Hour[], size: number, isCut: boolean) {
  const whole = isCut ? found.slice(0, -1) : found;
  const hours = whole.slice(0, size);
  const last = hours.at(-1);
  // All older settlements are before the start of the hour.
  if (last && whole.length > size) return { hours, nextPageToken: pageToken(`${last.start.getTime()}000 0 0 0 0`) };
  const begun = isCut ? found.at(-1) : undefined;
  if (!begun) return { hours, nextPageToken: "" };
  const { micros, last: id, settlements, granted, purchased } = begun;
  return { hours, nextPageToken: pageToken(`${micros} ${id} ${settlements} ${granted} ${purchased}`) };
}

function messageOf({ start, settlements, granted, purchased }: Hour) {
  return {
    startTime: timestampFromDate(start),
    settlements,
    granted: amountText(granted),
    purchased: amountText(purchased),
  };
}
