import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { type JsonNode, parseJson, stringifyJson } from "../../json.ts";
import { toDouble } from "./decimal.ts";
import { exactErrors } from "./exact.ts";
import { memberStep, quoted } from "./path.ts";

/**
 * Judges an answer. `text` is the answer as compact JSON with its own literals, one member per name; `errors` say for at
 * most ten places what is expected there. They quote the schema and names of the answer, so they are for the model only.
 */
export type Validator = (answer: string) => { ok: true; text: string } | { ok: false; errors: string[] };

export interface Validators {
  /** @param schema A schema that `checkSchema` accepted, as text. */
  get(schema: string): Validator;
}

/** Most text of schemas in the cache, in UTF-16 units. A compiled schema holds about fifteen times its text. */
const MAX_CACHED_LENGTH = 1_048_576;

const MAX_ERRORS = 10;

/**
 * Validators by schema, compiled once. The least recently used are dropped.
 * @param max Most validators that are kept.
 */
export function createValidators(max = 256): Validators {
  const cache = new Map<string, Validator>();
  let length = 0;

  const drop = (schema: string) => {
    if (cache.delete(schema)) length -= schema.length;
  };
  return {
    get(schema) {
      const validator = cache.get(schema) ?? compile(schema);
      drop(schema);
      cache.set(schema, validator);
      length += schema.length;
      for (const oldest of cache.keys()) {
        if (cache.size <= max && length <= MAX_CACHED_LENGTH) break;
        drop(oldest);
      }
      return validator;
    },
  };
}

function compile(schemaText: string): Validator {
  const schema = parseJson(schemaText);
  // An instance of its own, because ajv keeps every schema it has compiled. A common schema compiles in 1 ms, one of 32 KiB
  // in 60 ms to 200 ms; with ajv's optimizer, which gains nothing for a schema used a few times, it takes twice as long.
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateSchema: false,
    meta: false,
    code: { optimize: false },
  });
  const numbers: Numbers = { exact: true };
  const validate = ajv.compile(toAjvSchema(schema, numbers));
  return (text) => judge(text, schema, validate, numbers.exact);
}

function judge(
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

/** Whether every number so far is told apart from every other by its double. */
interface Numbers {
  exact: boolean;
}

// Names go to ajv as JSON strings, in schema and answer alike: it overlooks `__proto__` and fails on half a surrogate pair,
// objects have some names by nature, and reorder others. In quotes, no name is special.
const toAjvName = (name: string): string => JSON.stringify(name);
const fromAjvName = (name: string): string => JSON.parse(name);

/** The schema for ajv: its validating keywords only, so that neither notes nor `$schema` can mean anything to it. */
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

/** A value for ajv. Notes in `numbers` a number that is not exact. */
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

/** An error of ajv's in words, such as `$.items[0].price: must be number`. */
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
