import { NO_PART } from "../../concurrency/parts.ts";
import type { Model, ModelCall, NextPiece, Piece, Pieces, Prompt, Step } from "../../models/port/model.ts";
import { tracedParts } from "../../telemetry/tracing.ts";
import { type Steps, stepPiece } from "./step.ts";

/** The pieces of a completion, as the models of this folder make them. */
export type PieceGenerator = AsyncGenerator<Piece, void, undefined>;

/** A model that gets a changed prompt. */
export function withPrompt(model: Model, change: (prompt: Prompt) => Prompt): Model {
  return { name: model.name, ask: (call) => model.ask({ ...call, prompt: change(call.prompt) }) };
}

export interface StepOptions {
  /** See `Step.kind`. */
  kind: string;
  /** See `Step.role`. */
  role: string;
  /** What the step is for, as a sentence for the caller; a function gets the role of the model that answered. */
  detail?: string | ((role: string) => string) | undefined;
  /** The role of a model by its catalogue name: the model that answered may be another one after a failover. */
  roleOf?: ((model: string) => string | undefined) | undefined;
  /** Whether the model streams. If not it makes unary calls, which are cheaper and can be replaced until they end. */
  streamed: boolean;
}

/** A model that reports each call as one step: its start before the model is called, its end before the end piece. */
export function withStep(model: Model, options: StepOptions, steps: Steps): Model {
  const { kind, role, streamed } = options;
  return {
    name: model.name,
    ask(call) {
      const own = call.streamed === streamed ? call : { ...call, streamed };
      const pieces = steps.areRead ? new StepPieces(model, own, options, steps) : model.ask(own);
      return tracedParts(kind, pieces, { attributes: { "chorus.role": role }, signal: call.signal });
    },
  };
}

/** The pieces of a call between the start and the end of its step. Every piece of an answer passes through it. */
class StepPieces implements Pieces {
  readonly #options: StepOptions;
  readonly #step: Step;
  readonly #pieces: Pieces;
  #hasBegun = false;
  /** Comes after the end of the step: the end, or what the model has thrown. */
  #last: NextPiece | Promise<NextPiece> | undefined;

  constructor(model: Model, call: ModelCall, options: StepOptions, steps: Steps) {
    this.#options = options;
    this.#step = steps.begin(options.kind, options.role);
    // It starts with its first piece.
    this.#pieces = model.ask({ ...call, step: this.#step.id });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): NextPiece | Promise<NextPiece> {
    if (this.#last) {
      const last = this.#last;
      this.#last = undefined;
      return last;
    }
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: stepPiece(this.#step) };
    }
    const reading = this.#pieces.next();
    return reading instanceof Promise ? reading.then(this.#take, this.#fail) : this.#take(reading);
  }

  return(): NextPiece | Promise<NextPiece> {
    return this.#pieces.return?.() ?? NO_PART;
  }

  readonly #take = (next: NextPiece): NextPiece => {
    if (next.done || next.value.type !== "end") return next;
    const { role, roleOf, detail } = this.#options;
    this.#last = next;
    const by = roleOf?.(next.value.model) ?? role;
    const why = typeof detail === "function" ? detail(by) : detail;
    const ended: Step = { ...this.#step, role: by, outcome: "ok", ...(why ? { detail: why } : {}) };
    return { done: false, value: stepPiece(ended) };
  };

  readonly #fail = (error: unknown): NextPiece => {
    const failed = Promise.reject(error);
    // It is handled when it is read.
    failed.catch(() => {});
    this.#last = failed;
    return { done: false, value: stepPiece({ ...this.#step, outcome: "failed" }) };
  };
}
