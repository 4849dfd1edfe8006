import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";

/** Longest value of the header. Clients limit all headers of a response to 8 KB or more. */
const MAX_LENGTH = 2_048;

/**
 * The header `X-Chorus-Notice` for formats without a place for notices: code and sentence of each, separated by
 * semicolons. Those that do not fit are only counted.
 * @returns name and value; empty without notices
 */
export function noticeHeader(notices: readonly Notice[]): string[] {
  if (notices.length === 0) return [];
  let value = "";
  for (const [i, { code, message }] of notices.entries()) {
    const next = `${value === "" ? "" : "; "}${code}: ${plain(message)}`;
    if (value.length + next.length > MAX_LENGTH) {
      value += `; and ${notices.length - i} more`;
      break;
    }
    value += next;
  }
  return ["X-Chorus-Notice", value];
}

/** A notice may have names that the caller chose, and results of a search. A header has visible ASCII and spaces. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, "?");
}
