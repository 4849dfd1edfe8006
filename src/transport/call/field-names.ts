import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../../contract/failure.ts";
import { notice } from "../../generate/notices.ts";

/**
 * Fields of a `GenerateRequest`, and the members of a foreign request from which they came. The service's failures and
 * notices name the fields. A pair also stands for what is below it; of several pairs the one with the longest field
 * counts.
 */
export type FieldNames = readonly (readonly [field: string, member: string])[];

/** Renames the field of a failure, in its message too, to the member that the caller has sent. */
export function renameField(failure: Failure, names: FieldNames): Failure {
  const { field } = failure;
  const member = field === undefined ? undefined : memberOf(field, names);
  if (field === undefined || member === undefined) return failure;
  const { kind, limit, retryAfterMs, cause } = failure;
  const isOfOther = field.endsWith(".media_type") && !member.endsWith(".media_type");
  return new Failure(kind, {
    message: failure.message.replaceAll(field, isOfOther ? `The media type of ${member}` : member),
    field: member,
    cause,
    ...(limit === undefined ? {} : { limit }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Renames the field of a notice of the service to the member that the caller has sent. */
export function renameNotice(from: Notice, names: FieldNames): Notice {
  const { code, message, field } = from;
  const member = field === undefined ? undefined : memberOf(field, names);
  if (field === undefined || member === undefined) return from;
  // The texts about a search of the web do not name the field, but can have the addresses of pages.
  const isNamed = field !== "web_search";
  return notice(code, isNamed ? message.replaceAll(field, member) : message, member);
}

/** Undefined: the member has the name of the field. */
function memberOf(field: string, names: FieldNames): string | undefined {
  let found: FieldNames[number] | undefined;
  for (const pair of names) {
    const [own] = pair;
    if (own.length < (found?.[0].length ?? 0) || !field.startsWith(own)) continue;
    if (own.length === field.length || /^[.[]/.test(field.slice(own.length))) found = pair;
  }
  return found && found[1] + field.slice(found[0].length);
}
