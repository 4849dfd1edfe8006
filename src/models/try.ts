import type { Attempt } from "../concurrency/breaker.ts";
import { NO_PART } from "../concurrency/parts.ts";
import type { Slot } from "./call-limit.ts";
import type { Model, ModelCall, NextPiece, Piece, Pieces, TokenUsage } from "./port/model.ts";
import { ModelError, toModelError } from "./port/model-error.ts";
import { SilenceTimeout } from "./silence-timeout.ts";

/** How one try of a call ended. */
export interface CallEnd {
  call: ModelCall;
  outcome: "ok" | "failed" | "timed_out" | "left";
  /**
   * Includes the usage of a completion that was repeated. Undefined if the call ended before the vendor reported its
   * usage, or the vendor reports none.
   */
  usage: TokenUsage | undefined;
  /** Characters of text and calls that arrived. */
  received: number;
  /** `performance.now()` at its start. */
  startedAt: number;
  /** Time from the try to its first text, or to its end where none came, in milliseconds. */
  firstTextMs: number;
  /** What answered, as the vendor names it. */
  version: string | undefined;
  /** Why it failed. */
  failure?: ModelError;
}

/** Time for each token of a whole completion, in milliseconds: a slow current model writes 50 tokens a second. */
const TOKEN_MS = 20;
/** Tokens of a whole completion if the call sets no ceiling. */
const USUAL_TOKENS = 4_096;
/** An abort at most this long before the end of the call counts as the deadline's, in ms. Timers may fire early. */
const DEADLINE_SLACK_MS = 50;

interface TryOptions {
  /** Longest silence before the first text, in milliseconds; more where nothing is streamed. */
  silenceMs: number;
  /** Longest silence after it, in milliseconds. */
  betweenMs: number;
  slot: Slot | undefined;
  attempt: Attempt;
  /** Called at the end. */
  onEnd: ((end: CallEnd) => void) | undefined;
}

/** One try of a call. Without generators, because every piece of every model passes through it. */
export class Try implements Pieces {
  readonly #call: ModelCall;
  readonly #options: TryOptions;
  readonly #timeout: SilenceTimeout;
  readonly #progress: Progress;
  readonly #pieces: Pieces;
  #isClosed = false;
  /** Whether the caller had aborted when the try failed. */
  #wasAborted = false;

  constructor(model: Model, call: ModelCall, options: TryOptions) {
    this.#call = call;
    this.#options = options;
    const wholeMs = call.streamed ? 0 : TOKEN_MS * (call.maxTokens ?? USUAL_TOKENS);
    this.#timeout = new SilenceTimeout(call.signal, options.silenceMs + wholeMs);
    this.#progress = new Progress(options.slot);
    this.#pieces = model.ask({ ...call, signal: this.#timeout.signal });
  }

  /** Whether text or calls have arrived. */
  get hasText(): boolean {
    return this.#progress.received > 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): NextPiece | Promise<NextPiece> {
    if (this.#timeout.isPaused) this.#timeout.restart(this.#options.betweenMs);
    return this.#readNext();
  }

  return(): NextPiece | Promise<NextPiece> {
    if (this.#isClosed) return NO_PART;
    const leaving = this.#pieces.return?.();
    return leaving instanceof Promise ? leaving.then(this.#leave) : this.#leave();
  }

  /** Ends the attempt, because the call is not tried again. @returns what the caller gets */
  fail(failure: ModelError): unknown {
    const { signal } = this.#call;
    const isFault = this.#wasAborted ? isBlamed(this.#call, this.#progress) : failure.blamesModel;
    this.#options.attempt.end(isFault ? "failed" : "unknown");
    return signal.aborted ? signal.reason : failure;
  }

  readonly #leave = (): NextPiece => {
    // A model that delivered text before the reader left has worked; otherwise nothing is known about it.
    if (this.hasText) this.#options.attempt.end("ok");
    this.#close("left");
    return NO_PART;
  };

  #readNext(): NextPiece | Promise<NextPiece> {
    const reading = this.#pieces.next();
    return reading instanceof Promise ? reading.then(this.#take, this.#break) : this.#take(reading);
  }

  readonly #take = (next: NextPiece): NextPiece | Promise<NextPiece> => {
    if (next.done) {
      this.#options.attempt.end("ok");
      this.#close(this.#timeout.outcome);
      return next;
    }
    const piece = next.value;
    this.#progress.add(piece);
    if (piece.type !== "progress") {
      this.#timeout.pause();
      return next;
    }
    this.#pass(piece);
    return this.#skip();
  };

  #pass({ usage, isIdle }: Extract<Piece, { type: "progress" }>): void {
    this.#progress.repeat(usage);
    // A call with `silenceMs` leaves time for another model, which can answer before the first text, so until then
    // comments do not prolong it.
    if (!isIdle || this.#call.silenceMs === undefined || this.hasText) this.#timeout.restart();
  }

  /** Reads up to the next piece that is no progress. With `#readNext`, each would hold a promise until then. */
  async #skip(): Promise<NextPiece> {
    for (;;) {
      let next: NextPiece;
      try {
        const reading = this.#pieces.next();
        next = reading instanceof Promise ? await reading : reading;
      } catch (error) {
        return this.#break(error);
      }
      if (next.done || next.value.type !== "progress") return this.#take(next);
      this.#pass(next.value);
    }
  }

  readonly #break = (error: unknown): never => {
    const failure = toModelError(this.#timeout.expired ?? error);
    this.#wasAborted = this.#call.signal.aborted;
    this.#close(this.#timeout.outcome, failure);
    throw this.hasText ? this.fail(failure) : failure;
  };

  #close(outcome: CallEnd["outcome"], failure?: ModelError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // What follows a whole completion is read for a moment, so that its connection can be used again.
    if (this.#progress.isWhole) this.#timeout.stop();
    else this.#timeout.abort();
    const { slot, onEnd } = this.#options;
    if (failure?.isCongestion && !this.hasText && !this.#wasAborted) slot?.reject();
    // By hand, because `using` takes 0.8 µs in V8.
    slot?.[Symbol.dispose]();
    if (failure?.refusal !== undefined) return;
    onEnd?.({ call: this.#call, ...this.#progress.end(outcome), ...(failure ? { failure } : {}) });
  }
}

/**
 * Whether an abort by the caller counts against the model: another model was quicker, which the reason says, or the
 * model sent nothing until the deadline.
 */
function isBlamed({ signal, endsAt }: ModelCall, { hasBegun }: Progress): boolean {
  return signal.reason instanceof ModelError || (!hasBegun && performance.now() >= endsAt - DEADLINE_SLACK_MS);
}

/** What has arrived in one try. */
class Progress {
  readonly #startedAt = performance.now();
  readonly #slot: Slot | undefined;
  #firstTextMs: number | undefined;
  #usage: TokenUsage | undefined;
  #version: string | undefined;
  /** Whether the end has arrived. */
  isWhole = false;
  /** Whether the model has sent anything. */
  hasBegun = false;
  /** Characters of text and calls. */
  received = 0;

  constructor(slot: Slot | undefined) {
    this.#slot = slot;
  }

  add(piece: Piece): void {
    this.hasBegun = true;
    if (piece.type === "text" || piece.type === "calls") {
      if (this.received === 0) this.#slot?.accept();
      this.#firstTextMs ??= performance.now() - this.#startedAt;
      this.received += lengthOf(piece);
    } else if (piece.type === "end") {
      this.isWhole = true;
      this.#version = piece.version;
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
    const outcome = this.isWhole ? "ok" : failed;
    return {
      outcome,
      usage: this.#usage,
      received: this.received,
      startedAt: this.#startedAt,
      firstTextMs,
      version: this.#version,
    };
  }
}

function lengthOf(piece: Extract<Piece, { type: "text" | "calls" }>): number {
  if (piece.type === "text") return piece.text.length;
  return piece.calls.reduce((sum, { name, arguments: given }) => sum + name.length + given.length, 0);
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
