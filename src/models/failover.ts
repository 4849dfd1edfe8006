import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4FinishReason } from "@ai-sdk/provider";
import { ModelError } from "./model-error.ts";
import { opensText, type Part, toStream } from "./stream.ts";

/** No model could answer. `cause` is what the last one threw; the messages hold nothing that a vendor said. */
export class UpstreamError extends Error {
  override name = "UpstreamError";
  /** What each model threw, in the order of trying. */
  readonly causes: readonly unknown[];

  constructor(causes: readonly unknown[]) {
    const last = causes.at(-1);
    const why = last instanceof ModelError ? ` The last failure: ${last.message}` : "";
    super(`None of the ${causes.length} models asked could answer.${why}`, { cause: last });
    this.causes = causes;
  }
}

/**
 * Several models as one: the first one that answers. The next one is tried as long as nothing of an answer has been delivered. An
 * answer without text, or held back by the vendor's content filter, counts as a failure; one without text that ran into its ceiling of
 * tokens does not, because the next model would run into it too.
 * @throws UpstreamError when all have failed, or when one fails after its first text; the reason of the caller's signal.
 */
export function failover(models: readonly LanguageModelV4[]): LanguageModelV4 {
  async function doGenerate(call: LanguageModelV4CallOptions) {
    const causes: unknown[] = [];
    for (const model of models) {
      try {
        const result = await model.doGenerate(call);
        const { content, finishReason } = result;
        if (finishReason.unified === "content-filter") throw refused();
        if (!content.some((part) => part.type === "text" && part.text !== "")) demandText(finishReason);
        return result;
      } catch (error) {
        call.abortSignal?.throwIfAborted();
        causes.push(error);
      }
    }
    throw new UpstreamError(causes);
  }

  async function* parts(call: LanguageModelV4CallOptions): AsyncGenerator<Part> {
    const causes: unknown[] = [];
    for (const model of models) {
      let delivered = false;
      const opening: Part[] = [];
      try {
        const { stream } = await model.doStream(call);
        for await (const part of stream) {
          if (!delivered) {
            if (part.type === "finish") demandText(part.finishReason);
            else if (part.type !== "text-delta" || part.delta === "") {
              // What has delivered no text can still be replaced, so what opens the text waits for it.
              if (opensText(part)) opening.push(part);
              continue;
            } else yield* opening;
            delivered = true;
          }
          yield part;
        }
        return;
      } catch (error) {
        call.abortSignal?.throwIfAborted();
        causes.push(error);
        if (delivered) break;
      }
    }
    throw new UpstreamError(causes);
  }

  return {
    specificationVersion: "v4",
    provider: "chorus.failover",
    modelId: models.map((model) => model.modelId).join(","),
    supportedUrls: {},
    doGenerate,
    doStream: async (call) => ({ stream: toStream(parts(call)) }),
  };
}

function demandText(reason: LanguageModelV4FinishReason): void {
  if (reason.unified === "content-filter") throw refused();
  if (reason.unified !== "length") throw new ModelError("The answer has no text.", { retryable: false });
}

function refused(): ModelError {
  return new ModelError("The vendor's content filter held the answer back.", { retryable: false });
}
