import type { LedgerHour } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { pageWithRows } from "../all-pages.ts";
import { boundsOf, type Period } from "../parts/period.tsx";
import { credits } from "../rpc.ts";

/** Reads a page of hours. With very many settlements, it may have none and still have a next one. */
export function readHours(
  period: Period,
  pageToken: string,
  pageSize: number,
  signal: AbortSignal,
): Promise<{ hours: readonly LedgerHour[]; nextPageToken: string }> {
  const request = { ...boundsOf(period), pageSize };
  const load = (token: string) => credits.listLedgerHours({ ...request, pageToken: token }, { signal });
  return pageWithRows(load, ({ hours }) => hours, pageToken);
}
