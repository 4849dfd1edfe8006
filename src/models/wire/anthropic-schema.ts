import { JsonText, parseJson, stringifyJson } from "../../contract/json.ts";

/** Keywords that Anthropic refuses at the root of a tool's schema, and nowhere else. */
const REFUSED_AT_ROOT: readonly string[] = ["anyOf", "oneOf", "allOf"];

/** A tool as Anthropic takes it. */
interface SentTool {
  readonly description: string;
  /** JSON text of a schema. */
  readonly schema: string;
}

/**
 * Gives a tool the form that Anthropic takes: the root of its schema says `"type":"object"`, which arguments always
 * are. Keywords that are refused at the root move into the description as they were written, so that the model still
 * sees them; arguments are checked against the whole schema anyway.
 * @param parameters JSON text of an object
 */
export function sentTool({ description, parameters }: { description: string; parameters: string }): SentTool {
  const text = new JsonText(parameters);
  if (text.at(["type"]) === '"object"' && REFUSED_AT_ROOT.every((name) => text.at([name]) === undefined))
    return { description, schema: parameters };
  const root = parseJson(parameters);
  const members = root.kind === "object" ? root.members : [];
  const moved = members.filter(([name]) => REFUSED_AT_ROOT.includes(name));
  const kept = members.filter(([name]) => name !== "type" && !REFUSED_AT_ROOT.includes(name));
  const rule = `The input must also be valid against this JSON Schema: ${write(moved)}`;
  return {
    description: moved.length === 0 ? description : `${description}\n\n${rule}`.trim(),
    schema: write([["type", { kind: "scalar", text: '"object"' }], ...kept]),
  };
}

function write(members: Extract<Parameters<typeof stringifyJson>[0], { kind: "object" }>["members"]): string {
  return stringifyJson({ kind: "object", members });
}
