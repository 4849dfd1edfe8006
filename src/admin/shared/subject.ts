import { invalid } from "../../contract/failure.ts";
import { checkUser, isTag } from "../../contract/subjects.ts";

/**
 * Checks a subject of caps and of usage: `key:ID`, `user:ID` or `tag:NAME=VALUE`.
 * @param field that has it, as failures name it
 * @param each whether `*` in place of the last part stands for each of them
 * @throws Failure `invalid_request` with the field
 */
export function checkSubject(field: string, subject: string, { each = false } = {}): void {
  const [, kind, name = "", value = ""] = /^(?:(key|user):|tag:([^=]*)=)(.*)$/su.exec(subject) ?? [];
  const isOther = kind === undefined && !subject.startsWith("tag:");
  if (value === "" || isOther || (kind === undefined && !isTag(name, value))) {
    const template = each ? ", with * in place of the last part for each of them" : "";
    throw invalid(field, `${field} must be key:ID, user:ID or tag:NAME=VALUE${template}.`);
  }
  if (kind === "user") checkUser(field, value);
  if (kind === "key" && !/^[\w*-]{1,128}$/.test(value)) throw invalid(field, `${field} must name the ID of a key.`);
}
