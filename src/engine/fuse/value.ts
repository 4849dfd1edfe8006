import type { JsonNode } from "../../json.ts";
import { canonicalNumber } from "./number.ts";

type Scalar = Extract<JsonNode, { kind: "scalar" }>;

/** Length from which a string is free text, which is told in one voice rather than voted on, in UTF-16 units. */
const FREE_TEXT = 60;

/**
 * What a value says, whatever its spelling: numbers by value, also inside strings with their separators or currency; strings without case, width and
 * punctuation at their ends. Values agree when their keys are equal.
 */
export function valueKey(node: Scalar): string {
  if (!node.text.startsWith('"')) return canonicalNumber(node.text) ?? node.text;
  const text: string = JSON.parse(node.text);
  const plain = text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/\s+/g, " ")
    .replace(/^[\s"'`*]+|[\s"'`*.,;:!?]+$/g, "");
  // A unit may be what tells two texts apart, so only bare figures are read as numbers.
  return (/^\D?[\d., ]+$/.test(plain) ? canonicalNumber(plain) : undefined) ?? `"${plain}`;
}

export function isFreeText(node: Scalar): boolean {
  return node.text.startsWith('"') && node.text.length > FREE_TEXT + 2;
}
