import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
} from "@ai-sdk/provider";
import { LinkedAbort } from "../abort.ts";
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

type Result = LanguageModelV4GenerateResult;

/** One model that is asked for a whole answer. */
class Try {
  readonly #link: LinkedAbort;
  /** What came of it, once that is known. */
  arrived: { result: Result } | { error: unknown } | undefined;
  readonly done: Promise<void>;

  constructor(model: LanguageModelV4, call: LanguageModelV4CallOptions) {
    this.#link = new LinkedAbort(call.abortSignal);
    this.done = Promise.resolve(model.doGenerate({ ...call, abortSignal: this.#link.signal })).then(
      (result) => {
        this.arrived = checked(result);
      },
      (error: unknown) => {
        this.arrived = { error };
      },
    );
  }

  /** Ends what still runs: somebody else was quicker. */
  end(): void {
    if (this.arrived) this.#link.release();
    else this.#link.abort(OVERTAKEN);
  }
}

/** Made once: an error with its stack costs more than the rest of an abort. A ModelError, so that it counts against the slow model. */
const OVERTAKEN = new ModelError("Another model was quicker.", { retryable: false });

function checked(result: Result): Try["arrived"] {
  const { content, finishReason } = result;
  try {
    if (finishReason.unified === "content-filter") throw refused();
    if (!content.some((part) => part.type === "text" && part.text !== "")) demandText(finishReason);
    return { result };
  } catch (error) {
    return { error };
  }
}

/**
 * The first result of the tries. Undefined once all have failed, or after `patienceMs`; what failed is taken out of the tries and its
 * error put to the causes.
 */
async function firstOf(tries: Try[], causes: unknown[], patienceMs: number | undefined): Promise<Result | undefined> {
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const over = patienceMs === undefined ? undefined : Promise.withResolvers<void>();
  if (over) {
    timer = setTimeout(() => {
      isOver = true;
      over.resolve();
    }, patienceMs);
  }
  try {
    while (tries.length > 0 && !isOver) {
      await Promise.race([...tries.map(({ done }) => done), ...(over ? [over.promise] : [])]);
      for (const one of [...tries]) {
        if (!one.arrived) continue;
        if ("result" in one.arrived) return one.arrived.result;
        causes.push(one.arrived.error);
        tries.splice(tries.indexOf(one), 1);
        one.end();
      }
    }
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Half of the time that is left until `providerOptions.chorus.endsAt`, a `performance.now()`; undefined where the call has no end. */
function patienceMs({ providerOptions }: LanguageModelV4CallOptions): number | undefined {
  const endsAt = providerOptions?.chorus?.endsAt;
  return typeof endsAt === "number" ? Math.max(0, (endsAt - performance.now()) / 2) : undefined;
}

/** The same call for a model behind which there is another: its first text must come within half of the time that is left. */
function hurried(call: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const patience = patienceMs(call);
  if (patience === undefined) return call;
  const chorus = { ...call.providerOptions?.chorus, patienceMs: patience };
  return { ...call, providerOptions: { ...call.providerOptions, chorus } };
}

/**
 * Several models as one: the first one that answers. The next one is tried as long as nothing of an answer has been delivered: when one has
 * failed, or has been silent for half of the time that the call has left (`providerOptions.chorus.endsAt`). An
 * answer without text, or held back by the vendor's content filter, counts as a failure; one without text that ran into its ceiling of
 * tokens does not, because the next model would run into it too.
 * @throws UpstreamError when all have failed, or when one fails after its first text; the reason of the caller's signal.
 */
export function failover(models: readonly LanguageModelV4[]): LanguageModelV4 {
  async function doGenerate(call: LanguageModelV4CallOptions) {
    const causes: unknown[] = [];
    const tries: Try[] = [];
    try {
      for (const [i, model] of models.entries()) {
        tries.push(new Try(model, call));
        // A model that is only slow goes on beside the next one, and may still be the first.
        const result = await firstOf(tries, causes, i === models.length - 1 ? undefined : patienceMs(call));
        call.abortSignal?.throwIfAborted();
        if (result) return result;
      }
    } finally {
      for (const one of tries) one.end();
    }
    throw new UpstreamError(causes);
  }

  async function* parts(call: LanguageModelV4CallOptions): AsyncGenerator<Part> {
    const causes: unknown[] = [];
    for (const [i, model] of models.entries()) {
      let delivered = false;
      const opening: Part[] = [];
      try {
        const { stream } = await model.doStream(i === models.length - 1 ? call : hurried(call));
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
