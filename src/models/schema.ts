import { type JsonNode, parseJson, stringifyJson } from "../json.ts";

interface CompiledSchema {
  /** JSON text, to be sent unchanged. */
  text: string;
  /** Whether the vendor enforces the schema; otherwise it is a hint. */
  strict: boolean;
}

/**
 * What a vendor's strict mode accepts beyond `type`, `properties`, `items`, `required`, `enum`, `const` and
 * `description`.
 */
export interface Dialect {
  /** Whether another keyword is sent unchanged. */
  keeps: (keyword: string, value: JsonNode) => boolean;
  /** Whether every object must have `additionalProperties: false`. */
  closed: boolean;
  /** Whether every property must be required. An optional one then becomes nullable. */
  allRequired: boolean;
  /** Whether an `enum` with these values is accepted. */
  enumerates: (values: readonly JsonNode[]) => boolean;
  /** Whether `const` is accepted; otherwise it becomes an `enum` of one value. */
  hasConst: boolean;
  /** How the vendor takes a schema: it enforces it, it takes it as a hint, or it takes none. */
  fits: (schema: JsonNode) => "strict" | "hint" | "none";
}

/** Keywords that most strict modes accept. */
export const NUMBERS_AND_ITEMS: ReadonlySet<string> = new Set(["title", "minimum", "maximum", "minItems", "maxItems"]);

/**
 * Text for the description in place of a rule that strict mode does not accept. The service checks the answer against
 * the rule.
 */
const RULE_TEXTS: Readonly<Record<string, string>> = {
  minLength: "Least number of characters:",
  maxLength: "Largest number of characters:",
  minItems: "Least number of items:",
  maxItems: "Largest number of items:",
  minimum: "Not less than",
  maximum: "Not more than",
};

/**
 * Compiles a caller's JSON Schema into one that the vendor's strict mode accepts. The result allows everything that
 * the caller's schema allows, except for additional properties of an object that does not mention them. Names, their
 * order and the spelling of numbers stay. Unsupported rules move into the description; annotations other than `title`
 * and `description` are dropped.
 * @param text a schema that the service has accepted
 * @returns undefined if strict mode cannot express the schema and the vendor accepts no hints; send it in the prompt
 *   then
 */
export function compileSchema(text: string, dialect: Dialect): CompiledSchema | undefined {
  const schema = parseJson(text);
  switch (dialect.fits(schema)) {
    case "strict":
      return { text: stringifyJson(compile(schema, dialect, false)), strict: true };
    case "hint":
      return { text, strict: false };
    case "none":
      return undefined;
  }
}

/**
 * Removes from an answer the nulls that `compileSchema` made possible: those of properties that the caller's schema
 * makes optional but not nullable.
 */
export function dropAddedNulls(answer: JsonNode, schema: JsonNode): JsonNode {
  if (answer.kind === "array") {
    const items = member(schema, "items");
    return items ? { kind: "array", items: answer.items.map((item) => dropAddedNulls(item, items)) } : answer;
  }
  if (answer.kind !== "object") return answer;
  const properties = new Map(membersOf(member(schema, "properties")));
  const required = requiredNames(schema);
  return {
    kind: "object",
    members: answer.members.flatMap(([name, value]): [string, JsonNode][] => {
      const property = properties.get(name);
      if (!property) return [[name, value]];
      if (isNull(value) && !required.has(name) && !takesNull(property)) return [];
      return [[name, dropAddedNulls(value, property)]];
    }),
  };
}

/** @param nullable whether to allow null in addition */
function compile(schema: JsonNode, dialect: Dialect, nullable: boolean): JsonNode {
  const { closed, allRequired } = dialect;
  const required = requiredNames(schema);
  const properties = membersOf(member(schema, "properties"));
  const members = new Map<string, JsonNode>();
  const words: string[] = [];

  const enumerate = (values: readonly JsonNode[]) => {
    const all = nullable && !values.some(isNull) ? [...values, NULL] : values;
    if (dialect.enumerates(all)) members.set("enum", list(all));
    else words.push(`One of: ${all.map(stringifyJson).join(", ")}.`);
  };

  for (const [keyword, value] of membersOf(schema)) {
    if (keyword === "type") members.set(keyword, nullable ? withNull(value) : value);
    else if (keyword === "properties") {
      const compiled = properties.map(([name, property]): [string, JsonNode] => {
        const added = allRequired && !required.has(name) && !takesNull(property);
        return [name, compile(property, dialect, added)];
      });
      members.set(keyword, { kind: "object", members: compiled });
    } else if (keyword === "items") members.set(keyword, compile(value, dialect, false));
    else if (keyword === "enum") enumerate(value.kind === "array" ? value.items : []);
    else if (keyword === "const") {
      if (dialect.hasConst && !nullable) members.set(keyword, value);
      else enumerate([value]);
    } else if (keyword === "required" || keyword === "description" || dialect.keeps(keyword, value))
      members.set(keyword, value);
    else if (keyword === "additionalProperties" && closed) members.set(keyword, FALSE);
    else if (Object.hasOwn(RULE_TEXTS, keyword)) words.push(`${RULE_TEXTS[keyword]} ${stringifyJson(value)}.`);
  }
  if (isObjectType(schema)) {
    if (allRequired) {
      if (!members.has("properties")) members.set("properties", { kind: "object", members: [] });
      members.set("required", list(properties.map(([name]) => string(name))));
    }
    if (closed) members.set("additionalProperties", FALSE);
  }
  if (words.length > 0) {
    const description = members.get("description");
    if (description && isString(description)) words.unshift(JSON.parse(description.text));
    members.set("description", string(words.join(" ")));
  }
  return { kind: "object", members: [...members] };
}

/** Whether some object accepts properties that the schema does not name: it says so, or it names none. */
export function hasOpenObject(schema: JsonNode): boolean {
  return nodes(schema).some((node) => {
    const additional = member(node, "additionalProperties");
    if (additional) return !isFalse(additional);
    return isObjectType(node) && membersOf(member(node, "properties")).length === 0;
  });
}

/** A schema and all schemas nested in it. */
export function nodes(schema: JsonNode): JsonNode[] {
  const items = member(schema, "items");
  const properties = membersOf(member(schema, "properties")).flatMap(([, property]) => nodes(property));
  return [schema, ...properties, ...(items ? nodes(items) : [])];
}

const NULL: JsonNode = { kind: "scalar", text: "null" };
const FALSE: JsonNode = { kind: "scalar", text: "false" };

function list(items: readonly JsonNode[]): JsonNode {
  return { kind: "array", items: [...items] };
}

export function membersOf(node: JsonNode | undefined): [name: string, value: JsonNode][] {
  return node?.kind === "object" ? node.members : [];
}

export function member(node: JsonNode, name: string): JsonNode | undefined {
  return membersOf(node).find(([key]) => key === name)?.[1];
}

export function requiredNames(schema: JsonNode): Set<string> {
  const required = member(schema, "required");
  return new Set(
    required?.kind === "array" ? required.items.filter(isString).map((name) => JSON.parse(name.text)) : [],
  );
}

/** The names in `type`. */
function typesOf(schema: JsonNode): string[] {
  const type = member(schema, "type");
  const list = type?.kind === "array" ? type.items : type ? [type] : [];
  return list.filter(isString).map((name) => JSON.parse(name.text));
}

function isObjectType(schema: JsonNode): boolean {
  return typesOf(schema).includes("object");
}

function takesNull(schema: JsonNode): boolean {
  const values = member(schema, "enum");
  const constant = member(schema, "const");
  return (
    typesOf(schema).includes("null") &&
    (values?.kind !== "array" || values.items.some(isNull)) &&
    (constant === undefined || isNull(constant))
  );
}

function withNull(type: JsonNode): JsonNode {
  const list = type.kind === "array" ? type.items : [type];
  const name = string("null");
  return list.some((item) => isString(item) && JSON.parse(item.text) === "null")
    ? type
    : { kind: "array", items: [...list, name] };
}

type Scalar = Extract<JsonNode, { kind: "scalar" }>;

function string(text: string): Scalar {
  return { kind: "scalar", text: JSON.stringify(text) };
}

export function isString(node: JsonNode): node is Scalar {
  return node.kind === "scalar" && node.text.startsWith('"');
}

export function isNumber(node: JsonNode): node is Scalar {
  return node.kind === "scalar" && /^[-\d]/.test(node.text);
}

function isNull(node: JsonNode): boolean {
  return node.kind === "scalar" && node.text === "null";
}

function isFalse(node: JsonNode): boolean {
  return node.kind === "scalar" && node.text === "false";
}

export function isAtMostOne(node: JsonNode): boolean {
  return isNumber(node) && Number(node.text) <= 1;
}
