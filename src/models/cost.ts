import type { LanguageModelV4CallOptions, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { ModelEntry } from "../config/config.ts";
import type { ModelCall } from "../telemetry.ts";

/** How one try of a call ended. */
export interface CallEnd {
  call: LanguageModelV4CallOptions;
  outcome: ModelCall["outcome"];
  /** The vendor's own figures; undefined where the call ended before they came. */
  usage: LanguageModelV4Usage | undefined;
  /** Characters of text that arrived. */
  received: number;
  /** Time from the try to its first text, or to its end where none came, in milliseconds; undefined for an answer in one piece. */
  firstTextMs?: number;
}

/** Characters that are taken for one token where the vendor gave no figures: about right for English with any current tokenizer. */
const TOKEN_CHARACTERS = 4;

/**
 * What a call used and cost, by the prices of the catalogue (USD per million tokens). A call that ended before the vendor's figures came is
 * estimated from its texts, since the vendor bills it; one that the vendor refused cost nothing. Reasoning that is not shown and the
 * surcharge of some vendors for writing to their cache are not known here.
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

/** A server that only resembles OpenAI's may send anything in place of a figure. */
function count(value: unknown): number {
  return typeof value === "number" && value > 0 && value < Number.MAX_SAFE_INTEGER ? value : 0;
}

function estimated({ prompt, providerOptions }: LanguageModelV4CallOptions, received: number): Tokens {
  let sent = String(providerOptions?.chorus?.schema ?? "").length;
  for (const { content } of prompt) {
    if (typeof content === "string") sent += content.length;
    else for (const part of content) if (part.type === "text") sent += part.text.length;
  }
  return {
    inputTokens: Math.ceil(sent / TOKEN_CHARACTERS),
    cachedTokens: 0,
    outputTokens: Math.ceil(received / TOKEN_CHARACTERS),
  };
}
