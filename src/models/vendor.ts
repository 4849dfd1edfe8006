import type { LanguageModelV4, LanguageModelV4FinishReason } from "@ai-sdk/provider";
import type { ModelEntry, Vendor } from "../config/config.ts";
import { adaptingSend, type Send } from "./adapt.ts";
import { connect } from "./connect.ts";
import type { Fetch } from "./fetch.ts";
import type { Call } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { type Part, toStream } from "./stream.ts";

/**
 * One model of the catalogue, called in the vendor's wire format.
 *
 * A JSON Schema comes as text in the call's own options, beside `responseFormat`; the answer is text in any case. A
 * stream yields `finish` only after the vendor's last frame and the end of the stream, and throws if either is
 * missing. `providerMetadata.chorus` names the catalogue entry.
 * @throws ModelError, or an error of the AI SDK.
 */
export function createVendorModel(entry: ModelEntry, fetch: Fetch): LanguageModelV4 {
  const { vendor } = entry;
  const connected = connect(entry);
  const send = adaptingSend(entry, fetch, connected);
  const metadata = { chorus: { model: entry.name, tier: entry.tier } };

  return {
    specificationVersion: "v4",
    provider: connected(fetch).provider,
    modelId: entry.model,
    supportedUrls: {},
    async doGenerate(call) {
      const result = await send(call, (model, adapted) => model.doGenerate(adapted));
      return {
        content: result.content,
        finishReason: completeReason(result.finishReason, vendor),
        usage: result.usage,
        warnings: result.warnings,
        providerMetadata: { ...result.providerMetadata, ...metadata },
      };
    },
    doStream: async (call) => ({ stream: toStream(parts(send, call, vendor, metadata)) }),
  };
}

async function* parts(
  send: Send,
  call: Call,
  vendor: Vendor,
  metadata: { chorus: { model: string; tier: string } },
): AsyncGenerator<Part> {
  const { stream } = await send(call, (model, adapted) => model.doStream(adapted));
  let finish: Part | undefined;
  try {
    for await (const part of stream) {
      if (part.type === "error") throw part.error;
      if (part.type === "finish") {
        const finishReason = completeReason(part.finishReason, vendor);
        finish = { ...part, finishReason, providerMetadata: { ...part.providerMetadata, ...metadata } };
      } else if (!finish) yield part;
    }
  } catch (error) {
    // After the last frame the answer is complete, so a failure no longer matters.
    if (!finish) throw error;
  }
  if (!finish) throw incomplete();
  yield finish;
}

/** The reason why a complete answer ended. @throws ModelError when the answer is incomplete */
function completeReason(reason: LanguageModelV4FinishReason, vendor: Vendor): LanguageModelV4FinishReason {
  const { unified, raw } = reason;
  if (unified === "error" || unified === "interrupted") throw incomplete();
  if (unified !== "other") return reason;
  // Servers with OpenAI's format use various words for a natural end. At other vendors an unknown word is not one.
  if (vendor !== "openai" && vendor !== "openai-compatible") throw incomplete();
  return { unified: "stop", raw };
}

function incomplete(): ModelError {
  return new ModelError("The answer ended before the vendor marked it as complete.", { retryable: true });
}
