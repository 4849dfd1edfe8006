import { Failure } from "../failure.ts";

interface Waiting<Item, Result> {
  item: Item;
  /** `performance.now()` at its arrival. */
  since: number;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Does things together that arrive for the same key while an earlier batch of that key is under way, so that a busy database sees fewer,
 * larger statements and an idle one is asked at once. One batch of a key runs at a time; keys do not wait for each other. No timer is involved.
 * @param run does one batch and gives a result for each item, in the items' order; when it throws, every item of the batch fails
 * @param limits most items of one batch, and most items of all keys that may wait
 * @param onBatch hears, when a batch starts, how long each of its items had waited, in milliseconds
 * @returns a function that does one item; it throws `overloaded` when too many wait
 */
export function createBatcher<Item, Result>(
  run: (key: string, items: Item[]) => Promise<Result[]>,
  { maxItems, maxWaiting }: { maxItems: number; maxWaiting: number },
  onBatch?: (waitedMs: readonly number[]) => void,
): (key: string, item: Item) => Promise<Result> {
  const queues = new Map<string, Waiting<Item, Result>[]>();
  let waiting = 0;

  async function work(key: string, queue: Waiting<Item, Result>[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, maxItems);
      waiting -= batch.length;
      const now = performance.now();
      onBatch?.(batch.map(({ since }) => now - since));
      try {
        const results = await run(
          key,
          batch.map(({ item }) => item),
        );
        for (const [i, { resolve }] of batch.entries()) resolve(results[i] as Result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    queues.delete(key);
  }

  return (key, item) => {
    if (waiting >= maxWaiting) return Promise.reject(new Failure("overloaded", { retryAfterMs: 1_000 }));
    return new Promise((resolve, reject) => {
      waiting += 1;
      const queue = queues.get(key);
      const entry = { item, since: performance.now(), resolve, reject };
      if (queue) queue.push(entry);
      else {
        const fresh = [entry];
        queues.set(key, fresh);
        void work(key, fresh);
      }
    });
  };
}
