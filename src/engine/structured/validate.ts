import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { type JsonNode, parseJson, stringifyJson } from "../../contract/json.ts";
import { TextCache } from "../../contract/text-cache.ts";
import { toDouble } from "./decimal.ts";
import { exactErrors } from "./exact.ts";
import { memberStep, quoted } from "./path.ts";

/**
 * Validates an answer. `text` is the answer as compact JSON with its literals unchanged and without repeated members.
 * `errors` are at most ten messages. They quote the schema and member names of the answer, so only the model may see
 * them.
 */
export type Validator = (answer: string) => { ok: true; text: string } | { ok: false; errors: string[] };

export interface Validators {
  /** @param schema the text of a schema that `checkSchema` accepted */
  get(schema: string): Validator;
}

/** Most text of schemas in the cache, in UTF-16 units. A compiled schema takes about fifteen times its text. */
const MAX_CACHED_LENGTH = 1_048_576;

const MAX_ERRORS = 10;

/**
 * Compiles a validator for each schema and caches it. The least recently used are evicted.
 * @param max most validators in the cache
 */
export function createValidators(max = 256): Validators {
  const cache = new TextCache<Validator>({ entries: max, length: MAX_CACHED_LENGTH });
  return { get: (schema) => cache.get(schema, compile) };
}

function compile(schemaText: string): Validator {
  const schema = parseJson(schemaText);
  // A new instance for each schema, because ajv keeps every schema that it has compiled. The optimizer doubles the
  // time to compile and gains nothing for a schema that is used a few times.
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateSchema: false,
    meta: false,
    code: { optimize: false },
  });
  const numbers: Numbers = { exact: true };
  const validate = ajv.compile(toAjvSchema(schema, numbers));
  return (text) => check(text, schema, validate, numbers.exact);
}

function check(
  text: string,
  schema: JsonNode,
  validate: ValidateFunction,
  exactSchema: boolean,
): ReturnType<Validator> {
  let answer: JsonNode;
  try {
    answer = parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, errors: [error.message] };
  }
  if (answer.kind !== "object") return { ok: false, errors: ["The answer must be one JSON object."] };
  const numbers: Numbers = { exact: exactSchema };
  if (!validate(toPlain(answer, numbers))) {
    const errors = (validate.errors ?? []).slice(0, MAX_ERRORS).map((error) => describe(error, exactSchema));
    validate.errors = null;
    return { ok: false, errors };
  }
  const errors = numbers.exact ? [] : exactErrors(schema, answer).take(MAX_ERRORS).toArray();
  return errors.length > 0 ? { ok: false, errors } : { ok: true, text: stringifyJson(answer) };
}

/** Whether every number so far is exactly a double. */
interface Numbers {
  exact: boolean;
}

// Member names go to ajv as JSON strings, in schema and answer alike, because some names are special: ajv ignores
// `__proto__` and fails on a lone surrogate, objects inherit some names and reorder numeric ones.
const toAjvName = (name: string): string => JSON.stringify(name);
const fromAjvName = (name: string): string => JSON.parse(name);

/** The schema for ajv: the validating keywords only, because ajv interprets some annotations and `$schema`. */
function toAjvSchema(schema: JsonNode, numbers: Numbers): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  if (schema.kind !== "object") return result;
  for (const [keyword, value] of schema.members) {
    switch (keyword) {
      case "properties":
        result[keyword] =
          value.kind === "object" &&
          Object.fromEntries(value.members.map(([name, child]) => [toAjvName(name), toAjvSchema(child, numbers)]));
        break;
      case "required":
        result[keyword] =
          value.kind === "array" && value.items.map((name) => toAjvName(String(toPlain(name, numbers))));
        break;
      case "items":
        result[keyword] = toAjvSchema(value, numbers);
        break;
      case "type":
      case "additionalProperties":
      case "enum":
      case "const":
      case "minLength":
      case "maxLength":
      case "minimum":
      case "maximum":
      case "minItems":
      case "maxItems":
        result[keyword] = toPlain(value, numbers);
    }
  }
  return result;
}

/** A value for ajv. Sets `numbers.exact` to false at the first number that is not exactly a double. */
function toPlain(node: JsonNode, numbers: Numbers): unknown {
  switch (node.kind) {
    case "object":
      return Object.fromEntries(node.members.map(([name, value]) => [toAjvName(name), toPlain(value, numbers)]));
    case "array":
      return node.items.map((item) => toPlain(item, numbers));
    case "scalar": {
      const value: unknown = JSON.parse(node.text);
      if (typeof value !== "number") return value;
      const double = toDouble(node.text);
      numbers.exact &&= double.exact;
      return double.value;
    }
  }
}

/** The message for an error of ajv, such as `$.items[0].price: must be number`. */
function describe({ instancePath, keyword, params, message }: ErrorObject, exactSchema: boolean): string {
  let path = "$";
  for (const step of instancePath.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    path += step.startsWith('"') ? memberStep(fromAjvName(name)) : `[${name}]`;
  }
  return `${path}: ${expectation()}`;

  function expectation(): string {
    switch (keyword) {
      case "required":
        return `must have the property ${quoted(fromAjvName(params.missingProperty))}`;
      case "additionalProperties":
        return `must not have the property ${quoted(fromAjvName(params.additionalProperty))}`;
      case "enum":
        return exactSchema
          ? `must be one of ${shortened(params.allowedValues)}`
          : 'must be one of the values of "enum"';
      case "const":
        return exactSchema ? `must be ${shortened(params.allowedValue)}` : 'must be the value of "const"';
      default:
        return message ?? `must satisfy "${keyword}"`;
    }
  }
}

function shortened(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
