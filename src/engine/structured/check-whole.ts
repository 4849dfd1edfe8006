import { type JsonNode, member } from "../../contract/json.ts";
import { partsOf, type SchemaPart, targetOf } from "../../contract/schema-parts.ts";
import { checkLevel, notSupported, readSchema, refuse } from "./check-schema.ts";
import { KEYWORDS, prepareSchema } from "./json-schema.ts";
import { NoSchema } from "./keyword.ts";
import { ANNOTATIONS, DEFINITIONS } from "./merge-schemas.ts";
import { partSteps, quoted } from "./path.ts";
import { MAX_PARTS, MAX_PATTERN } from "./patterns.ts";
import { stringOf } from "./rules.ts";

/** Keywords that have no rule of their own. `discriminator` is OpenAPI's: a note beside `oneOf`. */
const OTHERS: ReadonlySet<string> = new Set([
  ...ANNOTATIONS,
  ...DEFINITIONS,
  ...["then", "else", "minContains", "maxContains", "nullable", "discriminator"],
]);

/** Parts that are applied to the same value as the schema that they stand in, or to none. They add no level. */
const IN_PLACE: ReadonlySet<string> = new Set([
  ...DEFINITIONS,
  ...["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"],
]);

/** Most schemas within each other that are applied to one value. */
const MAX_IN_PLACE = 100;

/**
 * Accepts each JSON Schema of an object against which an answer can be checked as a whole: with all keywords of
 * JSON Schema 2020-12 that are checked, and no unknown one. The limits of size and levels are those of the
 * specification.
 * @param path of the schema in the request
 * @throws Failure `invalid_response_schema`: `field` is the path to the node, the message names the keyword.
 */
export function checkWhole(text: string, path: string): void {
  const root = readSchema(text, path);
  const type = member(root, "type");
  if (root.kind === "object" && type?.kind !== "scalar")
    refuse(path, 'The root must declare "type": "object". Wrap the answer in an object.');
  checkNodes(root, path, 1);
  const unchecked = uncheckedIn(root, path);
  checkKeywords(root, path, unchecked);
  // It is in a place that no keyword says to be a schema, and a reference leads there.
  for (const keyword of unchecked.keys()) refuse(path, notSupported(keyword));
  checkLoops(root, root, path, new Set());
}

function uncheckedIn(root: JsonNode, path: string): ReadonlyMap<string, JsonNode> {
  try {
    return prepareSchema(root).unchecked;
  } catch (error) {
    if (!(error instanceof NoSchema)) throw error;
    return refuse(path, 'A "$ref" leads to what is no schema.');
  }
}

function checkNodes(node: JsonNode, path: string, level: number): void {
  checkLevel(level, path);
  if (node.kind === "scalar" && (node.text === "true" || node.text === "false")) return;
  if (node.kind !== "object") refuse(path, 'A schema must be an object, such as {"type":"string"}.');
  for (const [keyword] of node.members)
    if (!KEYWORDS.has(keyword) && !OTHERS.has(keyword)) refuse(path, notSupported(keyword));
  checkRequired(node, path);
  for (const part of partsOf(node)) checkNodes(part.node, pathOf(part, path), level + (isInPlace(part) ? 0 : 1));
}

/** Refuses what is most likely a slip: a closed object that requires a property which it does not declare. */
function checkRequired(node: JsonNode, path: string): void {
  const [required, properties, others] = ["required", "properties", "additionalProperties"].map((name) =>
    member(node, name),
  );
  if (required?.kind !== "array" || others?.kind !== "scalar" || others.text !== "false") return;
  const declared = new Set(properties?.kind === "object" ? properties.members.map(([name]) => name) : []);
  const unknown = required.items.map(stringOf).find((name) => name !== undefined && !declared.has(name));
  if (unknown !== undefined && !member(node, "patternProperties"))
    refuse(path, `"required" names ${quoted(unknown)}, which "properties" does not declare.`);
}

/** @param unchecked keywords, each with the first node in which it is not checked */
function checkKeywords(node: JsonNode, path: string, unchecked: ReadonlyMap<string, JsonNode>): void {
  if (node.kind !== "object") return;
  for (const [keyword] of node.members) if (unchecked.get(keyword) === node) refuse(path, problemOf(keyword));
  for (const part of partsOf(node)) checkKeywords(part.node, pathOf(part, path), unchecked);
}

function problemOf(keyword: string): string {
  switch (keyword) {
    case "$ref":
      return 'The "$ref" must name a schema in the same document, such as "#/$defs/Address".';
    case "pattern":
    case "patternProperties":
      return (
        `"${keyword}" must have regular expressions that JavaScript can read, of at most ${MAX_PATTERN} characters, ` +
        `without references such as \\1. All of a schema may have ${MAX_PARTS} parts, where a{3} counts as three.`
      );
    default:
      return KEYWORDS.has(keyword)
        ? `The keyword ${quoted(keyword)} has a value that JSON Schema 2020-12 does not allow.`
        : notSupported(keyword);
  }
}

/**
 * Refuses a schema that is applied to the same value again by its own rules, so that no check would end.
 * @param done schemas that end
 */
function checkLoops(node: JsonNode, root: JsonNode, path: string, done: Set<JsonNode>): void {
  const visit = (schema: JsonNode, depth: number): void => {
    if (done.has(schema)) return;
    if (depth > MAX_IN_PLACE)
      refuse(path, 'A "$ref" leads back to itself without a property or an element in between, or is too far away.');
    const inner = partsOf(schema).filter((part) => isInPlace(part) && !DEFINITIONS.has(part.keyword));
    const target = targetOf(schema, root);
    for (const next of [...inner.map((part) => part.node), ...(target ? [target] : [])]) visit(next, depth + 1);
    done.add(schema);
  };
  visit(node, 0);
  for (const part of partsOf(node)) checkLoops(part.node, root, pathOf(part, path), done);
}

function isInPlace({ keyword }: SchemaPart): boolean {
  return IN_PLACE.has(keyword);
}

function pathOf(part: SchemaPart, path: string): string {
  return `${path}${partSteps(part)}`;
}
