import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
} from "@ai-sdk/provider";
import type { Part } from "../../src/models/stream.ts";

export type Call = LanguageModelV4CallOptions;

export const USAGE = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 },
};

/** A call without anything but a short prompt. */
export function call(more: Partial<Call> = {}): Call {
  return { prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }], ...more };
}

export function result(
  text: string,
  unified: LanguageModelV4FinishReason["unified"] = "stop",
): LanguageModelV4GenerateResult {
  return {
    content: text === "" ? [] : [{ type: "text", text }],
    finishReason: { unified, raw: unified },
    usage: USAGE,
    warnings: [],
  };
}

export function finish(unified: LanguageModelV4FinishReason["unified"] = "stop"): Part {
  return { type: "finish", finishReason: { unified, raw: unified }, usage: USAGE };
}

/** Parts of a whole answer, one text part per piece. */
export function parts(...pieces: string[]): Part[] {
  return [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "0" },
    ...pieces.map((delta): Part => ({ type: "text-delta", id: "0", delta })),
    { type: "text-end", id: "0" },
    finish(),
  ];
}

/** A model made of functions, one per call and in order; the last one stands for all further calls. */
export function fakeModel(script: {
  generate?: ((call: Call) => Promise<LanguageModelV4GenerateResult>)[];
  stream?: ((call: Call) => AsyncIterable<Part> | Iterable<Part>)[];
}): LanguageModelV4 & { calls: Call[] } {
  const calls: Call[] = [];
  const next = <T>(list: T[] | undefined): T => {
    const step = list && list.length > 1 ? list.shift() : list?.[0];
    if (step === undefined) throw new Error("not scripted");
    return step;
  };
  return {
    calls,
    specificationVersion: "v4",
    provider: "fake",
    modelId: "fake",
    supportedUrls: {},
    async doGenerate(call) {
      calls.push(call);
      return next(script.generate)(call);
    },
    async doStream(call) {
      calls.push(call);
      return { stream: ReadableStream.from(next(script.stream)(call)) };
    },
  };
}

/** Reads a stream to its end. */
export async function collect(stream: AsyncIterable<Part>): Promise<Part[]> {
  const all: Part[] = [];
  for await (const part of stream) all.push(part);
  return all;
}

export function textOf(all: readonly Part[]): string {
  return all.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");
}

/** Never settles but by the call's abort. */
export function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
