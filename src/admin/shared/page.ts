import { invalid } from "../../contract/failure.ts";

const MAX_PAGE = 1_000;
const PAGE = 100;

/** Number of rows of a page: 1 to 1,000, or 100 for 0. @throws Failure `invalid_request` with `page_size` */
export function sizeOfPage(pageSize: number): number {
  if (!Number.isInteger(pageSize) || pageSize < 0 || pageSize > MAX_PAGE) {
    throw invalid("page_size", `A page has 1 to ${MAX_PAGE} entries; 0 means ${PAGE}.`);
  }
  return pageSize || PAGE;
}

/**
 * Makes a page out of rows, of which one more must be read than the page has.
 * @param place returns the position of a row in the order of the pages
 * @returns the rows, and the token of the next page; empty: there is none
 */
export function pageOf<Row>(
  rows: Row[],
  size: number,
  place: (row: Row) => string,
): { rows: Row[]; nextPageToken: string } {
  const last = rows.length > size ? rows[size - 1] : undefined;
  return { rows: rows.slice(0, size), nextPageToken: last ? pageToken(place(last)) : "" };
}

/** Writes the token of the page that begins after a position. */
export function pageToken(place: string): string {
  return Buffer.from(place).toString("base64url");
}

/**
 * Reads a token of `pageToken`.
 * @param pattern pattern of the position; its groups are the result
 * @returns undefined for the first page, whose token is empty
 * @throws Failure `invalid_request` with `page_token`
 */
export function readPageToken(token: string, pattern: RegExp): string[] | undefined {
  if (token === "") return undefined;
  const [, ...parts] = pattern.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (parts.length === 0) {
    throw invalid("page_token", "Send next_page_token of an earlier page as it was, or leave it out.");
  }
  return parts;
}

/** SQL for a time in whole microseconds since 1970. Positions need them, because a Date holds only milliseconds. */
export function microsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::bigint`;
}

/** Writes a time in microseconds since 1970 as text for Postgres; null for none. */
export function timeOf(micros: string | undefined): string | null {
  if (micros === undefined) return null;
  const toMillisecond = new Date(Number(BigInt(micros) / 1_000n)).toISOString().slice(0, -1);
  return `${toMillisecond}${micros.slice(-3).padStart(3, "0")}Z`;
}
