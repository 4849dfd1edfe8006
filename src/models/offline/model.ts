import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Tier } from "../../terms.ts";
import { type Call, ownOptions } from "../model.ts";
import type { Part } from "../stream.ts";
import { read } from "./read.ts";
import { respond } from "./respond.ts";

/**
 * Creates a built-in model that needs no network. `fast` reads a text from the beginning, `strong` weighs the whole
 * text. One token counts as four characters.
 */
export function createOfflineModel(tier: Tier): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "offline",
    modelId: `offline-${tier}`,
    supportedUrls: {},
    async doGenerate(options) {
      const { text, ...rest } = generate(tier, options);
      return { content: [{ type: "text", text }], warnings: [], ...rest };
    },
    async doStream(options) {
      return { stream: ReadableStream.from(parts(generate(tier, options), options.abortSignal)) };
    },
  };
}

function generate(tier: Tier, call: Call) {
  call.abortSignal?.throwIfAborted();
  const { prompt, responseFormat: format, maxOutputTokens = Number.POSITIVE_INFINITY, stopSequences = [] } = call;
  const reading = read(prompt);
  const schema = format?.type === "json" && format.schema && (ownOptions(call).schema ?? JSON.stringify(format.schema));
  const answer = respond(reading, tier, format?.type === "json", schema || undefined);
  const rest = answer.startsWith(reading.begun) ? answer.slice(reading.begun.length) : answer;
  const stops = stopSequences.map((stop) => rest.indexOf(stop)).filter((at, i) => at >= 0 && stopSequences[i] !== "");
  const characters = [...rest.slice(0, Math.min(rest.length, ...stops))];
  const text = characters.slice(0, maxOutputTokens * 4).join("");
  const [input, output] = [JSON.stringify(prompt), text].map((part) => Math.ceil(part.length / 4));
  const unified = characters.length > maxOutputTokens * 4 ? "length" : "stop";
  const usage = {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
  return { text, finishReason: { unified, raw: undefined } as const, usage };
}

/** Streams an answer word by word. Parts are made when the reader requests them, so an abort takes effect at once. */
function* parts(answer: ReturnType<typeof generate>, signal?: AbortSignal): Generator<Part> {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "0" };
  for (const [delta] of answer.text.matchAll(/\s*\S{1,80}|\s+/gu)) {
    signal?.throwIfAborted();
    yield { type: "text-delta", id: "0", delta };
  }
  yield { type: "text-end", id: "0" };
  yield { type: "finish", finishReason: answer.finishReason, usage: answer.usage };
}
