import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { MAX_BYTES, MAX_LENGTH, parseSchema, refuse, tooLarge } from "./check-schema.ts";
import { overlay, type Schema, union, withTypeOfValues } from "./merge-schemas.ts";
import { memberStep, nodeAt } from "./path.ts";

/** Most references and levels within each other. It bounds the stack. */
const MAX_DEPTH = 100;

/** Most text that is merged: a schema of 32 KiB can have it on several levels. It bounds time and memory. */
const MAX_MERGED = 64 * MAX_BYTES;

const RESOLVED = "more with its references resolved";

/**
 * Writes a JSON Schema with the keywords of the specification's table where they say the same, so that the schemas of
 * Pydantic and zod can be used:
 * - A `$ref` within the schema becomes the schema that it refers to, and `$defs` and `definitions` are dropped.
 * - `anyOf` of schemas with different types becomes one schema with a list of types; `allOf` of one becomes that one.
 * - `enum` and `const` get the types of their values; `additionalProperties` `{}` becomes true.
 *
 * A value is valid for the result exactly if it is valid for the schema. Descriptions and other annotations are kept.
 * What cannot be written so stays as it is; `checkSchema` then names it.
 * @param text the schema as the caller wrote it; returned unchanged if there is nothing to write otherwise
 * @param path of the schema in the request
 * @throws Failure `invalid_response_schema` for a schema that refers to itself or to nothing, or that is larger than
 *   32 KiB with its references resolved
 */
export function simplifySchema(text: string, path: string): string {
  if (text.length > MAX_LENGTH) return text;
  const root = parseSchema(text, path);
  const simplified = new Simplifier(root).simplify(root, path, 1);
  if (simplified === root) return text;
  // References to the same schema share its nodes, so the text can be much longer than what is in memory.
  if (lengthUpTo(MAX_BYTES, simplified) > MAX_BYTES) refuse(path, tooLarge(RESOLVED));
  return stringifyJson(simplified);
}

class Simplifier {
  readonly #root: JsonNode;
  /** Schemas that were referred to, so that the work does not grow with the number of references. */
  readonly #found = new Map<string, JsonNode>();
  /** References that are being resolved. */
  readonly #open = new Set<string>();
  /** Length of the text that may still be merged. */
  #left = MAX_MERGED;

  constructor(root: JsonNode) {
    this.#root = root;
  }

  /** @returns the same node if it stays as it is */
  simplify(node: JsonNode, path: string, depth: number): JsonNode {
    if (depth > MAX_DEPTH) refuse(path, `The schema has more than ${MAX_DEPTH} levels of references. Flatten it.`);
    if (node.kind !== "object") return node;
    const members = node.members
      .filter(([name]) => name !== "$defs" && name !== "definitions")
      .map(([name, value]): [string, JsonNode] => [name, this.#member(name, value, path, depth)]);
    const isSame =
      members.length === node.members.length && members.every(([, value], i) => value === node.members[i]?.[1]);
    return this.#merged(isSame ? node : { kind: "object", members }, path, depth);
  }

  #member(name: string, value: JsonNode, path: string, depth: number): JsonNode {
    switch (name) {
      case "properties": {
        if (value.kind !== "object") return value;
        const members = value.members.map(([property, schema]): [string, JsonNode] => [
          property,
          this.simplify(schema, `${path}.properties${memberStep(property)}`, depth + 1),
        ]);
        const isSame = members.every(([, schema], i) => schema === value.members[i]?.[1]);
        return isSame ? value : { kind: "object", members };
      }
      case "items":
        return this.simplify(value, `${path}.items`, depth + 1);
      case "anyOf":
      case "allOf": {
        if (value.kind !== "array") return value;
        const items = value.items.map((item, i) => this.simplify(item, `${path}.${name}[${i}]`, depth + 1));
        return items.every((item, i) => item === value.items[i]) ? value : { kind: "array", items };
      }
      case "additionalProperties":
        return value.kind === "object" && value.members.length === 0 ? TRUE : value;
      default:
        return value;
    }
  }

  /** Replaces one of `$ref`, `anyOf` and `allOf` by what it stands for, if the members beside it allow that. */
  #merged(schema: Schema, path: string, depth: number): Schema {
    for (const keyword of ["$ref", "anyOf", "allOf"]) {
      const value = member(schema, keyword);
      const base = value && this.#meaning(keyword, value, path, depth);
      const beside = schema.members.filter(([name]) => name !== keyword);
      const merged = base?.kind === "object" ? overlay(base, beside) : undefined;
      if (merged) return this.#merged(merged, path, depth);
    }
    return withTypeOfValues(schema);
  }

  #meaning(keyword: string, value: JsonNode, path: string, depth: number): JsonNode | undefined {
    const meant = keyword === "$ref" ? this.#target(value, path, depth) : value;
    if (!meant) return undefined;
    this.#left -= lengthUpTo(MAX_BYTES, meant);
    if (this.#left < 0) refuse(path, tooLarge(RESOLVED));
    if (keyword === "$ref") return meant;
    if (meant.kind !== "array") return undefined;
    if (keyword === "anyOf") return union(meant.items);
    return meant.items.length === 1 ? meant.items[0] : undefined;
  }

  /** @throws Failure for a reference that is open or leads nowhere */
  #target(reference: JsonNode, path: string, depth: number): JsonNode | undefined {
    const pointer: unknown = reference.kind === "scalar" ? JSON.parse(reference.text) : undefined;
    if (typeof pointer !== "string") return undefined;
    const found = this.#found.get(pointer);
    if (found) return found;
    if (this.#open.has(pointer))
      refuse(path, 'The "$ref" leads back to itself. Schemas that contain themselves are not supported.');
    const target = nodeAt(this.#root, pointer);
    if (!target) refuse(path, 'The "$ref" must name a schema in the same document, such as "#/$defs/Address".');
    this.#open.add(pointer);
    const simplified = this.simplify(target, path, depth + 1);
    this.#open.delete(pointer);
    this.#found.set(pointer, simplified);
    return simplified;
  }
}

const TRUE: JsonNode = { kind: "scalar", text: "true" };

/** The length of a node as compact JSON; any larger figure for one above `max`. */
function lengthUpTo(max: number, node: JsonNode): number {
  if (node.kind === "scalar") return node.text.length;
  let length = 2;
  const parts = node.kind === "array" ? node.items : node.members;
  for (const part of parts) {
    if (length > max) break;
    const [name, value] = Array.isArray(part) ? part : ["", part];
    length += name.length + 1 + lengthUpTo(max - length, value);
  }
  return length;
}
