import type { SchemaPart } from "../../contract/schema-parts.ts";

/** One step of a path to a member: `.name`, or `["any name"]`. */
export function memberStep(name: string): string {
  return /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? `.${name}` : `[${quoted(name)}]`;
}

/** The steps of a path to a part of a schema, such as `.properties.name` or `.anyOf[0]`. */
export function partSteps({ keyword, at }: Pick<SchemaPart, "keyword" | "at">): string {
  if (at === undefined) return `.${keyword}`;
  return `.${keyword}${typeof at === "number" ? `[${at}]` : memberStep(at)}`;
}

/** A name for a message: in quotes, shortened to 64 characters. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}
