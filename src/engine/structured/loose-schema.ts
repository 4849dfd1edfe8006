import { Failure } from "../../contract/failure.ts";
import { parseJson } from "../../contract/json.ts";
import { TextCache } from "../../contract/text-cache.ts";
import { checkSchema } from "./check-schema.ts";
import type { Effort } from "./effort.ts";
import { prepareSchema, type Schema } from "./json-schema.ts";
import { NoSchema } from "./keyword.ts";
import { quoted } from "./path.ts";
import { simplifySchema } from "./simplify-schema.ts";
import { errorsWithin, type Validator, type Validators, validated } from "./validate.ts";

/** How the arguments of a tool are checked. */
export interface LooseSchema {
  /** Text of the same schema with the keywords of the table; undefined if there is none. */
  readonly exact: string | undefined;
  /** Text of the same schema, with the keywords of the table where they say the same. */
  readonly simplified: string;
  /** Checks what it can of a schema beyond the table. */
  readonly validate: LooseValidator;
  /** What it cannot check, as a phrase that names a keyword of the schema; undefined: nothing. */
  readonly gap: string | undefined;
  /** The same without `format`, which is only a note in JSON Schema 2020-12. */
  readonly strictGap: string | undefined;
}

/** @param effort the work that may be left; an answer that would take more is not valid */
type LooseValidator = (answer: string, effort: Effort) => ReturnType<Validator>;

/** Longest schema that is prepared, in UTF-16 units. */
const MAX_LENGTH = 32_768;

/** Kept, because each step of an agent sends its tools again. */
const kept = new TextCache<LooseSchema>({ entries: 512, length: 1_048_576 });

/**
 * Reads a schema that may have keywords beyond the specification's table, such as those of a tool. Never throws.
 * @param text JSON text of an object
 */
export function looseSchema(text: string): LooseSchema {
  return kept.get(text, read);
}

/** The validator of a tool's schema. */
export function looseValidator(text: string, validators: Validators): LooseValidator {
  const { exact, validate } = looseSchema(text);
  return exact === undefined ? validate : validators.get(exact);
}

function read(text: string): LooseSchema {
  let simplified = text;
  try {
    simplified = simplifySchema(text);
    checkSchema(simplified);
    return { exact: simplified, simplified, validate: isObject, gap: undefined, strictGap: undefined };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  const unchecked = (gap: string) => ({ exact: undefined, simplified, validate: isObject, gap, strictGap: gap });
  if (text.length > MAX_LENGTH) return unchecked("it is too large");
  try {
    const schema = prepareSchema(parseJson(text));
    const skipped = [...schema.unchecked.keys()];
    const strictGap = gapOf(skipped.filter((keyword) => keyword !== "format"));
    return { exact: undefined, simplified, validate: validatorOf(schema), gap: gapOf(skipped), strictGap };
  } catch (error) {
    if (error instanceof NoSchema || error instanceof SyntaxError)
      return unchecked("it is no schema of JSON Schema 2020-12");
    throw error;
  }
}

/** @param unchecked keywords that are not checked */
function gapOf([keyword]: readonly string[]): string | undefined {
  return keyword === undefined ? undefined : `the keyword ${quoted(keyword)} is not checked`;
}

const OTHER = "The arguments must be one JSON object.";

function isObject(answer: string): ReturnType<Validator> {
  return validated(answer, OTHER, () => []);
}

function validatorOf({ rule }: Schema): LooseValidator {
  return (answer, effort) =>
    validated(
      answer,
      OTHER,
      (value) => errorsWithin(effort, rule, value) ?? ["The arguments could not be checked in time."],
    );
}
