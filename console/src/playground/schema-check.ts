import { checkSchema } from "../../../src/engine/structured/check-schema.ts";
import { Failure } from "../../../src/failure.ts";
import { errorAt } from "./json-error.ts";
import { placeOf } from "./json-place.ts";

/** What the service would refuse. */
export interface Refusal {
  /** Line at fault, from 1. */
  readonly line: number;
  /** Path of the node, such as `properties.total`; empty for the root. */
  readonly path: string;
  readonly message: string;
}

const ROOT = "response_format.schema";

// The gate is the service's own, and counts bytes as Node does.
if (!("Buffer" in globalThis)) {
  const byteLength = (text: string) => new TextEncoder().encode(text).length;
  Object.assign(globalThis, { Buffer: { byteLength } });
}

/** Checks a schema with the service's own gate. @returns undefined when the service would accept it */
export function refusalOf(text: string): Refusal | undefined {
  const broken = errorAt(text);
  if (broken !== undefined)
    return { line: lineAt(text, broken), path: "", message: "From here on the text is no JSON." };
  try {
    checkSchema(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const path = (error.field ?? ROOT).slice(ROOT.length);
    const [, keyword = ""] = /"([^"]+)"/.exec(error.message) ?? [];
    const steps = stepsOf(path);
    const at = placeOf(text, [...steps, keyword]) ?? placeOf(text, steps) ?? 0;
    return { line: lineAt(text, at), path: path.replace(/^\./, ""), message: error.message };
  }
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** `.properties["a b"].items` as names. */
function stepsOf(path: string): string[] {
  return [...path.matchAll(/\.([A-Za-z_$][\w$]*)|\[("(?:[^"\\]|\\.)*")\]/g)].map(([, name, literal]) =>
    literal === undefined ? (name ?? "") : String(JSON.parse(literal)),
  );
}
