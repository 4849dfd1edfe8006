import { annotate, isRecording, type SpanOptions, tracedParts } from "../telemetry/tracing.ts";
import type { ModelEntry, Vendor } from "./port/entry.ts";
import type { Model, ModelCall, Piece } from "./port/model.ts";
import { ModelError } from "./port/model-error.ts";

/** Names in OpenTelemetry's conventions for generative AI, where they differ from ours. */
const PROVIDERS: Partial<Record<Vendor, string>> = { google: "gcp.gemini" };

/**
 * Records each call of a model as a span of the running request, with OpenTelemetry's conventions for generative AI.
 * The vendor gets its `traceparent`. Prompts and completions are never recorded.
 */
export function tracedModel(model: Model, entry: ModelEntry): Model {
  const name = `chat ${entry.model}`;
  const fixed = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": PROVIDERS[entry.vendor] ?? entry.vendor,
    "gen_ai.request.model": entry.model,
    "chorus.model": entry.name,
    "chorus.tier": entry.tier,
  };
  const options = ({ signal, maxTokens, temperature, streamed }: ModelCall): SpanOptions => ({
    kind: entry.vendor === "offline" ? "internal" : "client",
    attributes: {
      ...fixed,
      "gen_ai.request.stream": streamed,
      "gen_ai.request.max_tokens": maxTokens,
      "gen_ai.request.temperature": temperature,
    },
    signal,
  });
  return {
    name: model.name,
    ask: (call) => (isRecording() ? tracedParts(name, annotated(model, call), options(call)) : model.ask(call)),
  };
}

async function* annotated(model: Model, call: ModelCall): AsyncGenerator<Piece, void, undefined> {
  /** In the words of the metrics. */
  let outcome = "left";
  try {
    for await (const piece of model.ask(call)) {
      if (piece.type === "end") {
        annotate({
          "gen_ai.response.finish_reasons": [piece.reason],
          "gen_ai.response.model": piece.version,
          "gen_ai.usage.input_tokens": piece.usage?.inputTokens,
          "gen_ai.usage.cache_read.input_tokens": piece.usage?.cachedTokens,
          "gen_ai.usage.output_tokens": piece.usage?.outputTokens,
        });
        outcome = "ok";
      }
      yield piece;
    }
  } catch (error) {
    const { aborted, reason } = call.signal;
    if (!aborted) outcome = "failed";
    else if (reason instanceof ModelError) outcome = "timed_out";
    throw error;
  } finally {
    annotate({ "chorus.outcome": outcome });
  }
}
