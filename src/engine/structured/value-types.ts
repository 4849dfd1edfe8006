import type { JsonNode } from "../../contract/json.ts";
import { decimalOf, isIntegral } from "./decimal.ts";

/** The types of a scalar, the narrowest one last; none for an object or a list. */
export function typesOfValue(node: JsonNode): string[] {
  if (node.kind !== "scalar") return [];
  const number = decimalOf(node);
  if (number) return isIntegral(number) ? ["number", "integer"] : ["number"];
  const value: unknown = JSON.parse(node.text);
  return [value === null ? "null" : typeof value];
}
