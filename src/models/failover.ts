import { LinkedAbort, pause, type Signal } from "../concurrency/abort.ts";
import { forEach, NO_PART } from "../concurrency/parts.ts";
import { HandOver } from "./hand-over.ts";
import type { EndReason, Model, ModelCall, NextPiece, Piece, Pieces } from "./port/model.ts";
import { ModelError } from "./port/model-error.ts";
import { deferredMs } from "./retry.ts";

/** No model could answer. `cause` is what the last one threw. The message contains no text of a vendor. */
export class UpstreamError extends Error {
  override name = "UpstreamError";
  /** What each model threw, in the order of trying. */
  readonly causes: readonly unknown[];

  constructor(causes: readonly unknown[]) {
    const last = causes.at(-1);
    const why = last instanceof ModelError ? ` The last failure: ${last.message}` : "";
    super(`None of the ${causes.length} models asked could answer.${why}`, { cause: last });
    this.causes = causes.flatMap((cause) => (cause instanceof UpstreamError ? cause.causes : [cause]));
  }

  /**
   * The kind of failure if it is the same for all models. A model that was not asked is not eligible, so the others'
   * refusals count as all. It may accept a longer prompt, so their `too_long` does not.
   */
  get kind(): ModelError["kind"] {
    const kinds = new Set(this.causes.map((cause) => (cause instanceof ModelError ? cause.kind : undefined)));
    if (kinds.has("refused")) kinds.delete("not_asked");
    return kinds.size === 1 ? [...kinds][0] : undefined;
  }

  /** The shortest wait after which one of the models takes calls again, in milliseconds; undefined if none says so. */
  get retryAfterMs(): number | undefined {
    const waits = this.causes.flatMap((cause) => (cause instanceof ModelError ? (cause.throttledMs ?? []) : []));
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Whether no wait can help, because the vendors refuse the operator's keys, accounts or names of models. */
  get needsOperator(): boolean {
    const { causes } = this;
    return causes.length > 0 && causes.every((cause) => cause instanceof ModelError && cause.needsOperator);
  }
}

/**
 * Asks one model after the other until one delivers text. The next model is asked when the previous one has failed,
 * ended without text, or was silent for half of the time that the call has left. A slow stream is then aborted. A slow
 * whole completion continues, and the first completion of any model is used. Models whose circuit is open are passed
 * over. If all others failed without a refusal, the one whose vendor asked for the shortest wait of a few seconds is
 * asked again after it, then the one with an open circuit that failed least. One that is unavailable for a few seconds,
 * because it loads, is asked again, each time after a longer wait.
 * @throws UpstreamError when all have failed, or when one fails after its first text; the reason of the caller's signal
 */
export function failover(models: readonly Model[]): Model {
  return {
    name: models.map(({ name }) => name).join(","),
    ask: (call) =>
      call.streamed || models.length === 1 ? new HandOver(inTurn(models, call)) : new SideBySide(models, call),
  };
}

interface Candidate {
  readonly model: Model;
  readonly call: ModelCall;
  /** See `ModelCall.isReplaceable`. */
  readonly isReplaceable?: boolean;
  readonly isLast: boolean;
  /** When it is asked, as `performance.now()`. Absent: at once. */
  readonly at?: number;
}

/** A model whose vendor has said when it takes calls again. */
interface Waiting {
  readonly model: Model;
  /** As `performance.now()`. */
  readonly at: number;
  /** Whether it takes no calls at all until then: it loads or restarts. */
  readonly isAway: boolean;
}

/** The models to ask, one after the other, and why each has failed. */
class Candidates {
  readonly causes: unknown[] = [];
  readonly #models: readonly Model[];
  readonly #call: ModelCall;
  /** The model with the lowest share of failed requests of those whose circuit is open. */
  #leastBad: { model: Model; failedShare: number } | undefined;
  /** Models that can be called again after a wait. Undefined before the first. */
  #waiting: Waiting[] | undefined;
  /** Factor of the next wait by model, so that many requests do not ask a vendor for long that has trouble. */
  #patience: Map<Model, number> | undefined;
  /** Whether a model refused the request's content. Then the request is the cause, and no last resort is asked. */
  #isRefused = false;

  constructor(models: readonly Model[], call: ModelCall) {
    this.#models = models;
    this.#call = call;
  }

  /** The models in order, then the last resorts. Where there are several, none is called again after a long wait. */
  *next(): Generator<Candidate, void, undefined> {
    const call = this.#call;
    const isReplaceable = call.isReplaceable || this.#models.length > 1;
    for (const [at, model] of this.#models.entries())
      yield { model, call, isReplaceable, isLast: at === this.#models.length - 1 };
    yield* this.#lastResorts();
  }

  *#lastResorts(): Generator<Candidate, void, undefined> {
    const call = this.#call;
    const soonest = this.#takeSoonest();
    if (soonest) yield { ...soonest, call, isReplaceable: soonest.isAway, isLast: !this.#leastBad };
    const { model } = this.#leastBad ?? {};
    const resort = { ...call, isLastResort: true };
    if (model && !this.#isRefused) yield { model, call: resort, isLast: true };
    const takeAway = () => this.#takeSoonest(({ isAway }) => isAway);
    // Its next try is made here, where the wait is compared with the remaining time.
    for (let away = takeAway(); away; away = takeAway())
      yield { ...away, call: resort, isReplaceable: true, isLast: true };
  }

  /** The model of `which` that can be called again first, if that is in time. Its next wait is twice as long. */
  #takeSoonest(which = (_: Waiting) => true): Waiting | undefined {
    const call = this.#call;
    const [soonest] = this.#waiting?.filter(which).sort((a, b) => a.at - b.at) ?? [];
    const isInTime = soonest && soonest.at - performance.now() < halfOfTheRest(call);
    if (!isInTime || this.#isRefused || call.isReplaceable) return undefined;
    const { model } = soonest;
    this.#waiting = this.#waiting?.filter((one) => one !== soonest);
    this.#patience ??= new Map();
    this.#patience.set(model, 2 * (this.#patience.get(model) ?? 1));
    return soonest;
  }

  fail(model: Model, error: unknown): void {
    this.causes.push(error);
    const { kind, status, failedShare } = error instanceof ModelError ? error : {};
    if (kind === "refused") this.#isRefused = true;
    if (failedShare !== undefined && failedShare < (this.#leastBad?.failedShare ?? Number.POSITIVE_INFINITY))
      this.#leastBad = { model, failedShare };
    const isAway = status === 503 && !this.#call.hasDraft;
    // A model without others has been called again after each wait.
    const mayWait = isAway || this.#models.length > 1;
    const wait = error instanceof ModelError && mayWait ? deferredMs(error) : undefined;
    if (wait === undefined) return;
    this.#waiting ??= [];
    this.#waiting.push({ model, at: performance.now() + wait * (this.#patience?.get(model) ?? 1), isAway });
  }
}

async function* inTurn(
  models: readonly Model[],
  call: ModelCall,
): AsyncGenerator<Piece, Pieces | undefined, undefined> {
  const candidates = new Candidates(models, call);
  for (const { model, call: own, isReplaceable, isLast, at = 0 } of candidates.next()) {
    if (at > 0) await pause(Math.max(0, at - performance.now()), call.signal);
    const ask = isReplaceable ? { ...own, isReplaceable } : own;
    const pieces = model.ask(isLast ? ask : hurried(ask));
    let isHandedOver = false;
    try {
      for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
        if (next.value.type === "end") demandText(next.value.reason, call);
        yield next.value;
        if (next.value.type !== "text" && next.value.type !== "calls") continue;
        isHandedOver = true;
        return new LastTry(pieces, call.signal, candidates.causes);
      }
      return undefined;
    } catch (error) {
      call.signal.throwIfAborted();
      candidates.fail(model, error);
    } finally {
      if (!isHandedOver) await pieces.return?.();
    }
  }
  throw new UpstreamError(candidates.causes);
}

/** The rest of a completion whose first text was delivered, so no other model can take over. */
class LastTry implements Pieces {
  readonly #pieces: Pieces;
  readonly #signal: Signal;
  readonly #causes: readonly unknown[];

  /** @param causes what the models before this one threw */
  constructor(pieces: Pieces, signal: Signal, causes: readonly unknown[]) {
    this.#pieces = pieces;
    this.#signal = signal;
    this.#causes = causes;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): NextPiece | Promise<NextPiece> {
    const reading = this.#pieces.next();
    return reading instanceof Promise ? reading.catch(this.#fail) : reading;
  }

  readonly #fail = (error: unknown): never => {
    this.#signal.throwIfAborted();
    throw new UpstreamError([...this.#causes, error]);
  };

  return(): NextPiece | Promise<NextPiece> {
    return this.#pieces.return?.() ?? NO_PART;
  }
}

/** The first whole completion of several models. Without a generator, which takes 0.5 µs for each piece. */
class SideBySide implements Pieces {
  readonly #models: readonly Model[];
  readonly #call: ModelCall;
  /** Undefined before the first `next`. */
  #pieces: Iterator<Piece, undefined> | undefined;

  constructor(models: readonly Model[], call: ModelCall) {
    this.#models = models;
    this.#call = call;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): NextPiece | Promise<NextPiece> {
    return this.#pieces ? this.#pieces.next() : this.#ask();
  }

  return(): NextPiece {
    this.#pieces = NONE;
    return NO_PART;
  }

  /** @returns the first piece of the first completion */
  async #ask(): Promise<NextPiece> {
    // Nothing follows a failure.
    this.#pieces = NONE;
    const call = this.#call;
    const candidates = new Candidates(this.#models, call);
    const tries: WholeCompletion[] = [];
    try {
      for (const { model, call: own, isReplaceable, isLast, at = 0 } of candidates.next()) {
        if (at > 0) await pause(Math.max(0, at - performance.now()), call.signal);
        tries.push(new WholeCompletion(model, own, isReplaceable));
        const pieces = await firstOf(tries, candidates, isLast ? undefined : halfOfTheRest(call));
        call.signal.throwIfAborted();
        if (!pieces) continue;
        this.#pieces = pieces.values();
        return this.#pieces.next();
      }
    } finally {
      for (const each of tries) each.end();
    }
    throw new UpstreamError(candidates.causes);
  }
}

const NONE: Iterator<Piece, undefined> = [].values();

/**
 * Created once, because creating an error with its stack costs more than the rest of an abort. It is a ModelError, so
 * that it counts against the slow model.
 */
const OVERTAKEN = new ModelError("Another model was quicker.", { retryable: false });

/** One model that is asked for a whole completion. */
class WholeCompletion {
  readonly model: Model;
  readonly #link: LinkedAbort;
  /** Undefined while the model works. */
  result: { pieces: readonly Piece[] } | { error: unknown } | undefined;
  /** Called when the result is set. */
  onResult: () => void = () => undefined;

  constructor(model: Model, call: ModelCall, isReplaceable = false) {
    this.model = model;
    this.#link = new LinkedAbort(call.signal);
    this.#run(call, isReplaceable);
  }

  /** A completion without text and calls counts as failed. */
  #run(call: ModelCall, isReplaceable: boolean): void {
    const all: Piece[] = [];
    let hasText = false;
    const reading = forEach(this.model.ask({ ...call, isReplaceable, signal: this.#link.signal }), (piece) => {
      if (piece.type === "text" || piece.type === "calls") hasText = true;
      else if (piece.type === "end" && !hasText) demandText(piece.reason, call);
      all.push(piece);
      return undefined;
    });
    reading.then(
      () => this.#end({ pieces: all }),
      (error) => this.#end({ error }),
    );
  }

  #end(result: WholeCompletion["result"]): void {
    this.result = result;
    this.onResult();
  }

  /** Aborts the call if it still runs. */
  end(): void {
    if (this.result) this.#link.release();
    else this.#link.abort(OVERTAKEN);
  }
}

/**
 * Waits for the first completion. Moves failed tries from `tries` to `candidates`.
 * @returns its pieces; undefined when all tries have failed, or after `ms`
 */
function firstOf(
  tries: WholeCompletion[],
  candidates: Candidates,
  ms: number | undefined,
): Promise<readonly Piece[] | undefined> {
  // `Promise.race` would make four promises for each try.
  return new Promise((resolve) => {
    const look = (isUp: boolean) => {
      const pieces = takeResult(tries, candidates);
      if (!pieces && tries.length > 0 && !isUp) return;
      clearTimeout(timer);
      resolve(pieces);
    };
    const timer = ms === undefined ? undefined : setTimeout(look, ms, true);
    for (const one of tries) one.onResult = () => look(false);
    look(false);
  });
}

/** Moves failed tries from `tries` to `candidates`. @returns the pieces of a try that delivered */
function takeResult(tries: WholeCompletion[], candidates: Candidates): readonly Piece[] | undefined {
  for (const one of [...tries]) {
    if (!one.result) continue;
    if ("pieces" in one.result) return one.result.pieces;
    candidates.fail(one.model, one.result.error);
    tries.splice(tries.indexOf(one), 1);
    one.end();
  }
  return undefined;
}

function halfOfTheRest({ endsAt }: ModelCall): number {
  return Math.max(0, (endsAt - performance.now()) / 2);
}

/** The call for a model that is not the last: its first text must arrive within half of the remaining time. */
function hurried(call: ModelCall): ModelCall {
  return { ...call, silenceMs: Math.min(call.silenceMs ?? Number.POSITIVE_INFINITY, halfOfTheRest(call)) };
}

/** @throws ModelError unless a stop sequence may have ended the completion before its first text */
function demandText(reason: EndReason, { stops = [], containsStop }: ModelCall): void {
  if (reason === "content_filter")
    throw new ModelError("The vendor's safety filter or the model refused.", { retryable: false, kind: "refused" });
  if (reason === "stop" && stops.length > 0 && !containsStop) return;
  throw new ModelError("The completion has no text.", { retryable: false });
}
