import { type JsonNode, member, parseJson, stringifyJson } from "../../contract/json.ts";
import { mapParts, partsOf, targetOf } from "../../contract/schema-parts.ts";
import { MAX_BYTES, MAX_LENGTH } from "./check-schema.ts";
import { DEFINITIONS, excludeEachOther, overlay, type Schema, union, withTypeOfValues } from "./merge-schemas.ts";

/** Most references and levels within each other. It bounds the stack. */
const MAX_DEPTH = 100;

/** Most text that is merged: a schema of 32 KiB can have it on several levels. It bounds time and memory. */
const MAX_MERGED = 16 * MAX_BYTES;

/** Thrown for a schema whose references cannot be resolved. */
class Unresolved extends Error {}

/**
 * Writes a JSON Schema with the keywords of the specification's table where they say the same, because vendors take
 * these everywhere:
 * - A `$ref` within the schema becomes the schema that it refers to, and `$defs` and `definitions` are dropped.
 * - `anyOf` of schemas with different types becomes one schema with a list of types; `allOf` of one becomes that one.
 * - `oneOf` becomes `anyOf` if no value fits two of its schemas.
 * - `enum` and `const` get the types of their values; `additionalProperties` `{}` becomes true.
 *
 * A value is valid for the result exactly if it is valid for the schema. Descriptions and other annotations are kept.
 * What cannot be written so stays as it is. Where a reference cannot be resolved, because it leads back to itself or to
 * nothing, or because the result would be larger than 32 KiB, only one at the root is.
 * @param text the schema as the caller wrote it; returned unchanged if there is nothing to write otherwise
 */
export function simplifySchema(text: string): string {
  const root = text.length > MAX_LENGTH ? undefined : parsed(text);
  if (!root) return text;
  const simplified = resolved(root);
  return simplified === root ? text : stringifyJson(simplified);
}

function parsed(text: string): JsonNode | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

function resolved(root: JsonNode): JsonNode {
  try {
    const simplified = new Simplifier(root).simplify(root, 1);
    // References to the same schema share its nodes, so the text can be much longer than what is in memory.
    if (simplified === root || lengthUpTo(MAX_BYTES, simplified) > MAX_BYTES) return withOwnRoot(root);
    return hasReference(simplified) ? withOwnRoot(root) : simplified;
  } catch (error) {
    if (!(error instanceof Unresolved)) throw error;
    return withOwnRoot(root);
  }
}

function hasReference(node: JsonNode): boolean {
  return member(node, "$ref") !== undefined || partsOf(node).some((part) => hasReference(part.node));
}

/** A schema whose root is no reference: Pydantic writes one to a model that contains itself. */
function withOwnRoot(root: JsonNode): JsonNode {
  const target = targetOf(root, root);
  if (root.kind !== "object" || target?.kind !== "object") return root;
  return (
    overlay(
      target,
      root.members.filter(([name]) => name !== "$ref"),
    ) ?? root
  );
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
  simplify(node: JsonNode, depth: number): JsonNode {
    if (depth > MAX_DEPTH) throw new Unresolved();
    if (node.kind !== "object") return node;
    const members = node.members.filter(([name]) => !DEFINITIONS.has(name));
    const used: Schema = members.length === node.members.length ? node : { kind: "object", members };
    const mapped = mapParts(used, (part) =>
      part.keyword === "additionalProperties" && isEmpty(part.node) ? TRUE : this.simplify(part.node, depth + 1),
    );
    return mapped.kind === "object" ? this.#merged(mapped, depth) : mapped;
  }

  /** Replaces a reference or a choice by what it stands for, if the members beside it allow that. */
  #merged(schema: Schema, depth: number): Schema {
    for (const keyword of ["$ref", "oneOf", "anyOf", "allOf"]) {
      const value = member(schema, keyword);
      const base = value && this.#meaning(keyword, value, schema, depth);
      // What it says, the branches say.
      const note = keyword === "oneOf" ? "discriminator" : undefined;
      const beside = schema.members.filter(([name]) => name !== keyword && name !== note);
      const merged = base?.kind === "object" ? overlay(base, beside) : undefined;
      if (merged) return this.#merged(merged, depth);
    }
    return withTypeOfValues(schema);
  }

  #meaning(keyword: string, value: JsonNode, schema: Schema, depth: number): JsonNode | undefined {
    const meant = keyword === "$ref" ? this.#target(value, schema, depth) : value;
    this.#left -= lengthUpTo(MAX_BYTES, meant);
    if (this.#left < 0) throw new Unresolved();
    if (keyword === "$ref") return meant;
    if (meant.kind !== "array") return undefined;
    if (keyword === "anyOf") return union(meant.items);
    if (keyword === "oneOf")
      return excludeEachOther(meant.items) ? { kind: "object", members: [["anyOf", meant]] } : undefined;
    return meant.items.length === 1 ? meant.items[0] : undefined;
  }

  /** @throws Unresolved for a reference that is open or leads nowhere */
  #target(reference: JsonNode, schema: Schema, depth: number): JsonNode {
    const pointer = stringifyJson(reference);
    const found = this.#found.get(pointer);
    if (found) return found;
    const target = targetOf(schema, this.#root);
    if (!target || this.#open.has(pointer)) throw new Unresolved();
    this.#open.add(pointer);
    const simplified = this.simplify(target, depth + 1);
    this.#open.delete(pointer);
    this.#found.set(pointer, simplified);
    return simplified;
  }
}

function isEmpty(node: JsonNode): boolean {
  return node.kind === "object" && node.members.length === 0;
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
