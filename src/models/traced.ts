import type { LanguageModelV4, LanguageModelV4GenerateResult } from "@ai-sdk/provider";
import type { ModelEntry, Vendor } from "../config/config.ts";
import { annotate, type SpanOptions, traced, tracedParts, traceHeaders } from "../tracing.ts";
import type { Call } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { type Part, toStream } from "./stream.ts";

type End = Pick<LanguageModelV4GenerateResult, "finishReason" | "usage">;

/** Provider names that OpenTelemetry's conventions for generative AI define and that differ from ours. */
const PROVIDERS: Partial<Record<Vendor, string>> = { google: "gcp.gemini" };

/**
 * Records each call of a vendor's model, retries included, as a span of the current request, by OpenTelemetry's
 * conventions for generative AI. Sends the vendor the span's `traceparent`. Spans contain no prompts and no answers.
 */
export function tracedModel(model: LanguageModelV4, entry: ModelEntry): LanguageModelV4 {
  const name = `chat ${entry.model}`;
  const fixed = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": PROVIDERS[entry.vendor] ?? entry.vendor,
    "gen_ai.request.model": entry.model,
    "chorus.model": entry.name,
    "chorus.tier": entry.tier,
  };

  function options({ abortSignal, maxOutputTokens, temperature }: Call, stream: boolean): SpanOptions {
    const request = {
      "gen_ai.request.stream": stream,
      "gen_ai.request.max_tokens": maxOutputTokens,
      "gen_ai.request.temperature": temperature,
    };
    const kind = entry.vendor === "offline" ? "internal" : "client";
    return { kind, attributes: { ...fixed, ...request }, signal: abortSignal };
  }

  async function* parts(call: Call): AsyncGenerator<Part> {
    let outcome = "left";
    try {
      const { stream } = await model.doStream(withContext(call));
      for await (const part of stream) {
        if (part.type === "finish") {
          annotateEnd(part);
          outcome = "ok";
        }
        yield part;
      }
    } catch (error) {
      outcome = outcomeOf(call);
      throw error;
    } finally {
      annotate({ "chorus.outcome": outcome });
    }
  }

  return {
    ...model,
    doGenerate: (call) =>
      traced(
        name,
        async () => {
          try {
            const result = await model.doGenerate(withContext(call));
            annotateEnd(result);
            annotate({ "chorus.outcome": "ok" });
            return result;
          } catch (error) {
            annotate({ "chorus.outcome": outcomeOf(call) });
            throw error;
          }
        },
        options(call, false),
      ),
    doStream: async (call) => ({ stream: toStream(tracedParts(name, parts(call), options(call, true))) }),
  };
}

function withContext(call: Call): Call {
  const headers = traceHeaders();
  return headers.traceparent === undefined ? call : { ...call, headers: { ...call.headers, ...headers } };
}

/** Outcome of a call without a complete answer, named as in the metrics. */
function outcomeOf({ abortSignal }: Call): "left" | "timed_out" | "failed" {
  if (!abortSignal?.aborted) return "failed";
  return abortSignal.reason instanceof ModelError ? "timed_out" : "left";
}

function annotateEnd({ finishReason, usage }: End): void {
  annotate({
    "gen_ai.response.finish_reasons": [finishReason.unified],
    "gen_ai.usage.input_tokens": usage.inputTokens.total,
    "gen_ai.usage.cache_read.input_tokens": usage.inputTokens.cacheRead,
    "gen_ai.usage.output_tokens": usage.outputTokens.total,
  });
}
