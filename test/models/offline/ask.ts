import type {
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { createOfflineModel } from "../../../src/models/offline/model.ts";

export const TIERS = ["fast", "strong"] as const;

type Options = Omit<LanguageModelV4CallOptions, "prompt"> & { system?: string; tier?: "fast" | "strong" };

/** A conversation that begins with the user and takes turns. */
export function conversation(turns: string | string[], system?: string): LanguageModelV4Prompt {
  const messages = [turns].flat().map((text, i): LanguageModelV4Prompt[number] => {
    return { role: i % 2 === 0 ? "user" : "assistant", content: [{ type: "text", text }] };
  });
  return system === undefined ? messages : [{ role: "system", content: system }, ...messages];
}

export async function generate(
  turns: string | string[],
  { system, tier = "strong", ...options }: Options = {},
): Promise<LanguageModelV4GenerateResult> {
  return createOfflineModel(tier).doGenerate({ ...options, prompt: conversation(turns, system) });
}

/** The text of an answer. */
export async function ask(turns: string | string[], options: Options = {}): Promise<string> {
  const { content } = await generate(turns, options);
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The parsed answer in JSON mode, with or without a schema. */
export async function askJson(turns: string | string[], schema?: object, options: Options = {}): Promise<unknown> {
  const responseFormat = { type: "json" as const, ...(schema ? { schema } : {}) };
  return JSON.parse(await ask(turns, { ...options, responseFormat }));
}
