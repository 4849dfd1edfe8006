import type { JsonNode } from "../../contract/json.ts";
import { canonicalNumber } from "./number.ts";

type Scalar = Extract<JsonNode, { kind: "scalar" }>;

/** Length above which a string is free text, which is not voted on, in UTF-16 units. */
const FREE_TEXT = 60;

/**
 * Key by which JSON values are compared: numbers by value, also in strings with separators or a currency; strings
 * without case, Unicode width and punctuation at the ends. Values agree when their keys are equal.
 */
export function valueKey(node: Scalar): string {
  if (!node.text.startsWith('"')) return canonicalNumber(node.text) ?? node.text;
  const text: string = JSON.parse(node.text);
  const normalized = text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/\s+/g, " ")
    .replace(/^[\s"'`*]+/, "")
    // A run of such characters is read once, from its beginning.
    .replace(/(?<![\s"'`*.,;:!?])[\s"'`*.,;:!?]+$/, "");
  // Only strings without a unit are read as numbers, because the unit may be the difference between two strings.
  return (/^\D?[\d., ]+$/.test(normalized) ? canonicalNumber(normalized) : undefined) ?? `"${normalized}`;
}

/** Whether a value is a string too long to vote on. */
export function isFreeText(node: Scalar): boolean {
  return node.text.startsWith('"') && node.text.length > FREE_TEXT + 2;
}
