import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Cap, CapSchema } from "../../../gen/chorus/admin/v1/caps_pb.js";
import type { CapQuota } from "../../../gen/chorus/v1/generation_pb.js";
import { caps, usage } from "../rpc.ts";
import { partsOf, subjectOf } from "../subjects/group.ts";

const PAGE = 50;

export interface CapPage {
  readonly caps: readonly Cap[];
  /** Token of the next page; empty on the last page. */
  readonly next: string;
}

/** Lists caps in pages. @param search beginning of their subjects, such as `user:` */
export async function listCaps(search: string, pageToken: string, signal: AbortSignal): Promise<CapPage> {
  const page = await caps.listCaps({ search, withUse: true, pageSize: PAGE, pageToken }, { signal });
  return { caps: page.caps, next: page.nextPageToken };
}

/**
 * Lists the caps of one subject: its own, and those of the template that hold for it. The latter have no `id`.
 * @param subject such as `user:u-4711`
 */
export async function listCapsOf(subject: string, signal: AbortSignal): Promise<CapPage> {
  const [own, { quotas }] = await Promise.all([
    // Sorted by subject, so those of longer names that start alike come after all of its own.
    listCaps(subject, "", signal).then(({ caps: found }) => found.filter((cap) => cap.subject === subject)),
    usage.getQuotas({ subject }, { signal }),
  ]);
  const template = subjectOf(partsOf(subject).group, "*");
  const others = (quotas?.caps ?? [])
    .filter((quota) => !own.some((cap) => isSame(cap, quota) && !hasEnded(cap)))
    .map(({ figure, period, limit, used, action }) =>
      create(CapSchema, {
        subject: template,
        figure,
        period: period ?? 0,
        action,
        amount: `${limit}`,
        used: `${used}`,
      }),
    );
  return { caps: [...own, ...others], next: "" };
}

function isSame(cap: Cap, { figure, period, action }: CapQuota): boolean {
  return cap.figure === figure && cap.period === (period ?? 0) && cap.action === action;
}

/** Whether a cap with an end has ended; it limits nothing any more. */
export function hasEnded({ endsAt }: Cap): boolean {
  return endsAt !== undefined && timestampDate(endsAt) <= new Date();
}

/** Whether a subject stands for each of its kind, such as `user:*`. */
export function isTemplate(subject: string): boolean {
  return /[:=]\*$/.test(subject);
}
