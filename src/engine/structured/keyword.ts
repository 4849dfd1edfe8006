import type { JsonNode } from "../../contract/json.ts";
import { type Decimal, decimalOf, isNumber } from "./decimal.ts";
import type { Pattern } from "./pattern.ts";
import { type Rule, stringOf } from "./rules.ts";

/** Thrown for what is no schema of JSON Schema 2020-12. */
export class NoSchema extends Error {}

/** What shows quickly that a value cannot fit a schema. */
export interface Marks {
  /** The types of its values. Undefined: any. */
  readonly types: ReadonlySet<string> | undefined;
  /** Keys of the only values that members of an object can have, by name. All of them are scalars. */
  readonly members: ReadonlyMap<string, ReadonlySet<string | undefined>>;
}

/** What the reader of a schema does for its keywords. */
export interface SchemaReader {
  /** The rule of a schema, which is read later: schemas can refer to themselves. */
  rule(schema: JsonNode): Rule;
  /** The rule of the schema at a JSON pointer. @throws NoSchema */
  target(pointer: string): Rule;
  /** The marks of a schema, or of the one that it refers to. */
  marks(schema: JsonNode): Marks;
  /** A regular expression. @throws NoSchema */
  pattern(text: string): Pattern;
  /** The rule of a keyword of a schema that is not checked. */
  skip(keyword: string, schema: JsonNode): Rule;
}

/** What a keyword demands. Undefined: nothing. @throws NoSchema for a value that it cannot have */
export type Keyword = (value: JsonNode, schema: JsonNode, reader: SchemaReader) => Rule | undefined;

// Readers of the values of keywords. @throws NoSchema for another kind of value

export function list(node: JsonNode): readonly JsonNode[] {
  if (node.kind !== "array") throw new NoSchema();
  return node.items;
}

export function members(node: JsonNode): readonly [string, JsonNode][] {
  if (node.kind !== "object") throw new NoSchema();
  return node.members;
}

export function text(node: JsonNode): string {
  const own = stringOf(node);
  if (own === undefined) throw new NoSchema();
  return own;
}

export const texts = (node: JsonNode): string[] => list(node).map(text);

export function number(node: JsonNode): Decimal {
  const own = decimalOf(node);
  if (!own) throw new NoSchema();
  return own;
}

/** A number of characters, items or properties. */
export function count(node: JsonNode): number {
  if (!isNumber(node)) throw new NoSchema();
  return Number(node.text);
}

export function truth(node: JsonNode): boolean {
  if (node.kind !== "scalar" || (node.text !== "true" && node.text !== "false")) throw new NoSchema();
  return node.text === "true";
}
