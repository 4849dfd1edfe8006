import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Tier } from "../../terms.ts";
import { read } from "./read.ts";
import { respond } from "./respond.ts";

/** A model without a network. `fast` reads from the beginning, `strong` weighs the whole text. A token is taken as four characters. */
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

function generate(tier: Tier, { prompt, responseFormat: format, ...options }: LanguageModelV4CallOptions) {
  options.abortSignal?.throwIfAborted();
  const { maxOutputTokens = Number.POSITIVE_INFINITY, stopSequences = [] } = options;
  const reading = read(prompt);
  // The schema's own text keeps what parsing loses: the order of names such as "2" and the digits of large numbers.
  const own = options.providerOptions?.chorus?.schema;
  const schema = format?.type === "json" && format.schema && String(own ?? JSON.stringify(format.schema));
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

/** Word by word. The next part is made when the reader asks for it, so that nothing is buffered and an abort shows at once. */
function* parts(answer: ReturnType<typeof generate>, signal?: AbortSignal): Generator<LanguageModelV4StreamPart> {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "0" };
  for (const [delta] of answer.text.matchAll(/\s*\S{1,80}|\s+/gu)) {
    signal?.throwIfAborted();
    yield { type: "text-delta", id: "0", delta };
  }
  yield { type: "text-end", id: "0" };
  yield { type: "finish", finishReason: answer.finishReason, usage: answer.usage };
}
