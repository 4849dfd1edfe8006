import type { Caller } from "../admission/authenticate.ts";
import { type Failure, invalid } from "../contract/failure.ts";
import { checkTags, checkUser, isEmpty, isOwnTag, MAX_TAGS, type Subjects, type Tags } from "../contract/subjects.ts";

/** What the headers `X-Chorus-User` and `X-Chorus-Tags` say. */
export interface SubjectHeaders {
  readonly user?: string;
  readonly tags?: string;
}

const TAGS_HEADER = "X-Chorus-Tags";

const NOBODY: Subjects = {};

/**
 * Finds for whom a request is made: by its body, else by its headers, and by what its key sets.
 * @param body what `user` and `tags` of the body say, which are checked; empty: nothing
 * @param isForeign whether the tags of the body are labels of another API, of which only those that fit are tags
 * @throws Failure invalid_request naming the header, or the tag that the key does not allow
 */
export function readSubjects(
  body: { readonly user: string; readonly tags: Tags },
  headers: SubjectHeaders,
  { fixedTags, forbidsTags }: Pick<Caller, "fixedTags" | "forbidsTags">,
  isForeign = false,
): Subjects {
  const user = body.user === "" ? userOfHeader(headers.user) : body.user;
  const isNamed = !isEmpty(body.tags);
  const named = isNamed ? body.tags : tagsOfHeader(headers.tags);
  for (const [name, value] of Object.entries(named)) {
    const fixed = fixedTags && Object.hasOwn(fixedTags, name) ? fixedTags[name] : undefined;
    if (fixed === undefined ? forbidsTags : fixed !== value)
      throw notAllowed(isNamed ? `tags.${name}` : TAGS_HEADER, name, fixed !== undefined);
  }
  const fitting = isForeign && isNamed && fixedTags ? besideFixed(named, fixedTags) : named;
  const tags = fixedTags ? { ...fitting, ...fixedTags } : named;
  if (fixedTags && Object.keys(tags).filter((name) => !isOwnTag(name)).length > MAX_TAGS) {
    const message = `A request may have ${MAX_TAGS} tags, with those of the API key. Send fewer.`;
    throw invalid(isNamed ? "tags" : TAGS_HEADER, message);
  }
  const hasTags = !isEmpty(tags);
  if (user === "") return hasTags ? { tags } : NOBODY;
  return hasTags ? { user, tags } : { user };
}

/** The first tags of a request for which those of its key leave room. */
function besideFixed(named: Tags, fixedTags: Tags): Tags {
  let room = MAX_TAGS - Object.keys(fixedTags).filter((name) => !isOwnTag(name)).length;
  return Object.fromEntries(Object.entries(named).filter(([name]) => Object.hasOwn(fixedTags, name) || room-- > 0));
}

function notAllowed(field: string, name: string, isFixed: boolean): Failure {
  if (isFixed) return invalid(field, `The API key sets the tag ${name} to another value. Leave the tag out.`);
  return invalid(field, `The API key does not allow the tag ${name}. Leave it out, or use another key.`);
}

function userOfHeader(header: string | undefined): string {
  const user = header === undefined ? "" : fromUtf8(header).trim();
  if (user !== "") checkUser("X-Chorus-User", user);
  return user;
}

/** Reads `name=value, …` in the syntax of W3C Baggage: values are percent-encoded; properties are skipped. */
function tagsOfHeader(header: string | undefined): Tags {
  if (header === undefined) return {};
  const tags = new Map<string, string>();
  for (const member of header.split(",")) {
    if (member.trim() === "") continue;
    const [pair = ""] = member.split(";");
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(0, at)).trim();
    const value = decodePercent(pair.slice(at + 1).trim());
    if (at < 0 || value === undefined) {
      const expected = 'a list such as "team=search, project=a%20b"';
      throw invalid(TAGS_HEADER, `${TAGS_HEADER} must be ${expected}, with percent-encoded values.`);
    }
    if (tags.has(name)) throw invalid(TAGS_HEADER, `${TAGS_HEADER} has a tag twice. Send each tag once.`);
    tags.set(name, value);
  }
  const found = Object.fromEntries(tags);
  checkTags(TAGS_HEADER, found, () => TAGS_HEADER);
  return found;
}

/** Node reads each byte of a header as one character. */
function fromUtf8(header: string): string {
  return Buffer.from(header, "latin1").toString();
}

function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(fromUtf8(text));
  } catch {
    return undefined;
  }
}
