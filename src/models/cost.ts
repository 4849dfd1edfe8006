import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { ModelEntry } from "../config/config.ts";
import type { ModelCall } from "../telemetry.ts";
import { type Call, ownOptions } from "./model.ts";

/** The end of one try of a call. */
export interface CallEnd {
  call: Call;
  outcome: ModelCall["outcome"];
  /** Tokens that the vendor reported; undefined when the call ended before the report. */
  usage: LanguageModelV4Usage | undefined;
  /** Characters of text that arrived in a stream; 0 for an unstreamed answer. */
  received: number;
  /**
   * Time from the start of the try to its first text, or to its end without text, in milliseconds; undefined if
   * unstreamed.
   */
  firstTextMs?: number;
}

/** Estimate of the characters in a token, about right for English with any current tokenizer. */
const CHARACTERS_PER_TOKEN = 4;

/**
 * Computes the tokens and the cost of a call, by the catalogue's prices (USD per million tokens). If the call ended
 * before the vendor reported its tokens, they are estimated from the texts, because the vendor bills them. A call
 * that the vendor refused costs nothing. Hidden reasoning, and what some vendors add for writing to their cache, are
 * not included.
 */
export function modelCall({ name, tier, price }: ModelEntry, { call, outcome, usage, received }: CallEnd): ModelCall {
  const isEstimated = usage === undefined && (outcome !== "failed" || received > 0);
  const tokens = isEstimated ? estimated(call, received) : reported(usage);
  const { inputTokens, cachedTokens, outputTokens } = tokens;
  const usd =
    price && (inputTokens - cachedTokens) * price.input + cachedTokens * price.cached + outputTokens * price.output;
  return {
    model: name,
    tier,
    outcome,
    source: isEstimated ? "estimated" : "reported",
    ...tokens,
    usd: usd === undefined ? undefined : usd / 1e6,
  };
}

type Tokens = Pick<ModelCall, "inputTokens" | "cachedTokens" | "outputTokens">;

function reported(usage: LanguageModelV4Usage | undefined): Tokens {
  const inputTokens = count(usage?.inputTokens.total);
  return {
    inputTokens,
    cachedTokens: Math.min(inputTokens, count(usage?.inputTokens.cacheRead)),
    outputTokens: count(usage?.outputTokens.total),
  };
}

/** Checks a reported number: a server that imitates OpenAI may send anything. */
function count(value: unknown): number {
  return typeof value === "number" && value > 0 && value < Number.MAX_SAFE_INTEGER ? value : 0;
}

function estimated(call: Call, received: number): Tokens {
  let sent = ownOptions(call).schema?.length ?? 0;
  for (const { content } of call.prompt) {
    if (typeof content === "string") sent += content.length;
    else for (const part of content) if (part.type === "text") sent += part.text.length;
  }
  return {
    inputTokens: Math.ceil(sent / CHARACTERS_PER_TOKEN),
    cachedTokens: 0,
    outputTokens: Math.ceil(received / CHARACTERS_PER_TOKEN),
  };
}
