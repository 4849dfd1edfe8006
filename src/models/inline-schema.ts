import { randomUUID } from "node:crypto";
import type { JSONSchema7 } from "@ai-sdk/provider";
import type { Fetch } from "./fetch.ts";

const MARK = randomUUID();

/**
 * Stands for the schema in what the AI SDK is given, because its packages rebuild schemas from objects, which loses the order of names
 * that look like integers and the spelling of numbers. Flat, so that its braces are the nearest ones around its mark.
 */
export const SCHEMA_PLACEHOLDER: JSONSchema7 = { type: "object", description: MARK, additionalProperties: false };

/**
 * A `fetch` that puts the text of a schema where the placeholder stands in the body. What a caller wrote cannot be taken for the
 * placeholder: inside a JSON string every quote has a backslash before it, and nobody outside knows the mark.
 * @throws Error if the body holds no placeholder.
 */
export function inlineSchema(fetch: Fetch, schema: string): Fetch {
  return (input, init) => {
    const body = String(init?.body);
    const at = body.indexOf(`"description":"${MARK}"`);
    if (at < 0) throw new Error("The body of the call holds no place for the JSON Schema.");
    const start = body.lastIndexOf("{", at);
    const end = body.indexOf("}", at) + 1;
    return fetch(input, { ...init, body: body.slice(0, start) + schema + body.slice(end) });
  };
}
