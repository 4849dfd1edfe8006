import { createValidators } from "../src/engine/structured/validate.ts";
import { canonicalCalls } from "../src/engine/tools/canonical.ts";
import { checkCalls } from "../src/engine/tools/check-calls.ts";
import type { Tools, WrittenCall } from "../src/models/port/model.ts";

/** What a model has answered to a question with tools. */
export interface ToolDraft {
  readonly calls: readonly WrittenCall[];
  /** 1 if the checker of the recording found the calls right. */
  readonly score: number;
  /** Tokens of input and output; undefined if they were not recorded. */
  readonly tokens: readonly [input: number, output: number] | undefined;
  /** The form by which drafts are compared; undefined if the calls must not leave. */
  readonly form: string | undefined;
  /** Whether the service changes the calls before they leave. */
  readonly isRepaired: boolean;
}

/** A question with tools. */
export interface ToolRow {
  readonly id: string;
  readonly category: string;
  readonly prompt: string;
  readonly tools: Tools;
  readonly models: Readonly<Record<string, ToolDraft>>;
}

const validators = createValidators();

/** Reads a line `{id, category, question, functions, outputs}`. @returns undefined if it is none */
export function readToolRow(item: Readonly<Record<string, unknown>>): ToolRow | undefined {
  const { id, category, question, functions, outputs } = item;
  if (!Array.isArray(question) || !Array.isArray(functions) || typeof outputs !== "object" || outputs === null) return;
  const list = functions.map(({ name, description = "", parameters = {} }) => ({
    name,
    description,
    parameters: JSON.stringify(parameters),
  }));
  const tools: Tools = { list, choice: "auto", parallel: true };
  const models = Object.fromEntries(
    Object.entries(outputs).map(([name, output]) => [name, draftOf(output as Output, tools)]),
  );
  const prompt = question.map(({ content }) => String(content)).join("\n");
  return { id: String(id), category: String(category), prompt, tools, models };
}

interface Output {
  readonly calls?: readonly { readonly name: string; readonly arguments: unknown }[];
  readonly ok: number;
  readonly tok?: readonly [number, number];
}

function draftOf({ calls = [], ok, tok }: Output, tools: Tools): ToolDraft {
  const written = calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) }));
  const checked = checkCalls(written, tools, validators);
  return {
    calls: written,
    score: ok,
    tokens: tok,
    form: formOf(written, tools),
    isRepaired: checked.ok && checked.repaired,
  };
}

/** The form by which the service compares drafts. */
export function formOf(calls: readonly WrittenCall[], tools: Tools): string | undefined {
  return canonicalCalls(calls, tools, validators);
}

/** The vendor of a recorded model, by its name. */
export function vendorOf(model: string): string {
  const start = model.toLowerCase().split(/[-_]/)[0] ?? model;
  return { open: "mistral", mistral: "mistral" }[start] ?? start;
}

/**
 * The score of calls that leave: what the checker found of the same calls. Calls that the service has changed have that
 * of another model's equal calls; without one, that of the calls as they were.
 * @param form of the calls; undefined: none leave, because the request fails
 */
export function scoreOf({ models }: ToolRow, form: string | undefined, chosen?: ToolDraft): number {
  if (form === undefined) return 0;
  if (chosen && !chosen.isRepaired) return chosen.score;
  const same = Object.values(models).find((draft) => draft.form === form && !draft.isRepaired);
  return same?.score ?? chosen?.score ?? 0;
}
