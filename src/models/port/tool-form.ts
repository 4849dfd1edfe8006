import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { mapParts } from "../../contract/schema-parts.ts";
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

/**
 * Adds `"items":{}` to each array whose schema says nothing of its elements, which means the same.
 * @returns undefined if there is none
 */
function withItems(schema: JsonNode): string | undefined {
  const visit = (node: JsonNode): JsonNode => {
    const mapped = mapParts(node, (part) => visit(part.node));
    if (mapped.kind !== "object" || !isOfType(mapped, "array") || member(mapped, "items")) return mapped;
    return { kind: "object", members: [...mapped.members, ["items", { kind: "object", members: [] }]] };
  };
  const visited = visit(schema);
  return visited === schema ? undefined : stringifyJson(visited);
}
