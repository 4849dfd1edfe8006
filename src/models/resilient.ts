import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Usage } from "@ai-sdk/provider";
import { LinkedAbort } from "../abort.ts";
import { type BreakerOptions, createBreaker } from "../breaker.ts";
import type { ModelTimeouts } from "../config/config.ts";
import type { CallEnd } from "./cost.ts";
import { ModelError, toModelError } from "./model-error.ts";
import { fromFirstText, type Part, toStream } from "./stream.ts";

export interface ResilientOptions {
  timeouts: ModelTimeouts;
  /** Tries after the first one; none begins later than `firstTokenMs` after it, so that another model gets its turn. Default 2. */
  retries?: number;
  /** Ceiling of the first random wait, in milliseconds; each further one doubles it. Default 250. */
  backoffMs?: number;
  /** Longest wait before another try, in milliseconds. A vendor that asks for more fails at once. Default 5,000. */
  maxWaitMs?: number;
  breaker?: BreakerOptions;
  /** From 0 up to 1. Default `Math.random`. */
  random?: () => number;
  /** Hears of each try when it has ended. */
  onEnd?: (end: CallEnd) => void;
}

/** Time that a model may take to write one token of an answer that comes in one piece: 50 tokens a second, a slow current model. */
const TOKEN_MS = 20;
/** Tokens of such an answer where the call sets no ceiling. */
const USUAL_TOKENS = 4_096;

/**
 * One model, made patient and careful: time limits, retries with full jitter that honour the vendor's hints, and a circuit breaker.
 *
 * A stream may be silent for `firstTokenMs`, or for `providerOptions.chorus.patienceMs` if that is less, before its first text and for `betweenChunksMs` after it; it is retried only while nothing
 * has been delivered, and delivers nothing before its first text. An answer in one piece may take `firstTokenMs` and 20 ms for each
 * token of its ceiling. An abort by the caller ends the vendor's call at once, is thrown as it is and is no failure of the model.
 * Where all is well it costs 1 µs per whole answer and, with failover around it, 0.7 µs per part of a stream (the AI SDK: 11).
 * @throws ModelError; the reason of the caller's signal.
 */
export function resilient(model: LanguageModelV4, options: ResilientOptions): LanguageModelV4 {
  const { timeouts, retries = 2, backoffMs = 250, maxWaitMs = 5_000, random = Math.random, onEnd } = options;
  const breaker = createBreaker(options.breaker);

  function enter(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (!breaker.pass())
      throw new ModelError("The model failed too often lately and is being left alone.", { retryable: false });
  }

  /** Books a failed try and waits for the next; throws where there is none. */
  async function recover(
    error: unknown,
    tries: Tries,
    signal: AbortSignal | undefined,
    delivered = false,
  ): Promise<void> {
    if (signal?.aborted) {
      // Ended because another model was quicker, which is this one's fault; or because nobody wants the answer any more, which is not.
      if (signal.reason instanceof ModelError) breaker.fail();
      else breaker.release();
      throw signal.reason;
    }
    const failure = toModelError(error);
    if (failure.blamesModel) breaker.fail();
    else breaker.release();
    const wait = failure.retryAfterMs ?? random() * Math.min(maxWaitMs, backoffMs * 2 ** tries.failed);
    tries.failed++;
    const late = performance.now() - tries.since + wait > tries.patienceMs;
    if (delivered || !failure.retryable || tries.failed > retries || wait > maxWaitMs || late) throw failure;
    try {
      await sleep(wait, undefined, signal ? { signal } : {});
    } catch {
      throw signal?.reason;
    }
  }

  async function doGenerate(call: LanguageModelV4CallOptions) {
    const patience = timeouts.firstTokenMs + TOKEN_MS * (call.maxOutputTokens ?? USUAL_TOKENS);
    const tries: Tries = { failed: 0, since: performance.now(), patienceMs: timeouts.firstTokenMs };
    for (;;) {
      enter(call.abortSignal);
      const watch = new Watch(call.abortSignal, patience);
      let failure: unknown;
      try {
        const result = await model.doGenerate({ ...call, abortSignal: watch.signal });
        breaker.succeed();
        onEnd?.({ call, outcome: "ok", usage: result.usage, received: 0 });
        return result;
      } catch (error) {
        failure = watch.expired ?? error;
        onEnd?.({ call, outcome: watch.outcome, usage: undefined, received: 0 });
      } finally {
        watch.end();
      }
      await recover(failure, tries, call.abortSignal);
    }
  }

  async function* parts(call: LanguageModelV4CallOptions): AsyncGenerator<Part> {
    const asked = call.providerOptions?.chorus?.patienceMs;
    const patienceMs = typeof asked === "number" ? Math.min(asked, timeouts.firstTokenMs) : timeouts.firstTokenMs;
    const tries: Tries = { failed: 0, since: performance.now(), patienceMs };
    for (;;) {
      enter(call.abortSignal);
      const watch = new Watch(call.abortSignal, patienceMs);
      const startedAt = performance.now();
      let firstTextMs: number | undefined;
      let delivered = false;
      let ended = false;
      let usage: LanguageModelV4Usage | undefined;
      let received = 0;
      let failure: unknown;
      try {
        const { stream } = await model.doStream({ ...call, abortSignal: watch.signal });
        for await (const part of fromFirstText(stream, () => watch.rest())) {
          if (!delivered) firstTextMs = performance.now() - startedAt;
          delivered = true;
          if (part.type === "text-delta") received += part.delta.length;
          else if (part.type === "finish") usage = part.usage;
          watch.hold();
          let taken = false;
          try {
            yield part;
            taken = true;
          } finally {
            // A reader that leaves ends the call first: closing the stream may have to wait for what the vendor is doing.
            if (!taken) watch.abort();
          }
          watch.rest(timeouts.betweenChunksMs);
        }
        ended = true;
        breaker.succeed();
        return;
      } catch (error) {
        ended = true;
        failure = watch.expired ?? error;
      } finally {
        watch.end();
        watch.abort();
        // The reader has left early; with a piece in hand it has no complaint.
        if (!ended) delivered ? breaker.succeed() : breaker.release();
        firstTextMs ??= performance.now() - startedAt;
        onEnd?.({ call, outcome: usage ? "ok" : ended ? watch.outcome : "left", usage, received, firstTextMs });
      }
      await recover(failure, tries, call.abortSignal, delivered);
    }
  }

  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate,
    doStream: async (call) => ({ stream: toStream(parts(call)) }),
  };
}

interface Tries {
  failed: number;
  /** `performance.now()` at the first one. */
  since: number;
  /** Time after the first one until which another may begin, in milliseconds. */
  patienceMs: number;
}

/** Aborts when the caller does, or when the model has been silent for too long. */
class Watch {
  /** Set once patience has run out. */
  expired: ModelError | undefined;
  readonly #link: LinkedAbort;
  readonly #caller: AbortSignal | undefined;
  #patienceMs: number;
  #timer: NodeJS.Timeout;
  #held = false;

  constructor(caller: AbortSignal | undefined, patienceMs: number) {
    this.#caller = caller;
    this.#patienceMs = patienceMs;
    this.#link = new LinkedAbort(caller);
    this.#timer = setTimeout(this.#expire, patienceMs);
  }

  get signal(): AbortSignal {
    return this.#link.signal;
  }

  /** What became of a call that gave no whole answer. */
  get outcome(): "left" | "timed_out" | "failed" {
    return this.#caller?.aborted ? "left" : this.expired ? "timed_out" : "failed";
  }

  /** The reader is busy with a part: that time is not the model's. */
  hold(): void {
    this.#held = true;
  }

  /** Waits anew for the model, from now on for `patienceMs` if that is given. */
  rest(patienceMs = this.#patienceMs): void {
    this.#held = false;
    if (patienceMs === this.#patienceMs) {
      this.#timer.refresh();
      return;
    }
    this.#patienceMs = patienceMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#expire, patienceMs);
  }

  /** Ends the watch. */
  end(): void {
    clearTimeout(this.#timer);
    this.#link.release();
  }

  /** Ends the vendor's call, if that is still under way. */
  abort(): void {
    this.#link.abort();
  }

  readonly #expire = (): void => {
    if (this.#held) {
      this.#timer.refresh();
      return;
    }
    this.expired = new ModelError("The model was silent for too long.", { retryable: true });
    this.#link.abort(this.expired);
  };
}
