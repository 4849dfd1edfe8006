import { type JsonNode, member } from "./json.ts";

// Keywords of JSON Schema whose value is a schema, a list of schemas, or an object of schemas.
const ONE: ReadonlySet<string> = new Set([
  ...["items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"],
]);
const LIST: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
]);

/** A schema that stands directly in another one. */
export interface SchemaPart {
  readonly keyword: string;
  /** Its index or name, where the keyword has several schemas. */
  readonly at?: number | string;
  readonly node: JsonNode;
}

/** The schemas that stand directly in a schema, in the order of the text. */
export function partsOf(schema: JsonNode): readonly SchemaPart[] {
  return schema.kind === "object" ? schema.members.flatMap(([keyword, value]) => partsIn(keyword, value)) : [];
}

function partsIn(keyword: string, value: JsonNode): SchemaPart[] {
  if (ONE.has(keyword) && value.kind !== "array") return [{ keyword, node: value }];
  if (LIST.has(keyword) && value.kind === "array") return value.items.map((node, at) => ({ keyword, at, node }));
  if (NAMED.has(keyword) && value.kind === "object") return value.members.map(([at, node]) => ({ keyword, at, node }));
  return [];
}

/** A schema with other schemas in it. @returns the same node if nothing changes */
export function mapParts(schema: JsonNode, change: (part: SchemaPart) => JsonNode): JsonNode {
  if (schema.kind !== "object") return schema;
  let isSame = true;
  const members = schema.members.map(([keyword, value]): [string, JsonNode] => {
    const parts = partsIn(keyword, value);
    const nodes = parts.map(change);
    if (nodes.every((node, i) => node === parts[i]?.node)) return [keyword, value];
    isSame = false;
    if (value.kind === "array") return [keyword, { kind: "array", items: nodes }];
    if (!NAMED.has(keyword)) return [keyword, nodes[0] ?? value];
    return [keyword, { kind: "object", members: nodes.map((node, i) => [String(parts[i]?.at), node]) }];
  });
  return isSame ? schema : { kind: "object", members };
}

/** The schema that a `$ref` in the same document leads to. Undefined: there is none, or the schema has no `$ref`. */
export function targetOf(schema: JsonNode, root: JsonNode): JsonNode | undefined {
  const reference = member(schema, "$ref");
  const pointer: unknown = reference?.kind === "scalar" ? JSON.parse(reference.text) : undefined;
  return typeof pointer === "string" ? nodeAt(root, pointer) : undefined;
}

/** The node of a JSON pointer in a URI fragment (RFC 6901, section 6). */
export function nodeAt(root: JsonNode, pointer: string): JsonNode | undefined {
  if (pointer !== "#" && !pointer.startsWith("#/")) return undefined;
  const steps = pointer.split("/").slice(1);
  return steps.reduce<JsonNode | undefined>((node, step) => {
    const name = decoded(step);
    if (!node || name === undefined) return undefined;
    return node.kind === "array" ? node.items[/^\d+$/.test(name) ? Number(name) : -1] : member(node, name);
  }, root);
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}
