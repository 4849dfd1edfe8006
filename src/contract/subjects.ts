import { invalid } from "./failure.ts";

/** For whom a request is made, beside its key. Usage is summed up for each of them. */
export interface Subjects {
  /** Identifier of the end user. */
  readonly user?: string;
  /** Not empty. */
  readonly tags?: Tags;
}

/** Values by name. */
export type Tags = Readonly<Record<string, string>>;

/** Largest number of tags of a request, beside those that only the service sets. */
export const MAX_TAGS = 8;

/** Longest `user` and longest value of a tag, in characters (Unicode code points). */
const MAX_USER = 128;
const MAX_VALUE = 64;

const NAME = /^[a-z0-9_.-]{1,32}$/;

/** Beginning of the names of tags that only the service sets. */
const OWN = "chorus.";

/** The tag of every request of a developer's keys. Its value is the identifier of the person. */
export const MEMBER_TAG = `${OWN}member`;

/** @param field that has the user, as failures name it. @throws Failure invalid_request */
export function checkUser(field: string, user: string): void {
  if (isUser(user)) return;
  throw invalid(field, `${field} must have 1 to ${MAX_USER} characters without control characters.`);
}

/** Whether a text can be the `user` of a request. */
export function isUser(user: string): boolean {
  return isText(user, MAX_USER);
}

/** @param field that has the tags. @param at names one of them. @throws Failure invalid_request */
export function checkTags(field: string, tags: Tags, at = (name: string) => `${field}.${name}`): void {
  const entries = Object.entries(tags);
  if (entries.length > MAX_TAGS) throw invalid(field, `${field} may have ${MAX_TAGS} tags at most. Send fewer.`);
  for (const [name, value] of entries) {
    if (!NAME.test(name))
      throw invalid(field, `A name in ${field} must have 1 to 32 characters of a-z, 0-9, "_", "." and "-".`);
    if (isOwnTag(name))
      throw invalid(at(name), `Only the service sets tags whose names begin with ${OWN} Leave the tag out.`);
    if (!isText(value, MAX_VALUE))
      throw invalid(at(name), `The tag ${name} must have 1 to ${MAX_VALUE} characters without control characters.`);
  }
}

/** Whether only the service sets the tag with this name. */
export function isOwnTag(name: string): boolean {
  return name.startsWith(OWN);
}

/** Whether a tag can have this name and this value. */
export function isTag(name: string, value: string): boolean {
  return NAME.test(name) && isText(value, MAX_VALUE);
}

export function isEmpty(tags: Tags): boolean {
  for (const _ in tags) return false;
  return true;
}

/** Whether a text has 1 to `max` characters, and none that controls. */
function isText(text: string, max: number): boolean {
  if (text === "" || /\p{Cc}/u.test(text)) return false;
  // A character has at most two UTF-16 units.
  return text.length <= max || (text.length <= 2 * max && [...text].length <= max);
}
