import type { ModelCost } from "../admission/lease.ts";
import type { CallReport } from "../engine/answer.ts";

/** Resolves after this turn of the event loop; one promise for all requests of the turn. */
let turn: Promise<void> | undefined;

/**
 * Resolves when the calls that were aborted in this turn of the event loop have reported what they used: they do when
 * their connection closes, which takes one turn. It also waits if no call was aborted, because that is quicker:
 * answers that end together take 130 µs each in place of 160, because their code is in the processor's cache.
 */
export function abortedCalls(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}

/** What the calls for one generation used, and how many models were called. */
export type TotalCost = ModelCost & { models: number };

/** Most calls that are kept. */
const MAX_CALLS = 24;

/** The cost of the model calls for one generation. A class, because it holds less until the first call ends. */
export class Cost {
  #count = 0;
  #inputTokens = 0;
  #outputTokens = 0;
  #usd: number | undefined;
  /** Names of the models that were called. */
  #models: Set<string> | undefined;
  readonly #calls: CallReport[] | undefined;

  /** @param keepsCalls whether `calls` has the calls that have ended */
  constructor(keepsCalls = false) {
    this.#calls = keepsCalls ? [] : undefined;
  }

  /** The first calls that have ended. */
  get calls(): readonly CallReport[] {
    return this.#calls ?? [];
  }

  /** Number of calls that have ended. */
  get count(): number {
    return this.#count;
  }

  /** Adds a call that has ended. */
  readonly add = (call: CallReport): void => {
    const { model, inputTokens, outputTokens, usd } = call;
    if (this.#calls && this.#calls.length < MAX_CALLS) this.#calls.push(call);
    this.#count += 1;
    this.#inputTokens += inputTokens;
    this.#outputTokens += outputTokens;
    if (usd !== undefined) this.#usd = (this.#usd ?? 0) + usd;
    this.#models ??= new Set();
    this.#models.add(model);
  };

  /** The total so far, and the number of models that were called. */
  sum(): TotalCost {
    return {
      calls: this.#count,
      inputTokens: this.#inputTokens,
      outputTokens: this.#outputTokens,
      usd: this.#usd,
      models: this.#models?.size ?? 0,
    };
  }
}
