import { codeOf } from "./failures.ts";
import type { ModelEntry } from "./port/entry.ts";
import { type CallReport, lengthOfMessage, type ModelCall } from "./port/model.ts";
import type { CallEnd } from "./try.ts";

/** Characters of one token, for estimates: about right for English with any current tokenizer. */
const TOKEN_CHARACTERS = 4;

/**
 * Computes what a call used and cost, from the prices of the catalogue (US dollars per million tokens). If the vendor
 * reported no usage, it is estimated from the texts, because the vendor bills the call too. A refused call costs
 * nothing. The surcharge of some vendors for writing to their cache is not included.
 * @param price of what answered
 */
export function callRecord(
  entry: ModelEntry,
  { call, outcome, usage, received, startedAt, version, failure }: CallEnd,
  price: ModelEntry["price"],
): CallReport {
  const { name: model, vendor, tier } = entry;
  const code = failure && codeOf(entry, failure);
  const isEstimated = usage === undefined && (outcome !== "failed" || received > 0);
  const tokens = usage ?? (isEstimated ? estimate(call, received) : NOTHING);
  const { inputTokens, cachedTokens, outputTokens } = tokens;
  const usd =
    price && (inputTokens - cachedTokens) * price.input + cachedTokens * price.cached + outputTokens * price.output;
  return {
    model,
    ...(version === undefined ? {} : { version }),
    vendor,
    tier,
    ...(call.step === undefined ? {} : { step: call.step }),
    startedAt,
    durationMs: performance.now() - startedAt,
    ...(failure?.status === undefined ? {} : { status: failure.status }),
    ...(code === undefined ? {} : { code }),
    outcome,
    source: isEstimated ? "estimated" : "reported",
    ...tokens,
    usd: usd === undefined ? undefined : usd / 1e6,
  };
}

const NOTHING = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, thinkingTokens: 0 };

function estimate({ prompt, format, tools }: ModelCall, received: number): typeof NOTHING {
  let sent = prompt.system.length + (format?.type === "schema" ? format.schema.length : 0);
  for (const message of prompt.messages) sent += lengthOfMessage(message);
  for (const { name, description, parameters } of tools?.list ?? [])
    sent += name.length + description.length + parameters.length;
  return {
    ...NOTHING,
    inputTokens: Math.ceil(sent / TOKEN_CHARACTERS),
    outputTokens: Math.ceil(received / TOKEN_CHARACTERS),
  };
}
