import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { microsOf, pageOf, pageToken } from "./page.ts";

/** Most rows to search for one page when no index covers the filter. Searching them takes about 20 ms. */
export const MAX_SEARCHED = 10_000;

/** SQL condition for requests without an answer, as the rollups count them. */
export const FAILED = "(not is_answered(outcome, streamed))";

/** The extent of a search. It stands in each row of its result. */
export interface Extent {
  /** Number of rows searched. */
  searched: bigint;
  /** Position and time of the oldest of them. */
  edge: string | null;
  downTo: Date | null;
}

interface Where {
  table: string;
  /** Column of the time; the order is by it and `id`. */
  time: string;
  /** Conditions that an index answers. */
  indexed: readonly string[];
  /** Conditions that are checked on the rows that it returns. */
  others: readonly string[];
}

/** Most rows that the search for a page of `size` rows reads. */
export function searchLimit(others: readonly string[], size: number): number {
  return others.length > 0 ? MAX_SEARCHED : size + 1;
}

/**
 * SQL of a bounded search, newest first, for `with …`: `found` has the rows with their `micros`, `edge` has one row
 * with the members of `Extent`.
 */
export function searchIn({ table, time, indexed, others }: Where, size: number): string {
  const where = (conditions: readonly string[]) => (conditions.length > 0 ? `where ${conditions.join(" and ")}` : "");
  return `searched as materialized (
      select *, ${microsOf(time)} as micros from ${table} ${where(indexed)}
      order by ${time} desc, id desc limit ${searchLimit(others, size)}),
    found as (
      select * from searched ${where(others)} order by ${time} desc, id desc limit ${size + 1}),
    edge as (
      select count(*) as searched, (array_agg(micros || ' ' || id order by ${time}, id))[1] as edge,
        min(${time}) as "downTo"
      from searched)`;
}

/**
 * The page of what was found. It can have fewer rows than its size without being the last.
 * @param rows rows of `edge left join found on true`; without a row that was found, there is one with the extent
 * @param limit see `searchLimit`
 * @returns `searchedTo`: the time back to which all was searched; absent on the last page
 */
export function pageOfSearch<Row extends Extent & { micros: bigint; id: unknown; at: Date }>(
  rows: readonly (Row | (Extent & { micros: null }))[],
  size: number,
  limit: number,
): { rows: Row[]; nextPageToken: string; searchedTo?: Timestamp } {
  const found = rows.filter((row): row is Row => row.micros !== null);
  const page = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
  const last = page.rows.at(-1);
  if (page.nextPageToken !== "" && last) return { ...page, searchedTo: timestampFromDate(last.at) };
  const [extent] = rows;
  if (!extent?.edge || !extent.downTo || Number(extent.searched) < limit) return page;
  return { rows: page.rows, nextPageToken: pageToken(extent.edge), searchedTo: timestampFromDate(extent.downTo) };
}
