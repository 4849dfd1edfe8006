import { type JsonNode, parseJson, stringifyJson } from "../../contract/json.ts";
import type { Tool } from "../port/model.ts";
import { rootNamesOf } from "../port/tool-form.ts";

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
  { description, parameters, rootNames }: Pick<Tool, "description" | "parameters" | "rootNames">,
  rule: RootRule,
): SentTool {
  if (takes(rule, rootNames)) return { description, schema: parameters };
  const root = parseJson(parameters);
  if (takes(rule, rootNamesOf(root))) return { description, schema: parameters };
  const { refused, needsProperties } = rule;
  const members = root.kind === "object" ? root.members : [];
  const addsProperties = needsProperties && !members.some(([name]) => name === "properties");
  const moved = members.filter(([name]) => refused.includes(name));
  const kept = members.filter(([name]) => name !== "type" && !refused.includes(name));
  const words = `The input must also be valid against this JSON Schema: ${write(moved)}`;
  return {
    description: moved.length === 0 ? description : `${description}\n\n${words}`.trim(),
    schema: write([["type", OBJECT], ...kept, ...(addsProperties ? [NO_PROPERTIES] : [])]),
  };
}

/** Whether a vendor takes a root with these members as it is. */
function takes({ refused, needsProperties }: RootRule, names: Tool["rootNames"]): boolean {
  if (!names || (needsProperties && !names.includes("properties"))) return false;
  return !refused.some((name) => names.includes(name));
}

type Members = Extract<JsonNode, { kind: "object" }>["members"];

const OBJECT: JsonNode = { kind: "scalar", text: '"object"' };
const NO_PROPERTIES: Members[number] = ["properties", { kind: "object", members: [] }];

function write(members: Members): string {
  return stringifyJson({ kind: "object", members });
}
