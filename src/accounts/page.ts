import { invalid } from "../failure.ts";

const MAX_PAGE = 1_000;
const PAGE = 100;

/** Number of rows that a page has. @throws Failure `invalid_request` naming `page_size`, which is 1 to 1,000, or 0 for 100. */
export function sizeOfPage(pageSize = 0): number {
  if (!Number.isInteger(pageSize) || pageSize < 0 || pageSize > MAX_PAGE) {
    throw invalid("page_size", `A page has 1 to ${MAX_PAGE} entries; 0 means ${PAGE}.`);
  }
  return pageSize || PAGE;
}

/**
 * Cuts a page out of rows of which one more was read than it has.
 * @param place text that says where a row stands in the order of the pages
 * @returns the rows, and the token that asks for those after them, if there are any
 */
export function pageOf<Row>(
  rows: Row[],
  size: number,
  place: (row: Row) => string,
): { rows: Row[]; nextPageToken: string | undefined } {
  const last = rows.length > size ? rows[size - 1] : undefined;
  return { rows: rows.slice(0, size), nextPageToken: last && Buffer.from(place(last)).toString("base64url") };
}

/**
 * Reads a token back into the parts of the place that it was made of.
 * @param form what a place looks like; its groups are the parts
 * @returns undefined for the first page, which has no token
 * @throws Failure `invalid_request` naming `page_token`.
 */
export function readPageToken(token: string | undefined, form: RegExp): string[] | undefined {
  if (!token) return undefined;
  const [, ...parts] = form.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (parts.length === 0) {
    throw invalid("page_token", "Send next_page_token of an earlier page as it was, or leave it out.");
  }
  return parts;
}

/** SQL of a time in whole microseconds since 1970, which a Date cannot hold: what places in the order of time are made of. */
export function microsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::bigint`;
}

/** A time in microseconds since 1970 as Postgres reads it. */
export function timeOf(micros: bigint): string {
  const toMillisecond = new Date(Number(micros / 1_000n)).toISOString().slice(0, -1);
  return `${toMillisecond}${String(micros % 1_000n).padStart(3, "0")}Z`;
}
