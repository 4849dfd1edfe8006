import { createContext, Script } from "node:vm";
import { Ajv2020, type AnySchema } from "ajv/dist/2020.js";
import { Failure } from "../../contract/failure.ts";
import { type JsonNode, parseJson, stringifyJson, toValue } from "../../contract/json.ts";
import { TextCache } from "../../contract/text-cache.ts";
import { checkSchema } from "./check-schema.ts";
import { quoted } from "./path.ts";
import { simplifySchema } from "./simplify-schema.ts";
import type { Validator, Validators } from "./validate.ts";

/** How the arguments of a tool are checked. */
export interface LooseSchema {
  /** Text of the same schema with the keywords of the table; undefined if there is none. */
  readonly exact: string | undefined;
  /** Checks what it can of a schema beyond the table. */
  readonly validate: Validator;
  /** What it cannot check, as a phrase that names a keyword of the schema; undefined: nothing. */
  readonly gap: string | undefined;
}

/** Most time to check arguments, in milliseconds. */
const CHECK_MS = 20;
/** Longest schema that is compiled, in UTF-16 units. */
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
export function looseValidator(text: string, validators: Validators): Validator {
  const { exact, validate } = looseSchema(text);
  return exact === undefined ? validate : validators.get(exact);
}

function read(text: string): LooseSchema {
  try {
    const exact = simplifySchema(text, "parameters");
    checkSchema(exact);
    return { exact, validate: isObject, gap: undefined };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  if (text.length > MAX_LENGTH) return { exact: undefined, validate: isObject, gap: "it is too large" };
  const ajv = new Ajv2020({
    ...{ strict: false, validateSchema: false, validateFormats: false },
    ...{ ownProperties: true, inlineRefs: false, logger: false },
    code: { optimize: false },
  });
  try {
    const node = parseJson(text);
    const validate = ajv.compile(toValue(node) as AnySchema);
    const isSlow = SLOW.test(text);
    const check = (value: unknown) => {
      const isValid = isSlow ? within(CHECK_MS, () => validate(value)) : validate(value);
      return isValid ? undefined : ajv.errorsText(validate.errors, { dataVar: "$" });
    };
    return { exact: undefined, validate: (answer) => checked(answer, check), gap: gapOf(node) };
  } catch {
    return { exact: undefined, validate: isObject, gap: "it is no schema of JSON Schema 2020-12" };
  }
}

function isObject(answer: string): ReturnType<Validator> {
  return checked(answer, () => undefined);
}

/** @param check gives what is wrong */
function checked(answer: string, check: (value: unknown) => string | undefined): ReturnType<Validator> {
  try {
    const node = parseJson(answer);
    if (node.kind !== "object") return { ok: false, errors: ["The arguments must be one JSON object."] };
    const error = check(toValue(node));
    return error === undefined ? { ok: true, text: stringifyJson(node) } : { ok: false, errors: [error] };
  } catch (error) {
    const isSyntax = error instanceof SyntaxError;
    return { ok: false, errors: [isSyntax ? error.message : "The arguments could not be checked in time."] };
  }
}

/** Keywords with which a check can take more than linear time. Only then is its time bounded, which takes time too. */
const SLOW = /"(?:pattern|patternProperties|uniqueItems|contains|\$ref|\$dynamicRef|unevaluated\w+)"/;

/** Keywords that ajv does not check as they are meant, by draft or because it has no list of formats. */
const UNCHECKED: ReadonlySet<string> = new Set(["format", "$dynamicRef", "$recursiveRef", "dependencies"]);

/** The first thing in a schema that is not checked. */
function gapOf(node: JsonNode): string | undefined {
  if (node.kind === "scalar") return undefined;
  if (node.kind === "array") return first(node.items, gapOf);
  return first(node.members, ([name, value]) => {
    const isName = UNCHECKED.has(name) && value.kind === "scalar";
    const isTuple = name === "items" && value.kind === "array";
    if (isName || isTuple || name === "__proto__") return `the keyword ${quoted(name)} is not checked`;
    return gapOf(value);
  });
}

function first<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

const scope = createContext({ run: () => {} });
const script = new Script("run()");

/** Most tries of a function in `within`. */
const TRIES = 3;

/**
 * Runs a function that changes nothing, and ends it when its time is up: a pattern of a caller's schema can take
 * forever, and so can a schema that refers to itself. The time passes on the clock, so the function runs again if
 * other programs had the processor for most of it.
 * @throws Error when the time is up
 */
function within<T>(ms: number, run: () => T): T {
  scope.run = run;
  for (let tries = 1; ; tries++) {
    const before = process.threadCpuUsage();
    try {
      return script.runInContext(scope, { timeout: ms });
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before);
      if (tries === TRIES || (user + system) / 1_000 > ms / 2) throw error;
    }
  }
}
