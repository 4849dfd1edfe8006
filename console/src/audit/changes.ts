import { timeText } from "../format.ts";

/** A time in UTC as JSON has it. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/**
 * The members of the details of an audit entry, as text.
 * @param details JSON text of an object; names in it are untrusted
 */
export function changesOf(details: string): [name: string, value: string][] {
  return Object.entries(Object(JSON.parse(details))).map(([name, value]) => [name, textOf(value)]);
}

function textOf(value: unknown): string {
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return "none";
  if (Array.isArray(value)) return value.map(textOf).join(", ");
  if (typeof value === "string" && TIME.test(value)) return timeText(new Date(value));
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name} ${textOf(one)}`)
    .join(", ");
}
