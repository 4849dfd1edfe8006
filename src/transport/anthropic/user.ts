import { createHash } from "node:crypto";
import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import { isUser } from "../../contract/subjects.ts";
import { notice } from "../../generate/notices.ts";

/**
 * The end user of a request. Identifiers that are too long for one count by their digest, which is the same for each
 * request of the user.
 * @param notices gets a notice about that
 */
export function userOf(identifier: string, notices: Notice[]): string {
  const id = withoutSession(identifier);
  if (id === "" || isUser(id)) return id;
  notices.push(notice("user_digest", "metadata.user_id is too long, and counts by its SHA-256.", "metadata.user_id"));
  return `sha256:${createHash("sha256").update(id).digest("hex")}`;
}

/** What Claude Code sent before version 2.1.78. The account is empty for a user of an API key. */
const FORMER_AGENT = /^user_([\da-f]+)_account_([\da-f-]*)_session_[\da-f-]+$/;

/** Longest identifier that is read as JSON. Those of Claude Code have some 200 characters. */
const MAX_JSON = 4_096;

/**
 * The account in an identifier of Claude Code, or else the device. The identifier also has the session, with which one
 * user would count as a new one in each session.
 */
function withoutSession(id: string): string {
  const [, device, account] = FORMER_AGENT.exec(id) ?? [];
  if (device !== undefined) return account || device;
  if (!id.startsWith("{") || id.length > MAX_JSON) return id;
  const { account_uuid, device_id, session_id } = membersOf(id);
  if (session_id === undefined) return id;
  for (const part of [account_uuid, device_id]) if (typeof part === "string" && part !== "") return part;
  return id;
}

function membersOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
