import type { Signal } from "../concurrency/abort.ts";
import { type NextPart, NO_PART, type Parts } from "../concurrency/parts.ts";
import { Turns } from "../concurrency/turns.ts";
import type { End, NextPiece, Pieces, Step } from "../models/port/model.ts";
import { createStopper, type Stopper } from "../models/stop.ts";
import { PER_TURN } from "../overload/bounds.ts";
import { Steps } from "./plan/step.ts";
import { buildPrompt } from "./prompt.ts";
import {
  type Engine,
  type EngineEvent,
  type Finish,
  modelCall,
  outputCeiling,
  planOf,
  type Question,
  toUpstreamFailure,
} from "./question.ts";
import { extractObject } from "./structured/repair.ts";
import type { TokenMeter } from "./tokens/token-meter.ts";

/**
 * Longest text that is counted at once, in UTF-16 units. It takes 0.2 ms, and 7 ms in the worst case. A whole answer
 * arrives as one text.
 */
const SLICE = 8 * 1024;

/** Slices of long texts that are counted, one of each answer in turn. */
const slices = new Turns<string>(PER_TURN.counted);

type Next = NextPart<EngineEvent>;

const NONE: Iterator<EngineEvent, undefined> = [].values();

/**
 * The events of an answer that is text: it applies stop sequences and the ceiling to the pieces of the plan. A
 * hand-written iterator, because a generator takes longer for each piece and holds 0.4 KB more while it waits.
 * @throws Failure request_too_long when the request exceeds the context window of every model
 */
export class TextAnswer implements Parts<EngineEvent> {
  readonly #question: Question;
  readonly #signal: Signal;
  readonly #pieces: Pieces;
  readonly #stopper: Stopper;
  readonly #meter: TokenMeter;
  /** Steps that have begun but not ended. Undefined without steps. */
  #openSteps: Map<number, Step> | undefined;
  /** Text of a long piece that has not been counted. */
  #rest = "";
  /** The answer so far, with shape `extract`. */
  #text = "";
  #isStopped = false;
  /** The events after those of the pieces; undefined before the end of the pieces. */
  #last: Iterator<EngineEvent, undefined> | undefined;

  /** @param pieces of the models. Default: those of the plan for the question. */
  constructor(engine: Engine, question: Question, signal: Signal, pieces?: Pieces) {
    this.#question = question;
    this.#signal = signal;
    // The plan is not kept, because it takes 1 KB.
    this.#pieces = pieces ?? ask(engine, question, signal);
    this.#stopper = createStopper(question.stops);
    this.#meter = engine.tokenizer.meter(outputCeiling(question));
  }

  /** Whether a stop sequence or the ceiling has ended the answer. */
  get isOver(): boolean {
    return this.#isStopped || this.#meter.full;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Next | Promise<Next> {
    if (this.#last) return this.#last.next();
    if (this.#rest !== "") return this.#takeSlice();
    // A unary call has already ended. Its end, which has the usage, is still to come.
    if (this.#question.streamed && this.isOver) return this.#leave(undefined);
    const reading = this.#pieces.next();
    return reading instanceof Promise ? reading.then(this.#take, this.#fail) : this.#take(reading);
  }

  return(): Next | Promise<Next> {
    this.#last = NONE;
    const leaving = this.#pieces.return?.();
    return leaving instanceof Promise ? leaving.then(() => NO_PART) : NO_PART;
  }

  readonly #take = ({ done, value: piece }: NextPiece): Next | Promise<Next> => {
    if (done) return this.#finish(undefined);
    if (piece.type === "end") return this.#leave(piece);
    if (piece.type === "step") {
      const { step } = piece;
      this.#openSteps ??= new Map();
      step.outcome ? this.#openSteps.delete(step.id) : this.#openSteps.set(step.id, step);
      return { done: false, value: piece };
    }
    if (piece.type !== "text" || this.#isStopped) return this.next();
    if (piece.text.length <= SLICE) return this.#push(piece.text);
    this.#rest = piece.text;
    return this.#takeSlice();
  };

  readonly #fail = (error: unknown): never => {
    this.#last = NONE;
    throw this.#signal.aborted ? this.#signal.reason : toUpstreamFailure(error, this.#question);
  };

  async #takeSlice(): Promise<Next> {
    await slices.enter(this.#question.generation);
    const slice = this.#rest.slice(0, SLICE);
    this.#rest = this.#rest.slice(SLICE);
    return this.#push(slice);
  }

  #push(piece: string): Next | Promise<Next> {
    const { text, stopped } = this.#stopper.push(piece);
    const counted = this.#meter.push(text);
    this.#isStopped = stopped;
    if (stopped) this.#rest = "";
    if (counted === "") return this.next();
    if (this.#question.shape === "extract") this.#text += counted;
    return { done: false, value: { type: "text", text: counted } };
  }

  /** Ends the call of the models. */
  #leave(end: End | undefined): Next | Promise<Next> {
    const leaving = this.#pieces.return?.();
    return leaving instanceof Promise ? leaving.then(() => this.#finish(end), this.#fail) : this.#finish(end);
  }

  #finish(end: End | undefined): Next {
    const meter = this.#meter;
    const rest = meter.push(this.#isStopped ? "" : this.#stopper.flush()) + meter.flush();
    const events: EngineEvent[] = rest === "" ? [] : [{ type: "text", text: rest }];
    for (const step of this.#openSteps?.values() ?? []) events.push({ type: "step", step: { ...step, outcome: "ok" } });
    const { shape, maxTokens } = this.#question;
    const stop = meter.full ? undefined : this.#stopper.found;
    const finish: Finish = {
      type: "finish",
      reason: stop === undefined ? endReason(end, meter, maxTokens) : "stop",
      ...(stop === undefined ? {} : { stop }),
      outputTokens: meter.tokens,
      cachedTokens: end?.usage?.cachedTokens ?? 0,
      model: end?.model,
      version: end?.version,
    };
    if (shape === "extract") {
      const { structured, error } = extractObject(this.#text + rest);
      finish.structured = structured ?? "null";
      if (error !== null) finish.structuredError = error;
    }
    events.push(finish);
    this.#last = events.values();
    return this.#last.next();
  }
}

function ask(engine: Engine, question: Question, signal: Signal): Pieces {
  const read = (text: string) => extractObject(text).structured ?? undefined;
  const plan = planOf(engine, question, new Steps(question.trace), read);
  return plan.ask(modelCall(question, signal, buildPrompt(question.conversation, question.shape)));
}

/** Output limits of current models are not below this, so a smaller limit that was reached is the caller's. */
const MIN_MODEL_LIMIT = 4_096;

/**
 * Why an answer ended, unless a stop sequence ended it. A ceiling that the caller did not set is the service's, so the
 * reason is `cut`. When the model reports `length`, the reason is `length` if the caller's limit was reached: it is
 * small, or the answer has at least half of it by the vendor's count or ours, which differ by less than half. Else, and
 * where the model was asked for less than that limit, the limit was the model's or a draft's, and the reason is `cut`.
 */
function endReason(
  end: End | undefined,
  { tokens, full }: Pick<TokenMeter, "tokens" | "full">,
  maxTokens = Number.POSITIVE_INFINITY,
): Finish["reason"] {
  if (full) return Number.isFinite(maxTokens) ? "length" : "cut";
  if (end?.reason === "stop") return "stop";
  if (end?.reason !== "length") return end?.reason === "content_filter" ? "filtered" : "cut";
  if (end.isOwnLimit) return "cut";
  const written = (end.usage?.outputTokens ?? 0) - (end.usage?.thinkingTokens ?? 0);
  const isReached = 2 * Math.max(written, tokens) >= maxTokens;
  return maxTokens <= MIN_MODEL_LIMIT || isReached ? "length" : "cut";
}
