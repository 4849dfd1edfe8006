import { randomUUID } from "node:crypto";
import type { JSONSchema7 } from "@ai-sdk/provider";
import type { Fetch } from "./fetch.ts";

/** Random, so that no caller can guess it. */
const MARK = randomUUID();

/**
 * Passed to the AI SDK in place of the schema, because the SDK rebuilds schemas from objects, which loses the order
 * of names that look like integers and the spelling of numbers. It has no nested object, so the nearest braces around
 * the mark are its own.
 */
export const SCHEMA_PLACEHOLDER: JSONSchema7 = { type: "object", description: MARK, additionalProperties: false };

/**
 * Makes a `fetch` that replaces the placeholder in the body by the text of a schema. A caller's text cannot be
 * mistaken for the placeholder: inside a JSON string each quote is escaped.
 * @throws Error if the body has no placeholder
 */
export function inlineSchema(fetch: Fetch, schema: string): Fetch {
  return (input, init) => {
    const body = String(init?.body);
    const at = body.indexOf(`"description":"${MARK}"`);
    if (at < 0) throw new Error("The body of the call has no placeholder for the JSON Schema.");
    const start = body.lastIndexOf("{", at);
    const end = body.indexOf("}", at) + 1;
    return fetch(input, { ...init, body: body.slice(0, start) + schema + body.slice(end) });
  };
}
