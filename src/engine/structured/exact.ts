import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { compareDecimals, type Decimal, decimalOf, isIntegral } from "./decimal.ts";
import { memberStep } from "./path.ts";

/**
 * Checks the numbers of an answer by their exact values, after ajv has found it valid with rounded ones. Rounding
 * keeps the order of numbers, so a valid number never fails; but two different numbers can become equal, and a
 * fraction an integer.
 * @param schema a schema that `checkSchema` accepted
 * @returns one message for each error
 */
export function* exactErrors(schema: JsonNode, answer: JsonNode, path = "$"): Generator<string, void> {
  if (answer.kind === "object") {
    const properties = member(schema, "properties");
    const schemas = new Map(properties?.kind === "object" ? properties.members : []);
    for (const [name, value] of answer.members) {
      const memberSchema = schemas.get(name);
      if (memberSchema) yield* exactErrors(memberSchema, value, path + memberStep(name));
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
