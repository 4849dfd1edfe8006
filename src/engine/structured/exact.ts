import { type JsonNode, member, stringifyJson } from "../../json.ts";
import { compareDecimals, type Decimal, decimalOf, isIntegral } from "./decimal.ts";
import { memberStep } from "./path.ts";

/**
 * What is wrong with the numbers of an answer, by their exact values, where it was found valid with the nearest doubles in
 * their place. Rounding keeps the order of numbers, so nothing was refused wrongly; but two numbers may have been taken for
 * the same one, and a fraction for an integer.
 * @param schema A schema that `checkSchema` accepted.
 */
export function* exactErrors(schema: JsonNode, answer: JsonNode, path = "$"): Generator<string, void> {
  if (answer.kind === "object") {
    const properties = member(schema, "properties");
    const schemas = new Map(properties?.kind === "object" ? properties.members : []);
    for (const [name, value] of answer.members) {
      const own = schemas.get(name);
      if (own) yield* exactErrors(own, value, path + memberStep(name));
    }
  } else if (answer.kind === "array") {
    const items = member(schema, "items");
    for (const [index, item] of answer.items.entries()) if (items) yield* exactErrors(items, item, `${path}[${index}]`);
  } else {
    const number = decimalOf(answer);
    if (number) for (const error of numberErrors(schema, number)) yield `${path}: ${error}`;
  }
}

function* numberErrors(schema: JsonNode, number: Decimal): Generator<string, void> {
  const types = member(schema, "type");
  const isFractionAllowed = types !== undefined && stringifyJson(types).includes('"number"');
  if (!isFractionAllowed && !isIntegral(number)) yield "must be integer";

  const order = (node: JsonNode | undefined) => {
    const other = node && decimalOf(node);
    return other && compareDecimals(number, other);
  };
  if ((order(member(schema, "minimum")) ?? 0) < 0) yield "must not be below the minimum";
  if ((order(member(schema, "maximum")) ?? 0) > 0) yield "must not be above the maximum";
  const constant = member(schema, "const");
  if (constant && order(constant) !== 0) yield 'must be the value of "const"';
  const values = member(schema, "enum");
  if (values?.kind === "array" && !values.items.some((value) => order(value) === 0)) {
    yield 'must be one of the values of "enum"';
  }
}
