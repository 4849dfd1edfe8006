import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModelV4, LanguageModelV4GenerateResult, LanguageModelV4Usage } from "@ai-sdk/provider";
import { type Breaker, type BreakerOptions, createBreaker } from "../breaker.ts";
import type { ModelTimeouts } from "../config/config.ts";
import type { CallEnd } from "./cost.ts";
import { type Call, ownOptions } from "./model.ts";
import { ModelError, toModelError } from "./model-error.ts";
import { Retries, type RetryOptions } from "./retry.ts";
import { SilenceTimeout } from "./silence-timeout.ts";
import { fromFirstText, type Part, toStream } from "./stream.ts";

export interface ResilientOptions extends RetryOptions {
  timeouts: ModelTimeouts;
  breaker?: BreakerOptions;
  /** Called after each try, failed ones included. */
  onEnd?: (end: CallEnd) => void;
}

/**
 * Time allowed for each token of an unstreamed answer, in milliseconds: a slow current model writes 50 tokens a
 * second.
 */
const TOKEN_MS = 20;
/** Tokens assumed for an unstreamed answer when the call sets no maximum. */
const USUAL_TOKENS = 4_096;

/**
 * Adds timeouts, retries and a circuit breaker to a model.
 *
 * A stream may be silent for `firstTokenMs` (or the call's own `firstTextMs`, if that is less) before its first text,
 * and for `betweenChunksMs` after it. It delivers nothing before its first text and is retried only until then. An
 * unstreamed answer may take `firstTokenMs` plus 20 ms for each token of its maximum. When the caller aborts, the
 * vendor's call ends at once, the caller's reason is thrown, and the model is not blamed.
 * @throws ModelError; the reason of the caller's signal.
 */
export function resilient(model: LanguageModelV4, options: ResilientOptions): LanguageModelV4 {
  const guarded: Guarded = { model, options, breaker: createBreaker(options.breaker) };
  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (call) => generate(guarded, call),
    doStream: async (call) => ({ stream: toStream(parts(guarded, call)) }),
  };
}

interface Guarded {
  model: LanguageModelV4;
  options: ResilientOptions;
  breaker: Breaker;
}

async function generate(guarded: Guarded, call: Call): Promise<LanguageModelV4GenerateResult> {
  const { model, breaker, options } = guarded;
  const { timeouts, onEnd } = options;
  const timeoutMs = timeouts.firstTokenMs + TOKEN_MS * (call.maxOutputTokens ?? USUAL_TOKENS);
  const retries = new Retries(options, timeouts.firstTokenMs);
  for (;;) {
    enter(breaker, call.abortSignal);
    const timeout = new SilenceTimeout(call.abortSignal, timeoutMs);
    let failure: unknown;
    try {
      const result = await model.doGenerate({ ...call, abortSignal: timeout.signal });
      breaker.succeed();
      onEnd?.({ call, outcome: "ok", usage: result.usage, received: 0 });
      return result;
    } catch (error) {
      failure = timeout.expired ?? error;
      onEnd?.({ call, outcome: timeout.outcome, usage: undefined, received: 0 });
    } finally {
      timeout.stop();
    }
    await recover(breaker, failure, retries, call.abortSignal);
  }
}

async function* parts(guarded: Guarded, call: Call): AsyncGenerator<Part> {
  const { model, breaker, options } = guarded;
  const { timeouts, onEnd } = options;
  const firstTextMs = Math.min(ownOptions(call).firstTextMs ?? Number.POSITIVE_INFINITY, timeouts.firstTokenMs);
  const retries = new Retries(options, firstTextMs);
  for (;;) {
    enter(breaker, call.abortSignal);
    const timeout = new SilenceTimeout(call.abortSignal, firstTextMs);
    const progress = new Progress();
    let hasReaderLeft = true;
    let failure: unknown;
    try {
      const { stream } = await model.doStream({ ...call, abortSignal: timeout.signal });
      for await (const part of fromFirstText(stream, () => timeout.restart())) {
        progress.add(part);
        timeout.pause();
        let isTaken = false;
        try {
          yield part;
          isTaken = true;
        } finally {
          // When the reader leaves, abort first: closing the stream may wait for the vendor.
          if (!isTaken) timeout.abort();
        }
        timeout.restart(timeouts.betweenChunksMs);
      }
      hasReaderLeft = false;
      breaker.succeed();
      return;
    } catch (error) {
      hasReaderLeft = false;
      failure = timeout.expired ?? error;
    } finally {
      timeout.abort();
      // A model that delivered text before the reader left has worked; otherwise nothing is known about it.
      if (hasReaderLeft) progress.hasDelivered ? breaker.succeed() : breaker.release();
      onEnd?.({ call, ...progress.end(hasReaderLeft ? "left" : timeout.outcome) });
    }
    await recover(breaker, failure, retries, call.abortSignal, progress.hasDelivered);
  }
}

/** @throws ModelError while the circuit is open; the reason of the caller's signal */
function enter(breaker: Breaker, signal: AbortSignal | undefined): void {
  signal?.throwIfAborted();
  if (!breaker.pass())
    throw new ModelError("The model failed repeatedly and is not called for a short time.", { retryable: false });
}

/** Reports a failed try to the breaker and waits for the retry. @throws the failure when there is no retry */
async function recover(
  breaker: Breaker,
  error: unknown,
  retries: Retries,
  signal: AbortSignal | undefined,
  hasDelivered = false,
): Promise<void> {
  if (signal?.aborted) {
    // A ModelError as the reason means that another model was faster, which counts against this one.
    if (signal.reason instanceof ModelError) breaker.fail();
    else breaker.release();
    throw signal.reason;
  }
  const failure = toModelError(error);
  if (failure.blamesModel) breaker.fail();
  else breaker.release();
  const wait = hasDelivered ? undefined : retries.next(failure);
  if (wait === undefined) throw failure;
  try {
    await sleep(wait, undefined, signal ? { signal } : {});
  } catch {
    throw signal?.reason;
  }
}

/** What has arrived in one try of a stream. */
class Progress {
  readonly #startedAt = performance.now();
  #firstTextMs: number | undefined;
  #usage: LanguageModelV4Usage | undefined;
  #received = 0;

  get hasDelivered(): boolean {
    return this.#firstTextMs !== undefined;
  }

  add(part: Part): void {
    this.#firstTextMs ??= performance.now() - this.#startedAt;
    if (part.type === "text-delta") this.#received += part.delta.length;
    else if (part.type === "finish") this.#usage = part.usage;
  }

  /** @param failed the outcome if the stream did not reach its `finish` part */
  end(failed: CallEnd["outcome"]): Omit<CallEnd, "call"> {
    const firstTextMs = this.#firstTextMs ?? performance.now() - this.#startedAt;
    return { outcome: this.#usage ? "ok" : failed, usage: this.#usage, received: this.#received, firstTextMs };
  }
}
