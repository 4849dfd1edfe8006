import { createOfflineModel } from "../../../src/models/offline/model.ts";
import { type Completion, complete, type ModelCall, type Prompt } from "../../../src/models/port/model.ts";
import { call } from "../fake-model.ts";

export type Options = Partial<ModelCall> & { system?: string };

/** A conversation that begins with the user and takes turns. */
export function conversation(messages: string | string[], system = ""): Prompt {
  const list = [messages]
    .flat()
    .map((text, i) => ({ role: i % 2 === 0 ? ("user" as const) : ("assistant" as const), text }));
  return { system, messages: list };
}

/** A whole completion, unless the options say that it is streamed. */
export async function generate(messages: string | string[], { system, ...options }: Options = {}): Promise<Completion> {
  const model = createOfflineModel({ name: "offline-strong" });
  return complete(model, call({ streamed: false, prompt: conversation(messages, system), ...options }));
}

/** The text of an answer. */
export async function ask(messages: string | string[], options: Options = {}): Promise<string> {
  return (await generate(messages, options)).text;
}

/** The parsed answer in JSON mode, with or without a schema. */
export async function askJson(messages: string | string[], schema?: object, options: Options = {}): Promise<unknown> {
  return JSON.parse(await ask(messages, { ...options, format: schema ? schemaFormat(schema) : { type: "json" } }));
}

export function schemaFormat(schema: object): { type: "schema"; schema: string } {
  return { type: "schema", schema: JSON.stringify(schema) };
}
