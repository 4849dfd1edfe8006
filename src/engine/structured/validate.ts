import { type JsonNode, parseJson, stringifyJson } from "../../contract/json.ts";
import { TextCache } from "../../contract/text-cache.ts";
import { type Effort, Exhausted, LooseEffort } from "./effort.ts";
import { prepareSchema } from "./json-schema.ts";
import { Check, type Rule } from "./rules.ts";

/**
 * Validates an answer. `text` is the answer as compact JSON with its literals unchanged and without repeated members.
 * `errors` are at most ten messages. They quote the schema and member names of the answer, so only the model may see
 * them.
 */
export type Validator = (answer: string) => { ok: true; text: string } | { ok: false; errors: readonly string[] };

export interface Validators {
  /** @param schema the text of a schema that `checkSchema` or `checkWhole` accepted */
  get(schema: string): Validator;
}

/** Most text of schemas in the cache, in UTF-16 units. A prepared schema takes about ten times its text. */
const MAX_CACHED_LENGTH = 1_048_576;

/**
 * Prepares a validator for each schema and caches it. The least recently used are evicted.
 * @param max most validators in the cache
 */
export function createValidators(max = 256): Validators {
  const cache = new TextCache<Validator>({ entries: max, length: MAX_CACHED_LENGTH });
  return { get: (schema) => cache.get(schema, prepare) };
}

const TOO_SLOW: readonly string[] = ["The answer could not be checked in time. Make it simpler."];

/** The same validator for the answers of one request. After one that cannot be checked in time, no other is checked. */
export function whileInTime(validate: Validator): Validator {
  let slow: ReturnType<Validator> | undefined;
  return (answer) => {
    if (slow) return slow;
    const result = validate(answer);
    if (!result.ok && result.errors === TOO_SLOW) slow = result;
    return result;
  };
}

function prepare(text: string): Validator {
  const { rule, isPlain, unchecked } = prepareSchema(parseJson(text));
  const [gap] = unchecked.keys();
  if (gap !== undefined) throw new TypeError(`The keyword ${gap} of a response schema is not checked.`);
  return (answer) =>
    validated(answer, "The answer must be one JSON object.", (value) => {
      const effort = new LooseEffort(answer.length);
      if (isPlain) effort.steps = Number.POSITIVE_INFINITY;
      return errorsWithin(effort, rule, value) ?? TOO_SLOW;
    });
}

/** What is wrong with a value. @returns undefined if the effort does not suffice */
export function errorsWithin(effort: Effort, rule: Rule, value: JsonNode): readonly string[] | undefined {
  const check = new Check(effort);
  try {
    rule(value, undefined, check);
    return check.errors;
  } catch (error) {
    if (!(error instanceof Exhausted)) throw error;
    return undefined;
  }
}

/**
 * @param other the error for another value than an object
 * @param errorsOf what is wrong with an object
 */
export function validated(
  answer: string,
  other: string,
  errorsOf: (value: JsonNode) => readonly string[],
): ReturnType<Validator> {
  try {
    const value = parseJson(answer);
    const errors = value.kind === "object" ? errorsOf(value) : [other];
    return errors.length > 0 ? { ok: false, errors } : { ok: true, text: stringifyJson(value) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, errors: [error.message] };
  }
}
