import { pause, type Signal } from "../abort.ts";
import { type Attempt, Breaker, type BreakerOptions } from "../breaker.ts";
import type { ModelTimeouts } from "../config/config.ts";
import type { CallLimit, Slot } from "./call-limit.ts";
import type { Model, ModelCall, Piece, TokenUsage } from "./model.ts";
import { type CallRefusal, ModelError, toModelError } from "./model-error.ts";
import { Retries, type RetryOptions } from "./retry.ts";
import { SilenceTimeout } from "./silence-timeout.ts";

export interface ResilientOptions extends RetryOptions {
  timeouts: ModelTimeouts;
  breaker?: BreakerOptions;
  /** Absent: any number of calls at a time. */
  limit?: CallLimit;
  /** Called for each call that was not sent. */
  onRefusal?: (refusal: CallRefusal) => void;
  /** Called after each try, failed ones included. */
  onEnd?: (end: CallEnd) => void;
}

/** How one try of a call ended. */
export interface CallEnd {
  call: ModelCall;
  outcome: "ok" | "failed" | "timed_out" | "left";
  /**
   * With that of a completion that was repeated. Undefined if the call ended before the vendor reported its usage, or
   * the vendor reports none.
   */
  usage: TokenUsage | undefined;
  /** Characters of text that arrived. */
  received: number;
  /** Time from the try to its first text, or to its end where none came, in milliseconds. */
  firstTextMs: number;
}

/** Time for each token of a whole completion, in milliseconds: a slow current model writes 50 tokens a second. */
const TOKEN_MS = 20;
/** Tokens of a whole completion if the call sets no ceiling. */
const USUAL_TOKENS = 4_096;
/** An abort this long before the end of the call still is the deadline's, in milliseconds. Timers may fire early. */
const DEADLINE_SLACK_MS = 50;

/**
 * Adds timeouts, retries, a circuit breaker and a limit of calls at a time to a model.
 *
 * A model may be silent for `firstTokenMs` (or the call's `silenceMs`, if that is less) before its first text, and for
 * `betweenChunksMs` after it; where nothing is streamed, the first text may take 20 ms more for each token of the
 * ceiling. A call is retried only until its first text, and while the circuit is closed. When the caller aborts, the
 * vendor's call ends at once, the caller's reason is thrown, and the model is not blamed.
 * @throws ModelError; the reason of the caller's signal
 */
export function resilient(model: Model, options: ResilientOptions): Model {
  const { timeouts, limit, onEnd, onRefusal } = options;
  const breaker = new Breaker(options.breaker);

  async function* ask(call: ModelCall): AsyncGenerator<Piece, void, undefined> {
    const silenceMs = Math.min(call.silenceMs ?? Number.POSITIVE_INFINITY, timeouts.firstTokenMs);
    const wholeMs = call.streamed ? 0 : TOKEN_MS * (call.maxTokens ?? USUAL_TOKENS);
    const retries = new Retries(options, silenceMs);
    const attempt = enter(breaker, call);
    try {
      for (;;) {
        const entered = limit?.enter(call, silenceMs);
        const slot = entered instanceof Promise ? await entered : entered;
        const timeout = new SilenceTimeout(call.signal, silenceMs + wholeMs);
        const progress = new Progress(slot);
        let failure: ModelError | undefined;
        let hasReaderLeft = true;
        try {
          for await (const piece of model.ask({ ...call, signal: timeout.signal })) {
            progress.add(piece);
            if (piece.type === "progress") {
              progress.repeat(piece.usage);
              timeout.restart();
              continue;
            }
            timeout.pause();
            yield piece;
            timeout.restart(timeouts.betweenChunksMs);
          }
          hasReaderLeft = false;
          attempt.end("ok");
          return;
        } catch (error) {
          hasReaderLeft = false;
          failure = toModelError(timeout.expired ?? error);
        } finally {
          timeout.abort();
          // A model that delivered text before the reader left has worked; otherwise nothing is known about it.
          if (hasReaderLeft && progress.received > 0) attempt.end("ok");
          if (failure?.isCongestion && progress.received === 0 && !call.signal.aborted) slot?.reject();
          // By hand, because `using` takes 0.8 µs.
          slot?.[Symbol.dispose]();
          const outcome = hasReaderLeft ? "left" : timeout.outcome;
          if (failure?.refusal === undefined) onEnd?.({ call, ...progress.end(outcome) });
        }
        if (call.signal.aborted) {
          attempt.end(isBlamed(call, progress) ? "failed" : "unknown");
          throw call.signal.reason;
        }
        const wait = progress.received > 0 || !breaker.isClosed ? undefined : retries.next(failure);
        if (wait === undefined || !(await hasWaited(wait, call.signal))) {
          attempt.end(failure.blamesModel ? "failed" : "unknown");
          throw call.signal.aborted ? call.signal.reason : failure;
        }
      }
    } catch (error) {
      if (error instanceof ModelError && error.refusal !== undefined) onRefusal?.(error.refusal);
      throw error;
    } finally {
      attempt.end("unknown");
    }
  }

  return { name: model.name, ask };
}

/** @throws ModelError while the circuit is open; the reason of the caller's signal */
function enter(breaker: Breaker, { signal, requester = { workspace: "" }, isLastResort }: ModelCall): Attempt {
  signal.throwIfAborted();
  const attempt = breaker.begin(requester, isLastResort);
  if (attempt) return attempt;
  const message = "The model failed repeatedly and is not called for a short time.";
  throw new ModelError(message, { retryable: false, kind: "not_asked", failedShare: breaker.failedShare });
}

/**
 * Whether an abort by the caller counts against the model: another model was quicker, which the reason says, or the
 * model sent nothing until the deadline.
 */
function isBlamed({ signal, endsAt }: ModelCall, { hasBegun }: Progress): boolean {
  return signal.reason instanceof ModelError || (!hasBegun && performance.now() >= endsAt - DEADLINE_SLACK_MS);
}

/** Waits before a retry. @returns false if the caller aborts */
async function hasWaited(ms: number, signal: Signal): Promise<boolean> {
  try {
    await pause(ms, signal);
    return true;
  } catch {
    return false;
  }
}

/** What has arrived in one try. */
class Progress {
  readonly #startedAt = performance.now();
  readonly #slot: Slot | undefined;
  #firstTextMs: number | undefined;
  #usage: TokenUsage | undefined;
  #isWhole = false;
  /** Whether the model has sent anything. */
  hasBegun = false;
  /** Characters of text. */
  received = 0;

  constructor(slot: Slot | undefined) {
    this.#slot = slot;
  }

  add(piece: Piece): void {
    this.hasBegun = true;
    if (piece.type === "text") {
      if (this.received === 0) this.#slot?.accept();
      this.#firstTextMs ??= performance.now() - this.#startedAt;
      this.received += piece.text.length;
    } else if (piece.type === "end") {
      this.#isWhole = true;
      if (piece.usage) this.#usage = sum(piece.usage, this.#usage);
    }
  }

  /** Adds the usage of a completion that is repeated. */
  repeat(usage: TokenUsage | undefined): void {
    if (usage) this.#usage = sum(usage, this.#usage);
  }

  /** @param failed the outcome of a try without an end */
  end(failed: CallEnd["outcome"]): Omit<CallEnd, "call"> {
    const firstTextMs = this.#firstTextMs ?? performance.now() - this.#startedAt;
    const outcome = this.#isWhole ? "ok" : failed;
    return { outcome, usage: this.#usage, received: this.received, firstTextMs };
  }
}

function sum(a: TokenUsage, b: TokenUsage | undefined): TokenUsage {
  if (!b) return a;
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    thinkingTokens: a.thinkingTokens + b.thinkingTokens,
  };
}
