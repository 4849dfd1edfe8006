import { Failure } from "../../../src/contract/failure.ts";
import { checkSchema } from "../../../src/engine/structured/check-schema.ts";
import { jsonErrorAt } from "./json-error.ts";
import { offsetOf } from "./json-offset.ts";

/** Why the service would refuse a schema. */
export interface SchemaProblem {
  /** Line of the problem, from 1. */
  readonly line: number;
  /** Path of the node, such as `properties.total`; empty for the root. */
  readonly path: string;
  readonly message: string;
}

const ROOT = "response_format.schema";

// The check of the service uses Buffer.byteLength, which browsers do not have.
if (!("Buffer" in globalThis)) {
  const byteLength = (text: string) => new TextEncoder().encode(text).length;
  Object.assign(globalThis, { Buffer: { byteLength } });
}

/** Checks a schema with the code of the service. @returns undefined if the service accepts the schema */
export function schemaProblem(text: string): SchemaProblem | undefined {
  const invalidAt = jsonErrorAt(text);
  if (invalidAt !== undefined)
    return { line: lineAt(text, invalidAt), path: "", message: "The text is not valid JSON from here on." };
  try {
    checkSchema(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const path = (error.field ?? ROOT).slice(ROOT.length);
    const [, keyword = ""] = /"([^"]+)"/.exec(error.message) ?? [];
    const steps = stepsOf(path);
    const at = offsetOf(text, [...steps, keyword]) ?? offsetOf(text, steps) ?? 0;
    return { line: lineAt(text, at), path: path.replace(/^\./, ""), message: error.message };
  }
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** Splits a path such as `.properties["a b"].items` into names. */
function stepsOf(path: string): string[] {
  return [...path.matchAll(/\.([A-Za-z_$][\w$]*)|\[("(?:[^"\\]|\\.)*")\]/g)].map(([, name, literal]) =>
    literal === undefined ? (name ?? "") : String(JSON.parse(literal)),
  );
}
