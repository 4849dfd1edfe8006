import { setImmediate as nextTurn } from "node:timers/promises";
import type { ModelCost } from "../admission/lease.ts";
import type { ModelCall } from "../telemetry.ts";

/** The cost of the model calls for one generation. */
export interface Cost extends Disposable {
  /**
   * The total so far, and the number of models that were called. Includes calls aborted in this turn of the event loop.
   */
  sum(): Promise<ModelCost & { models: number }>;
}

/** The costs of running generations. */
export interface Costs {
  /** Starts the total of a generation, which is kept until it is disposed. */
  begin(generation: string): Cost;
  /**
   * Adds a call that has ended. Calls of a generation that is not running are ignored here and only appear in the
   * metrics.
   */
  add(call: ModelCall, generation: string | undefined): void;
}

export function createCosts(): Costs {
  const running = new Map<string, ModelCost & { names: Set<string> }>();
  return {
    begin(generation) {
      const total: ModelCost & { names: Set<string> } = {
        calls: 0,
        inputTokens: 0,
        outputTokens: 0,
        usd: undefined,
        names: new Set(),
      };
      running.set(generation, total);
      return {
        async sum() {
          // An aborted call reports its usage when its connection closes, which takes one turn of the event loop.
          await nextTurn();
          const { names, ...sum } = total;
          return { ...sum, models: names.size };
        },
        [Symbol.dispose]: () => void running.delete(generation),
      };
    },
    add({ model, inputTokens, outputTokens, usd }, generation) {
      const total = generation === undefined ? undefined : running.get(generation);
      if (!total) return;
      total.calls += 1;
      total.inputTokens += inputTokens;
      total.outputTokens += outputTokens;
      if (usd !== undefined) total.usd = (total.usd ?? 0) + usd;
      total.names.add(model);
    },
  };
}
