import { createHash } from "node:crypto";
import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import { isUser } from "../../contract/subjects.ts";
import { notice } from "../../generate/notices.ts";

/**
 * The end user of a request. Identifiers that are too long for one, as agents send them, count by their digest, which
 * is the same for each request of the user.
 * @param notices gets a notice about that
 */
export function userOf(id: string, notices: Notice[]): string {
  if (id === "" || isUser(id)) return id;
  notices.push(notice("user_digest", "metadata.user_id is too long, and counts by its SHA-256.", "metadata.user_id"));
  return `sha256:${createHash("sha256").update(id).digest("hex")}`;
}
