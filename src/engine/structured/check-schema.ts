import { Failure } from "../../contract/failure.ts";
import { type JsonNode, member, parseJson, stringifyJson } from "../../contract/json.ts";
import { decimalOf, isIntegral } from "./decimal.ts";
import { ANNOTATIONS } from "./merge-schemas.ts";
import { memberStep, quoted } from "./path.ts";
import { typesOfValue } from "./value-types.ts";

/** Size limit of a schema as compact JSON, in UTF-8 bytes. */
export const MAX_BYTES = 32_768;
/** Length limit of a schema as sent, with its white space, in UTF-16 units. It bounds the time to parse. */
export const MAX_LENGTH = 1_048_576;
/** Depth limit: the root is level 1, each property and each `items` adds one. */
const MAX_LEVELS = 10;

const SIMPLE_TYPES = ["string", "number", "integer", "boolean", "null"];
const TYPES = ["object", "array", ...SIMPLE_TYPES];
const DIALECT = /^https?:\/\/json-schema\.org\/(draft\/2020-12|draft-07)\/schema#?$/;

/** One node of the schema with the path that a failure names. */
interface Place {
  node: JsonNode;
  path: string;
  level: number;
  /** The declared types. */
  types: string[];
}

/** The schema in a request of the service's own formats. */
const PATH = "response_format.schema";

/**
 * Accepts exactly the keywords of the specification's "Response schema", and rejects the first violation in the order
 * of the text. Rules that the specification leaves open:
 * - A keyword must fit a declared type: `minLength` is valid with `["string", "null"]` and invalid with `number`.
 * - Bounds are compared by value: `1.0` and `1e2` are integers. Bounds that exclude every value (`minLength` above
 *   `maxLength`) are valid, as in JSON Schema. An `enum` that is empty or has a value of another type, and a repeated
 *   type, are invalid.
 * - `true` and `false` are not valid as schemas. Annotations can have any value.
 * - Of members with the same name the last counts, as everywhere in a request body.
 * - The text has at most 1 MiB as sent.
 * @param text the schema as the caller wrote it
 * @throws Failure `invalid_response_schema`: `field` is the path to the node, the message names the keyword.
 */
export function checkSchema(text: string): void {
  checkNode({ node: readSchema(text, PATH), path: PATH, level: 1 });
}

/**
 * Reads a schema that is within the limits.
 * @param path of the schema in the request
 * @throws Failure for another type than an object, too
 */
export function readSchema(text: string, path: string): JsonNode {
  if (text.length > MAX_LENGTH) refuse(path, tooLarge(`${text.length} characters with its spaces`));
  const node = parseSchema(text, path);
  if (node.kind === "object") {
    const bytes = new TextEncoder().encode(stringifyJson(node)).length;
    if (bytes > MAX_BYTES) refuse(path, tooLarge(`${bytes} bytes as compact JSON`));
    const type = member(node, "type");
    if (type && literal(type) !== "object")
      refuse(path, 'The type of the root must be "object". Wrap the answer in one.');
  }
  return node;
}

/** @throws Failure naming `path` */
export function parseSchema(text: string, path: string): JsonNode {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return refuse(path, `The schema must be one JSON object. ${error.message}`);
  }
}

function checkNode(given: Omit<Place, "types">): void {
  const { node, path, level } = given;
  checkLevel(level, path);
  if (node.kind !== "object")
    refuse(path, 'A schema must be an object that declares its "type", such as {"type":"string"}.');
  // Checked before the type, because a node with an unsupported "$ref" or "anyOf" often has no type.
  for (const [keyword] of node.members) {
    if (!KEYWORDS.has(keyword)) refuse(path, notSupported(keyword));
  }
  const place: Place = { ...given, types: readTypes(node, path) };
  for (const [keyword, value] of node.members) KEYWORDS.get(keyword)?.(value, keyword, place);
  if (place.types.includes("array") && !member(node, "items")) {
    refuse(path, 'An array must declare "items", the schema of its elements.');
  }
}

type Check = (value: JsonNode, keyword: string, place: Place) => void;

/** Accepts any value. */
const annotation: Check = () => {};

const KEYWORDS: ReadonlyMap<string, Check> = new Map<string, Check>([
  // readTypes checks it before all other keywords.
  ["type", annotation],
  ["properties", forTypes(["object"], checkProperties)],
  ["required", forTypes(["object"], checkRequired)],
  ["additionalProperties", forTypes(["object"], checkAdditionalProperties)],
  ["items", forTypes(["array"], checkItems)],
  ["enum", checkEnum],
  ["const", checkConst],
  ["minLength", forTypes(["string"], checkLength)],
  ["maxLength", forTypes(["string"], checkLength)],
  ["minimum", forTypes(["number", "integer"], checkBound)],
  ["maximum", forTypes(["number", "integer"], checkBound)],
  ["minItems", forTypes(["array"], checkLength)],
  ["maxItems", forTypes(["array"], checkLength)],
  ...Array.from(ANNOTATIONS, (keyword): [string, Check] => [keyword, annotation]),
  ["$schema", checkDialect],
]);

function readTypes(node: JsonNode, path: string): string[] {
  const type = member(node, "type");
  if (!type) refuse(path, `"type" is missing. Declare one of ${TYPES.join(", ")}.`);
  if (type.kind !== "array") {
    const name = literal(type);
    if (typeof name === "string" && TYPES.includes(name)) return [name];
    refuse(path, `"type" must be one of ${TYPES.join(", ")}, or a list of simple types.`);
  }
  const names = type.items.map(literal);
  const isListed = (name: unknown): name is string => typeof name === "string" && SIMPLE_TYPES.includes(name);
  if (names.length > 0 && names.every(isListed) && new Set(names).size === names.length) return names;
  refuse(path, `A list as "type" must name some of ${SIMPLE_TYPES.join(", ")}, each once.`);
}

function checkItems(node: JsonNode, _: string, { path, level, ...place }: Place): void {
  checkNode({ ...place, node, path: `${path}.items`, level: level + 1 });
}

function checkProperties(value: JsonNode, _: string, { path, level, ...place }: Place): void {
  if (value.kind !== "object") refuse(path, '"properties" must be an object of name and schema.');
  for (const [name, node] of value.members)
    checkNode({ ...place, node, path: `${path}.properties${memberStep(name)}`, level: level + 1 });
}

function checkRequired(value: JsonNode, _: string, { node, path }: Place): void {
  if (value.kind !== "array") refuse(path, '"required" must be a list of property names.');
  const properties = member(node, "properties");
  const unnamed = new Set(properties?.kind === "object" ? properties.members.map(([name]) => name) : []);
  for (const item of value.items) {
    const name = literal(item);
    if (typeof name !== "string") refuse(path, '"required" must hold names only, as strings.');
    if (!unnamed.delete(name)) {
      refuse(path, `"required" names ${quoted(name)}, which "properties" does not declare, or names it twice.`);
    }
  }
}

function checkAdditionalProperties(value: JsonNode, _: string, { path }: Place): void {
  if (typeof literal(value) !== "boolean")
    refuse(path, '"additionalProperties" must be true or false; a schema is not supported.');
}

function checkEnum(value: JsonNode, keyword: string, place: Place): void {
  if (value.kind !== "array" || value.items.length === 0)
    refuse(place.path, '"enum" must be a list of at least one value.');
  for (const item of value.items) checkConst(item, keyword, place);
}

function checkConst(value: JsonNode, keyword: string, { path, types }: Place): void {
  if (typesOfValue(value).some((type) => types.includes(type))) return;
  refuse(
    path,
    `"${keyword}" takes strings, numbers, booleans and null that fit the declared type, ${types.join(" or ")}.`,
  );
}

function checkLength(value: JsonNode, keyword: string, { path }: Place): void {
  const number = decimalOf(value);
  if (!number || number.negative || !isIntegral(number)) refuse(path, `"${keyword}" must be an integer of at least 0.`);
}

function checkBound(value: JsonNode, keyword: string, { path }: Place): void {
  if (!decimalOf(value)) refuse(path, `"${keyword}" must be a number.`);
}

function checkDialect(value: JsonNode, keyword: string, { path, level }: Place): void {
  if (level > 1) refuse(path, `"${keyword}" may stand at the root only. Leave it out here.`);
  const uri = literal(value);
  if (typeof uri === "string" && DIALECT.test(uri)) return;
  refuse(
    path,
    `"${keyword}" must name JSON Schema 2020-12 (https://json-schema.org/draft/2020-12/schema) or draft-07.`,
  );
}

/** Adds the requirement that one of these types is declared. */
function forTypes(allowed: readonly string[], check: Check): Check {
  return (value, keyword, place) => {
    if (!allowed.some((type) => place.types.includes(type))) {
      refuse(
        place.path,
        `"${keyword}" belongs to type ${allowed.join(" or ")}, but ${place.types.join(", ")} is declared.`,
      );
    }
    check(value, keyword, place);
  };
}

/** @param level of a node, which is at `path` */
export function checkLevel(level: number, path: string): void {
  if (level > MAX_LEVELS) refuse(path, `The schema is nested deeper than ${MAX_LEVELS} levels. Flatten it.`);
}

export function notSupported(keyword: string): string {
  return `The keyword ${quoted(keyword)} is not supported. Leave it out, or say in "description" what is wanted.`;
}

/** The value of a scalar; undefined for an object or a list. */
function literal(node: JsonNode): string | number | boolean | null | undefined {
  return node.kind === "scalar" ? JSON.parse(node.text) : undefined;
}

function tooLarge(size: string): string {
  const limit = `${MAX_BYTES} bytes (32 KiB) as compact JSON`;
  return `The schema is too large: it has ${size}, and may have ${limit}. Shorten it.`;
}

export function refuse(field: string, message: string): never {
  throw new Failure("invalid_response_schema", { field, message });
}
