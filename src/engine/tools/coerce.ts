import { type JsonNode, member, parseJson, stringifyJson } from "../../contract/json.ts";
import { hasType } from "../structured/value-types.ts";
import { propertiesOf } from "./schemas.ts";

/** Deepest level that is read, of arguments and their schema. */
const MAX_DEPTH = 20;

/**
 * Corrects the types of arguments where a schema leaves one meaning only: a number, truth value or object that stands
 * in a string, and a number or truth value where a string is wanted.
 * @param text JSON text
 */
export function coerceTypes(schema: JsonNode, text: string): string {
  return stringifyJson(coerce(schema, parseJson(text), 0));
}

function coerce(schema: JsonNode, node: JsonNode, depth: number): JsonNode {
  if (depth > MAX_DEPTH) return node;
  const types = typesOf(schema);
  const value = types.size === 0 ? node : asOneOf(types, node);
  if (value.kind === "object") {
    const properties = propertiesOf(schema);
    return {
      kind: "object",
      members: value.members.map(([name, child]) => {
        const own = properties.get(name);
        return [name, own ? coerce(own, child, depth + 1) : child];
      }),
    };
  }
  const items = value.kind === "array" ? member(schema, "items") : undefined;
  if (value.kind !== "array" || !items) return value;
  return { kind: "array", items: value.items.map((item) => coerce(items, item, depth + 1)) };
}

function typesOf(schema: JsonNode): ReadonlySet<string> {
  const type = member(schema, "type");
  const nodes = type?.kind === "array" ? type.items : type ? [type] : [];
  return new Set(nodes.flatMap((node) => (node.kind === "scalar" ? [String(JSON.parse(node.text))] : [])));
}

/** A node as one of the wanted types, if it is of none of them and there is one way only. */
function asOneOf(types: ReadonlySet<string>, node: JsonNode): JsonNode {
  if (node.kind === "array" || hasType(node, types)) return node;
  if (node.kind === "object") return node;
  const value: unknown = JSON.parse(node.text);
  if (typeof value !== "string")
    return types.has("string") && value !== null ? { kind: "scalar", text: JSON.stringify(node.text) } : node;
  try {
    const inner = parseJson(value);
    return hasType(inner, types) ? inner : node;
  } catch {
    return node;
  }
}
