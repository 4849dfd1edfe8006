import { type JsonNode, JsonText, parseJson, stringifyJson } from "../../contract/json.ts";
import type { Tool } from "../port/model.ts";

/** What a vendor demands of the root of a tool's schema, and of no other node. */
export interface RootRule {
  /** Keywords that it refuses there. */
  readonly refused: readonly string[];
  /** Whether it refuses a root without `properties`. */
  readonly needsProperties: boolean;
}

/** A tool as a vendor takes it. */
interface SentTool {
  readonly description: string;
  /** JSON text of a schema. */
  readonly schema: string;
}

/**
 * Gives a tool the form that a vendor takes: the root of its schema says `"type":"object"`, which arguments always
 * are. Keywords that are refused at the root move into the description as they were written, so that the model still
 * sees them; arguments are checked against the whole schema anyway.
 * @param parameters JSON text of an object
 */
export function sentTool(
  { description, parameters, hasPlainRoot }: Pick<Tool, "description" | "parameters" | "hasPlainRoot">,
  { refused, needsProperties }: RootRule,
): SentTool {
  if (hasPlainRoot) return { description, schema: parameters };
  const text = new JsonText(parameters);
  const addsProperties = needsProperties && text.at(["properties"]) === undefined;
  const isTaken = text.at(["type"]) === '"object"' && refused.every((name) => text.at([name]) === undefined);
  if (isTaken && !addsProperties) return { description, schema: parameters };
  const root = parseJson(parameters);
  const members = root.kind === "object" ? root.members : [];
  const moved = members.filter(([name]) => refused.includes(name));
  const kept = members.filter(([name]) => name !== "type" && !refused.includes(name));
  const rule = `The input must also be valid against this JSON Schema: ${write(moved)}`;
  return {
    description: moved.length === 0 ? description : `${description}\n\n${rule}`.trim(),
    schema: write([["type", OBJECT], ...kept, ...(addsProperties ? [NO_PROPERTIES] : [])]),
  };
}

type Members = Extract<JsonNode, { kind: "object" }>["members"];

const OBJECT: JsonNode = { kind: "scalar", text: '"object"' };
const NO_PROPERTIES: Members[number] = ["properties", { kind: "object", members: [] }];

function write(members: Members): string {
  return stringifyJson({ kind: "object", members });
}
