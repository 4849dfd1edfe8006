import { type JsonNode, JsonText, member, parseJson, stringifyJson } from "../../contract/json.ts";
import { isOfType } from "../port/schema.ts";

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
  { description, parameters }: { description: string; parameters: string },
  { refused, needsProperties }: RootRule,
): SentTool {
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

/** Keywords whose value is a schema, a list of schemas, or an object of schemas. */
const SCHEMA: ReadonlySet<string> = new Set(["items", "additionalProperties", "not"]);
const LIST: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);

/**
 * Adds `"items":{}` to each array whose schema says nothing of its elements, which means the same.
 * @param schema JSON text
 */
export function withItems(schema: string): string {
  if (!schema.includes('"array"')) return schema;
  let isChanged = false;
  const visit = (node: JsonNode): JsonNode => {
    if (node.kind !== "object") return node;
    const members = node.members.map(([name, value]): [string, JsonNode] => {
      if (SCHEMA.has(name)) return [name, visit(value)];
      if (LIST.has(name) && value.kind === "array") return [name, { kind: "array", items: value.items.map(visit) }];
      if (!NAMED.has(name) || value.kind !== "object") return [name, value];
      return [name, { kind: "object", members: value.members.map(([key, each]) => [key, visit(each)]) }];
    });
    if (isOfType(node, "array") && member(node, "items") === undefined) {
      members.push(["items", { kind: "object", members: [] }]);
      isChanged = true;
    }
    return { kind: "object", members };
  };
  try {
    const visited = visit(parseJson(schema));
    return isChanged ? stringifyJson(visited) : schema;
  } catch (error) {
    // It is nested too deeply.
    if (!(error instanceof SyntaxError)) throw error;
    return schema;
  }
}
