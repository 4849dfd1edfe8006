import { type JsonNode, member, parseJson } from "../../contract/json.ts";
import { partsOf, targetOf } from "../../contract/schema-parts.ts";

/** What a vendor's strict mode takes of JSON Schema, beyond what every strict mode takes. */
export interface StrictMode {
  /** Whether it takes a keyword with this value. */
  takes: (keyword: string, value: JsonNode) => boolean;
  /** Whether every property must be required. */
  allRequired: boolean;
  /** Whether the schema, whose keywords are taken, is within the limits. Gets the schema and all nested in it. */
  fits: (nodes: readonly JsonNode[], root: JsonNode) => boolean;
}

/** Keywords that every strict mode takes. */
const COMMON: ReadonlySet<string> = new Set([
  ...["type", "properties", "required", "additionalProperties", "items", "enum", "const", "title", "description"],
  ...["anyOf", "$ref", "$defs", "definitions"],
]);

/**
 * Whether a vendor's strict mode takes a caller's JSON Schema as it is written. Every strict mode wants an object at
 * the root, without alternatives, each object to exclude further properties in so many words, and each schema to say
 * its type and nothing about other types, its alternatives, or nothing but a reference.
 * @param text a schema that the service has accepted
 */
export function isStrictSchema(text: string, { takes, allRequired, fits }: StrictMode): boolean {
  const root = parseJson(text);
  const all = nodes(root);
  const isTaken = (node: JsonNode) =>
    membersOf(node).every(([keyword, value]) => COMMON.has(keyword) || takes(keyword, value));
  const type = member(root, "type");
  if (type?.kind !== "scalar" || type.text !== '"object"' || member(root, "anyOf")) return false;
  const isStrict = (node: JsonNode) =>
    isDeclared(node) && isTaken(node) && (!isOfType(node, "object") || isClosed(node, allRequired));
  return all.every(isStrict) && fits(all, root);
}

/** The types of which a schema must have one beside a keyword. */
const TYPES_OF: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    object: ["properties", "required", "additionalProperties"],
    array: ["items", "minItems", "maxItems"],
    "number integer": ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  }).flatMap(([types, names]) => names.map((name): [string, string[]] => [name, types.split(" ")])),
);

function isDeclared(node: JsonNode): boolean {
  if (member(node, "$ref")) return membersOf(node).length === 1;
  if (isOfType(node, "array") && !member(node, "items")) return false;
  if ((member(node, "type") === undefined) === (member(node, "anyOf") === undefined)) return false;
  return membersOf(node).every(([name]) => TYPES_OF.get(name)?.some((type) => isOfType(node, type)) ?? true);
}

/** Most schemas within each other that are followed. It bounds the stack. */
const MAX_DEPTH = 200;

/** Whether a schema contains itself, or leads too far to say so. */
export function isRecursive(root: JsonNode): boolean {
  const [open, done] = [new Set<JsonNode>(), new Set<JsonNode>()];
  const leadsBack = (node: JsonNode): boolean => {
    if (open.has(node) || open.size > MAX_DEPTH) return true;
    if (done.has(node)) return false;
    open.add(node);
    const target = targetOf(node, root);
    const found = partsOf(node).some((part) => leadsBack(part.node)) || (target !== undefined && leadsBack(target));
    open.delete(node);
    done.add(node);
    return found;
  };
  return leadsBack(root);
}

/** The names of an object's properties that are not required. */
export function optionalNames(schema: JsonNode): string[] {
  const list = member(schema, "required");
  const required = new Set(
    list?.kind === "array" ? list.items.flatMap((name) => (name.kind === "scalar" ? JSON.parse(name.text) : [])) : [],
  );
  return membersOf(member(schema, "properties")).flatMap(([name]) => (required.has(name) ? [] : name));
}

function isClosed(node: JsonNode, allRequired: boolean): boolean {
  const additional = member(node, "additionalProperties");
  if (additional?.kind !== "scalar" || additional.text !== "false") return false;
  if (!allRequired) return true;
  return (
    member(node, "properties") !== undefined &&
    member(node, "required") !== undefined &&
    optionalNames(node).length === 0
  );
}

/** A schema and all schemas nested in it, without `additionalProperties`. */
export function nodes(schema: JsonNode): JsonNode[] {
  const parts = partsOf(schema).filter(({ keyword }) => keyword !== "additionalProperties");
  return [schema, ...parts.flatMap(({ node }) => nodes(node))];
}

export function membersOf(node: JsonNode | undefined): [name: string, value: JsonNode][] {
  return node?.kind === "object" ? node.members : [];
}

/** Whether a schema names a type, alone or in a list. */
export function isOfType(schema: JsonNode, wanted: string): boolean {
  const type = member(schema, "type");
  const names = type?.kind === "array" ? type.items : type ? [type] : [];
  return names.some((name) => name.kind === "scalar" && JSON.parse(name.text) === wanted);
}
