import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import { notice } from "../../generate/notices.ts";

/** Most unknown members that one request reports, and the length of a reported path. */
const MAX_UNKNOWN = 100;
const MAX_PATH = 200;

/** The members of a request that no message has. */
export interface UnknownMembers {
  /** Paths of the first hundred. */
  unknown: string[];
  more: number;
}

export function addUnknown(found: UnknownMembers, path: string): void {
  if (found.unknown.length === MAX_UNKNOWN) found.more++;
  else found.unknown.push(reportedPath(path));
}

/** A path for a notice or a failure. The caller chose its names. */
export function reportedPath(path: string): string {
  return path.slice(0, MAX_PATH).toWellFormed();
}

export function unknownNotices({ unknown = [], more = 0 }: Partial<Readonly<UnknownMembers>>): Notice[] {
  const notices = unknown.map((field) =>
    notice("unknown_field", `${field} is not a field of this request. It was ignored.`, field),
  );
  if (more > 0)
    notices.push(notice("unknown_field", `${more} more members are no fields of this request, and were ignored.`));
  return notices;
}
