import type { Tools, WrittenCall } from "../../models/port/model.ts";
import { LooseEffort } from "../structured/effort.ts";
import { looseValidator } from "../structured/loose-schema.ts";
import { quoted } from "../structured/path.ts";
import { repairArguments } from "../structured/repair.ts";
import type { Validators } from "../structured/validate.ts";
import { coerceTypes } from "./coerce.ts";
import { ToolSchemas } from "./schemas.ts";

/** Calls that may leave; or why they must not, in messages that quote names and schemas, for the model only. */
export type CheckedCalls =
  | { ok: true; calls: readonly WrittenCall[]; repaired: boolean }
  | { ok: false; errors: readonly string[] };

/** Most messages about one set of calls. */
const MAX_ERRORS = 10;

/**
 * Checks the calls that a model has written: they name tools of the request, keep its choice, and their arguments are
 * valid against the tools' schemas, after a repair if need be. Where one call at most is allowed, the first one counts.
 * @param calls may be empty
 */
export function checkCalls(
  calls: readonly WrittenCall[],
  { list, choice, parallel }: Tools,
  validators: Validators,
): CheckedCalls {
  if (calls.length === 0 && choice !== "auto" && choice !== "none") return { ok: false, errors: [demand(choice)] };
  const effort = new LooseEffort(calls.reduce((sum, call) => sum + call.arguments.length, 0));
  const schemas = new ToolSchemas(list);
  const called = new Set(calls.map(({ name }) => name));
  const checks = new Map(
    list
      .filter(({ name }) => called.has(name))
      .map(({ name, parameters }) => [name, looseValidator(parameters, validators)]),
  );
  const checked = calls
    .slice(0, parallel ? calls.length : 1)
    .map(({ name, arguments: given }): { call: WrittenCall; repaired: boolean } | { errors: readonly string[] } => {
      if (typeof choice === "object" && name !== choice.name) return { errors: [demand(choice)] };
      const validate = checks.get(name);
      if (!validate) return { errors: [`There is no tool ${quoted(name)}.`] };
      const text = given.trim() === "" ? "{}" : repairArguments(given.toWellFormed());
      if (text === undefined) return { errors: [`The arguments of ${name} are not one whole JSON object.`] };
      const result = validate(text, effort);
      if (result.ok) return { call: { name, arguments: result.text }, repaired: text !== given.trim() && given !== "" };
      const repaired = effort.isSpent ? result : validate(coerced(schemas, name, text), effort);
      if (repaired.ok) return { call: { name, arguments: repaired.text }, repaired: true };
      return { errors: result.errors.map((error) => `The arguments of ${name}: ${error}`) };
    });
  const errors = checked.flatMap((each) => ("errors" in each ? each.errors : []));
  if (errors.length > 0) return { ok: false, errors: errors.slice(0, MAX_ERRORS) };
  const valid = checked.flatMap((each) => ("call" in each ? [each] : []));
  return { ok: true, calls: valid.map(({ call }) => call), repaired: valid.some(({ repaired }) => repaired) };
}

function demand(choice: Tools["choice"]): string {
  return typeof choice === "object" ? `The tool ${quoted(choice.name)} must be called.` : "A tool must be called.";
}

/** The arguments of a tool with corrected types; the same text if they are nested too deeply. */
function coerced(schemas: ToolSchemas, tool: string, text: string): string {
  try {
    return coerceTypes(schemas.get(tool), text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return text;
  }
}
