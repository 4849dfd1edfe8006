import { Failure } from "../failure.ts";

/**
 * Does things together that arrive while an earlier batch is under way, so that a busy database sees fewer, larger statements and an idle
 * one is asked at once. One batch runs at a time; no timer is involved.
 * @param run does one batch and gives a result for each item, in the items' order; when it throws, every item of the batch fails
 * @param limits most items of one batch, and most items that may wait
 * @returns a function that does one item; it throws `overloaded` when too many wait
 */
export function createBatcher<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  { maxItems, maxWaiting }: { maxItems: number; maxWaiting: number },
): (item: Item) => Promise<Result> {
  interface Waiting {
    item: Item;
    resolve(result: Result): void;
    reject(error: unknown): void;
  }
  let waiting: Waiting[] = [];
  let running = false;

  async function work(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxItems);
      waiting = waiting.slice(maxItems);
      try {
        const results = await run(batch.map(({ item }) => item));
        for (const [i, { resolve }] of batch.entries()) resolve(results[i] as Result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    running = false;
  }

  return (item) => {
    if (waiting.length >= maxWaiting) return Promise.reject(new Failure("overloaded", { retryAfterMs: 1_000 }));
    return new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!running) void work();
    });
  };
}
