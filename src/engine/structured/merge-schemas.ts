import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { keyOf, stringOf } from "./rules.ts";
import { typesOfValue } from "./value-types.ts";

export type Schema = Extract<JsonNode, { kind: "object" }>;
type Member = [name: string, value: JsonNode];

/** Keywords that do not change what validates. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...["description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema"],
]);

/** Members that hold schemas for references. */
export const DEFINITIONS: ReadonlySet<string> = new Set(["$defs", "definitions"]);

/** The types that a keyword concerns. `enum` and `const` concern all; other keywords stand in no merged schema. */
const TYPES_OF: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    object: ["properties", "required", "additionalProperties", "minProperties", "maxProperties"],
    array: ["items", "minItems", "maxItems", "uniqueItems"],
    string: ["minLength", "maxLength", "pattern"],
    "number integer": ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  }).flatMap(([types, names]) => names.map((name): [string, string[]] => [name, types.split(" ")])),
);
const OF_ALL_TYPES: ReadonlySet<string> = new Set(["type", "enum", "const"]);

/**
 * Adds the members that stand beside a reference to the schema that it refers to. Both descriptions are kept; of other
 * annotations, those beside the reference count.
 * @returns undefined if a member would change what the schema accepts
 */
export function overlay(base: Schema, beside: readonly Member[]): Schema | undefined {
  const members = new Map(base.members);
  for (const [name, value] of beside) {
    const own = members.get(name);
    if (name === "description" && own) members.set(name, joined([value, own]) ?? value);
    else if (ANNOTATIONS.has(name)) members.set(name, value);
    else if (DEFINITIONS.has(name) && !own) members.set(name, value);
    else if (!own || stringifyJson(own) !== stringifyJson(value)) return undefined;
  }
  return { kind: "object", members: [...members] };
}

/**
 * Writes alternatives as one schema with a list of types: possible if each type belongs to one of them only, and if
 * either all alternatives list their values or none does. Alternatives that only list values may share types.
 * @returns undefined if that is not possible
 */
export function union(alternatives: readonly JsonNode[]): Schema | undefined {
  const schemas = alternatives.filter((node): node is Schema => node.kind === "object");
  if (schemas.length === 0 || schemas.length < alternatives.length) return undefined;
  const values = schemas.map(valuesOf);
  const areLists = !values.includes(undefined) && schemas.every((schema) => isBare(schema, OF_ALL_TYPES));
  if (!areLists && !areApart(schemas)) return undefined;
  const isListed = schemas.some((schema) => member(schema, "enum") ?? member(schema, "const"));
  if (isListed && values.includes(undefined)) return undefined;
  const members = new Map<string, JsonNode>();
  const descriptions: JsonNode[] = [];
  for (const schema of schemas) {
    const types = typesOf(schema);
    for (const [name, value] of schema.members) {
      // The bound of a type that the alternative does not allow would begin to count.
      const isOfTypes = TYPES_OF.get(name)?.some((type) => types.includes(type));
      if (!isOfTypes && !OF_ALL_TYPES.has(name) && !ANNOTATIONS.has(name)) return undefined;
      if (name === "description") descriptions.push(value);
      const own = members.get(name);
      if (own === undefined) members.set(name, value);
      else if (!ANNOTATIONS.has(name) && !OF_ALL_TYPES.has(name)) return undefined;
    }
  }
  const description = joined(descriptions);
  if (description) members.set("description", description);
  members.set("type", typeNode([...new Set(schemas.flatMap(typesOf))]));
  members.delete("const");
  if (isListed) members.set("enum", { kind: "array", items: withoutRepeated(values.flatMap((list) => list ?? [])) });
  return { kind: "object", members: [...members] };
}

/** Whether no two schemas share a type. Integers are numbers, which does not matter without bounds. */
function areApart(schemas: readonly Schema[]): boolean {
  const types = schemas.flatMap(typesOf);
  if (new Set(types).size < types.length || schemas.some((schema) => typesOf(schema).length === 0)) return false;
  if (!types.includes("number") || !types.includes("integer")) return true;
  const numeric = schemas.filter((schema) => typesOf(schema).some((type) => type === "number" || type === "integer"));
  return numeric.length === 1 || numeric.every((schema) => isBare(schema, ONLY_TYPE));
}

/** Most required members among which the one that names the kind is sought. */
const MAX_NAMES = 8;

/**
 * Whether no value fits two of some schemas, as far as their types and a member that names the kind of an object show
 * it: each object requires that member, and lists other values for it.
 */
export function excludeEachOther(alternatives: readonly JsonNode[]): boolean {
  const schemas = alternatives.filter((node): node is Schema => node.kind === "object" && !member(node, "nullable"));
  const objects = schemas.filter((schema) => typesOf(schema).join() === "object");
  const others = schemas.filter((schema) => !objects.includes(schema));
  const types = [...others.flatMap(typesOf), ...(objects.length > 0 ? ["object"] : [])];
  const areApart = new Set(types).size === types.length && !(types.includes("number") && types.includes("integer"));
  if (schemas.length < alternatives.length || !areApart || others.some((schema) => typesOf(schema).length === 0))
    return false;
  const [first] = objects;
  return objects.length < 2 || (first !== undefined && requiredIn(first).some((name) => namesKind(name, objects)));
}

function requiredIn(schema: Schema): string[] {
  const required = member(schema, "required");
  const names = required?.kind === "array" ? required.items.map(stringOf) : [];
  return names.filter((name) => name !== undefined).slice(0, MAX_NAMES);
}

/** Whether each object requires a member, and lists values for it that no other one lists. */
function namesKind(name: string, objects: readonly Schema[]): boolean {
  const lists = objects.map((schema) => {
    const properties = member(schema, "properties");
    const property = properties && requiredIn(schema).includes(name) ? member(properties, name) : undefined;
    return property?.kind === "object" ? valuesOf(property)?.map(keyOf) : undefined;
  });
  const keys = lists.flatMap((list) => [...new Set(list)]);
  return !lists.includes(undefined) && new Set(keys).size === keys.length;
}

const ONLY_TYPE: ReadonlySet<string> = new Set(["type"]);

/** Whether a schema has no keywords but these, and annotations. */
function isBare(schema: Schema, keywords: ReadonlySet<string>): boolean {
  return schema.members.every(([name]) => keywords.has(name) || ANNOTATIONS.has(name));
}

function withoutRepeated(values: readonly JsonNode[]): JsonNode[] {
  return [...new Map(values.map((value) => [stringifyJson(value), value])).values()];
}

/** The values that a schema lists; undefined if it allows others too, or lists one of another type. */
function valuesOf(schema: Schema): readonly JsonNode[] | undefined {
  const types = typesOf(schema);
  const [constant, values] = [member(schema, "const"), member(schema, "enum")];
  if (!constant && !values) return types.length === 1 && types[0] === "null" ? [NULL] : undefined;
  if (constant && values) return undefined;
  const list = constant ? [constant] : values?.kind === "array" ? values.items : [];
  return list.every((value) => typesOfValue(value).some((type) => types.includes(type))) ? list : undefined;
}

const NULL: JsonNode = { kind: "scalar", text: "null" };

/** The declared types; none if there is no valid declaration. */
function typesOf(schema: Schema): string[] {
  const type = member(schema, "type");
  const names = type?.kind === "array" ? type.items : type ? [type] : [];
  return names.flatMap((name) => (name.kind === "scalar" && name.text.startsWith('"') ? JSON.parse(name.text) : []));
}

/** Declares the types of listed values, if none is declared and no value is an object or a list. */
export function withTypeOfValues(schema: Schema): Schema {
  const values = member(schema, "enum") ?? member(schema, "const");
  if (!values || member(schema, "type")) return schema;
  const list = values.kind === "array" && member(schema, "enum") ? values.items : [values];
  const types = new Set(list.map((value) => typesOfValue(value).at(-1)));
  if (types.has("number")) types.delete("integer");
  const names = [...types].filter((type) => type !== undefined);
  if (names.length === 0 || names.length < types.size) return schema;
  return { kind: "object", members: [["type", typeNode(names)], ...schema.members] };
}

function typeNode(names: readonly string[]): JsonNode {
  const items = names.map((name): JsonNode => ({ kind: "scalar", text: JSON.stringify(name) }));
  const [only] = items;
  return only && items.length === 1 ? only : { kind: "array", items };
}

/** Descriptions as one, each once; the first one if another is no text. @returns undefined if there is none */
function joined(descriptions: readonly JsonNode[]): JsonNode | undefined {
  const [first, ...others] = new Map(descriptions.map((node) => [stringifyJson(node), node])).values();
  if (!first || others.length === 0 || [first, ...others].some(({ kind }) => kind !== "scalar")) return first;
  const texts = [first, ...others].map((node) => (node.kind === "scalar" ? JSON.parse(node.text) : ""));
  return { kind: "scalar", text: JSON.stringify(texts.join("\n")) };
}
