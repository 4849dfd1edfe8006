import type { JsonNode } from "../../contract/json.ts";
import { decimalOf, isIntegral, isNumber } from "./decimal.ts";

/** The types of a scalar, the narrowest one last; none for an object or a list. */
export function typesOfValue(node: JsonNode): string[] {
  if (node.kind !== "scalar") return [];
  const number = decimalOf(node);
  if (number) return isIntegral(number) ? ["number", "integer"] : ["number"];
  const value: unknown = JSON.parse(node.text);
  return [value === null ? "null" : typeof value];
}

/** Whether a value has one of some types: a number without a fraction is also an `integer`. */
export function hasType(node: JsonNode, types: ReadonlySet<string>): boolean {
  if (node.kind !== "scalar") return types.has(node.kind);
  // Texts are seen at once, and short numbers. A decimal takes 1 µs.
  if (node.text.startsWith('"')) return types.has("string");
  if (types.has("number") && isNumber(node)) return true;
  if (/^-?\d{1,15}$/.test(node.text)) return types.has("integer");
  return typesOfValue(node).some((type) => types.has(type));
}
