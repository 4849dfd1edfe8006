import { MetricsGroupBy } from "../../../gen/chorus/v1/generation_pb.js";

/** How use is split: `key`, `user`, or `tag:` and the name of a tag. */
export type Group = "key" | "user" | `tag:${string}`;

/** The group that an address names; undefined for any other text. */
export function groupOf(text: string | null): Group | undefined {
  if (text === "key" || text === "user") return text;
  return text?.startsWith("tag:") && text !== "tag:" ? (text as Group) : undefined;
}

/** The group as fields of a request. */
export function fieldsOf(group: Group): { groupBy: MetricsGroupBy; groupTag?: string } {
  if (group === "key") return { groupBy: MetricsGroupBy.KEY };
  if (group === "user") return { groupBy: MetricsGroupBy.USER };
  return { groupBy: MetricsGroupBy.TAG, groupTag: tagOf(group) };
}

/** Name of the tag; empty for other groups. */
export function tagOf(group: Group): string {
  return group.startsWith("tag:") ? group.slice(4) : "";
}

/** A subject of the group, such as `user:u-4711` and `tag:team=search`. */
export function subjectOf(group: Group, name: string): string {
  return tagOf(group) === "" ? `${group}:${name}` : `${group}=${name}`;
}

/** A subject, such as `user:u-4711`, as its group and name. */
export function partsOf(subject: string): { group: Group; name: string } {
  const [, kind = "", tag = "", name = ""] = /^(?:(key|user):|tag:([^=]*)=)(.*)$/s.exec(subject) ?? [];
  return { group: groupOf(kind || `tag:${tag}`) ?? "user", name };
}

/** The group as the head of a column: `Key`, `User`, or the name of the tag. */
export function headOf(group: Group): string {
  return tagOf(group) || (group === "key" ? "Key" : "User");
}

/** The group in a sentence: `keys`, `users`, or `values of team`. */
export function pluralOf(group: Group): string {
  return tagOf(group) ? `values of ${tagOf(group)}` : `${group}s`;
}
