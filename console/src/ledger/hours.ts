import type { LedgerHour } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { boundsOf, type Period } from "../parts/period.tsx";
import { credits } from "../rpc.ts";

/** Most pages without an hour to request at once. */
const STEPS = 10;

/** Reads a page of hours. With very many settlements, it may have none and still have a next one. */
export async function readHours(
  period: Period,
  pageToken: string,
  pageSize: number,
  signal: AbortSignal,
): Promise<{ hours: readonly LedgerHour[]; nextPageToken: string }> {
  let token = pageToken;
  for (let step = 1; ; step++) {
    const request = { ...boundsOf(period), pageToken: token, pageSize };
    const { hours, nextPageToken } = await credits.listLedgerHours(request, { signal });
    token = nextPageToken;
    if (hours.length > 0 || !token || step === STEPS) return { hours, nextPageToken };
  }
}
