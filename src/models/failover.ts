import type {
  LanguageModelV4,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult as Result,
} from "@ai-sdk/provider";
import { LinkedAbort } from "../abort.ts";
import { type Call, ownOptions } from "./model.ts";
import { ModelError } from "./model-error.ts";
import { opensText, type Part, toStream } from "./stream.ts";

/** No model gave an answer. `cause` is the last model's error. The message quotes nothing that a vendor sent. */
export class UpstreamError extends Error {
  override name = "UpstreamError";
  /** The error of each model, in the order in which they were called. */
  readonly causes: readonly unknown[];

  constructor(causes: readonly unknown[]) {
    const last = causes.at(-1);
    const reason = last instanceof ModelError ? ` The last failure: ${last.message}` : "";
    super(`None of the ${causes.length} models that were called gave an answer.${reason}`, { cause: last });
    this.causes = causes;
  }
}

/**
 * Makes one model of several: the first one that answers. The next one is called when a model has failed, or has been
 * silent for half of the time until the caller's deadline, as long as no text has been delivered. An answer without
 * text, or one that the vendor's content filter blocked, counts as a failure. An answer without text that reached its
 * maximum of tokens does not, because the next model would reach it too.
 * @throws UpstreamError when all models have failed, or when one fails after its first text; the reason of the
 *   caller's signal.
 */
export function failover(models: readonly LanguageModelV4[]): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "chorus.failover",
    modelId: models.map((model) => model.modelId).join(","),
    supportedUrls: {},
    doGenerate: (call) => generate(models, call),
    doStream: async (call) => ({ stream: toStream(parts(models, call)) }),
  };
}

async function generate(models: readonly LanguageModelV4[], call: Call): Promise<Result> {
  const causes: unknown[] = [];
  const pending: Attempt[] = [];
  try {
    for (const [i, model] of models.entries()) {
      pending.push(new Attempt(model, call));
      // A slow model keeps running beside the next one and may still answer first.
      const result = await firstOf(pending, causes, i === models.length - 1 ? undefined : turnMs(call));
      call.abortSignal?.throwIfAborted();
      if (result) return result;
    }
  } finally {
    for (const attempt of pending) attempt.end();
  }
  throw new UpstreamError(causes);
}

async function* parts(models: readonly LanguageModelV4[], call: Call): AsyncGenerator<Part> {
  const causes: unknown[] = [];
  for (const [i, model] of models.entries()) {
    let hasDelivered = false;
    const opening: Part[] = [];
    try {
      const { stream } = await model.doStream(i === models.length - 1 ? call : withTurn(call));
      for await (const part of stream) {
        if (!hasDelivered) {
          if (part.type === "finish") requireText(part.finishReason);
          else if (part.type !== "text-delta" || part.delta === "") {
            // Held back until the first text, so that another model can still take over.
            if (opensText(part)) opening.push(part);
            continue;
          } else yield* opening;
          hasDelivered = true;
        }
        yield part;
      }
      return;
    } catch (error) {
      call.abortSignal?.throwIfAborted();
      causes.push(error);
      if (hasDelivered) break;
    }
  }
  throw new UpstreamError(causes);
}

/**
 * Shared, because creating an error with its stack costs more than the abort. A ModelError, so that it blames the
 * slow model.
 */
const OVERTAKEN = new ModelError("Another model answered first.", { retryable: false });

/** An unstreamed call of one model. */
class Attempt {
  readonly #link: LinkedAbort;
  /** Set when the call has ended. */
  outcome: { result: Result } | { error: unknown } | undefined;
  readonly done: Promise<void>;

  constructor(model: LanguageModelV4, call: Call) {
    this.#link = new LinkedAbort(call.abortSignal);
    this.done = Promise.resolve(model.doGenerate({ ...call, abortSignal: this.#link.signal })).then(
      (result) => {
        this.outcome = checked(result);
      },
      (error: unknown) => {
        this.outcome = { error };
      },
    );
  }

  /** Aborts the call if it still runs. */
  end(): void {
    if (this.outcome) this.#link.release();
    else this.#link.abort(OVERTAKEN);
  }
}

function checked(result: Result): Attempt["outcome"] {
  const { content, finishReason } = result;
  try {
    if (finishReason.unified === "content-filter") throw blocked();
    if (!content.some((part) => part.type === "text" && part.text !== "")) requireText(finishReason);
    return { result };
  } catch (error) {
    return { error };
  }
}

/**
 * Waits for the first result. Removes failed attempts from `pending` and adds their errors to `causes`.
 * @returns undefined when all have failed, or after `limitMs`
 */
async function firstOf(
  pending: Attempt[],
  causes: unknown[],
  limitMs: number | undefined,
): Promise<Result | undefined> {
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const over = limitMs === undefined ? undefined : Promise.withResolvers<void>();
  if (over) {
    timer = setTimeout(() => {
      isOver = true;
      over.resolve();
    }, limitMs);
  }
  try {
    while (pending.length > 0 && !isOver) {
      await Promise.race([...pending.map(({ done }) => done), ...(over ? [over.promise] : [])]);
      for (const attempt of [...pending]) {
        if (!attempt.outcome) continue;
        if ("result" in attempt.outcome) return attempt.outcome.result;
        causes.push(attempt.outcome.error);
        pending.splice(pending.indexOf(attempt), 1);
        attempt.end();
      }
    }
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Half of the time until the caller's deadline, in milliseconds; undefined when the call has no deadline. */
function turnMs(call: Call): number | undefined {
  const { endsAt } = ownOptions(call);
  return endsAt === undefined ? undefined : Math.max(0, (endsAt - performance.now()) / 2);
}

/** Limits the wait for the first text of a model that has another one behind it. */
function withTurn(call: Call): Call {
  const firstTextMs = turnMs(call);
  if (firstTextMs === undefined) return call;
  const chorus = { ...call.providerOptions?.chorus, firstTextMs };
  return { ...call, providerOptions: { ...call.providerOptions, chorus } };
}

function requireText(reason: LanguageModelV4FinishReason): void {
  if (reason.unified === "content-filter") throw blocked();
  if (reason.unified !== "length") throw new ModelError("The answer has no text.", { retryable: false });
}

function blocked(): ModelError {
  return new ModelError("The vendor's content filter blocked the answer.", { retryable: false });
}
