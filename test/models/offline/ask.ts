import { createOfflineModel } from "../../../src/models/offline/model.ts";
import { type Completion, complete, type ModelCall, type Prompt } from "../../../src/models/port/model.ts";
import { call } from "../fake-model.ts";

export type Options = Partial<ModelCall> & { system?: string };

/** A conversation that begins with the user and takes turns. */
export function conversation(turns: string | string[], system = ""): Prompt {
  const list = [turns]
    .flat()
    .map((text, i) => ({ role: i % 2 === 0 ? ("user" as const) : ("assistant" as const), text }));
  return { system, turns: list };
}

/** A whole completion, unless the options say that it is streamed. */
export async function generate(turns: string | string[], { system, ...options }: Options = {}): Promise<Completion> {
  const model = createOfflineModel({ name: "offline-strong" });
  return complete(model, call({ streamed: false, prompt: conversation(turns, system), ...options }));
}

/** The text of an answer. */
export async function ask(turns: string | string[], options: Options = {}): Promise<string> {
  return (await generate(turns, options)).text;
}

/** The parsed answer in JSON mode, with or without a schema. */
export async function askJson(turns: string | string[], schema?: object, options: Options = {}): Promise<unknown> {
  return JSON.parse(await ask(turns, { ...options, format: schema ? schemaFormat(schema) : { type: "json" } }));
}

export function schemaFormat(schema: object): { type: "schema"; schema: string } {
  return { type: "schema", schema: JSON.stringify(schema) };
}
