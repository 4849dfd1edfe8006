import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import type { Tool } from "./model.ts";
import { isOfType } from "./schema.ts";

/**
 * What vendors need to know of a tool's schema. Find it where the request is read: a large schema would hold the event
 * loop.
 * @param parameters JSON text of an object
 * @param root the same, parsed
 */
export function formOfTool(parameters: string, root: JsonNode): Pick<Tool, "rootNames" | "itemised"> {
  const rootNames = rootNamesOf(root);
  const itemised = parameters.includes('"array"') ? withItems(root) : undefined;
  return { ...(rootNames ? { rootNames } : {}), ...(itemised === undefined ? {} : { itemised }) };
}

/** See `Tool.rootNames`. */
export function rootNamesOf(root: JsonNode): readonly string[] | undefined {
  const type = member(root, "type");
  const isObject = root.kind === "object" && type?.kind === "scalar" && type.text === '"object"';
  return isObject ? root.members.map(([name]) => name) : undefined;
}

/** Keywords whose value is a schema, a list of schemas, or an object of schemas. */
const SCHEMA: ReadonlySet<string> = new Set(["items", "additionalProperties", "not"]);
const LIST: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);

/**
 * Adds `"items":{}` to each array whose schema says nothing of its elements, which means the same.
 * @returns undefined if there is none
 */
function withItems(schema: JsonNode): string | undefined {
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
  const visited = visit(schema);
  return isChanged ? stringifyJson(visited) : undefined;
}
