import { Turns } from "../concurrency/turns.ts";
import { Failure } from "../contract/failure.ts";
import { PER_TURN } from "../overload/bounds.ts";

/**
 * Ends of items, of each item in turn. Equal items share a place. What follows an end is a response, for example. The
 * whole process shares it, because it has one event loop.
 */
const turns = new Turns<unknown>(PER_TURN.results);

interface Queued<Item, Result> {
  item: Item;
  /** `performance.now()` at its arrival. */
  since: number;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Processes items in batches: items that arrive for a key while a batch of that key runs form the next batch. This way
 * a busy database gets fewer and larger statements, and an idle one gets an item at once, without a timer. One batch of
 * a key runs at a time; batches of different keys run in parallel.
 * @param run processes one batch and returns a result for each item, in their order; when it throws, every item of the
 *   batch fails with that error
 * @param limits largest number of items of one batch, and largest number of items that wait, of all keys
 * @param onBatch called when a batch starts, with the time that each of its items has waited, in milliseconds
 * @returns a function that processes one item; it rejects with `overloaded` when too many items wait
 */
export function createBatcher<Item, Result>(
  run: (key: string, items: Item[]) => Promise<Result[]>,
  { maxItems, maxWaiting }: { maxItems: number; maxWaiting: number },
  onBatch?: (waitedMs: readonly number[]) => void,
): (key: string, item: Item) => Promise<Result> {
  const queues = new Map<string, Queued<Item, Result>[]>();
  let waiting = 0;

  async function runQueue(key: string, queue: Queued<Item, Result>[]): Promise<void> {
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
        for (const [i, { item, resolve }] of batch.entries()) turns.run(item, () => resolve(results[i] as Result));
      } catch (error) {
        for (const { item, reject } of batch) turns.run(item, () => reject(error));
      }
    }
    queues.delete(key);
  }

  return (key, item) => {
    if (waiting >= maxWaiting) return Promise.reject(new Failure("overloaded"));
    return new Promise((resolve, reject) => {
      waiting += 1;
      const queue = queues.get(key);
      const entry = { item, since: performance.now(), resolve, reject };
      if (queue) queue.push(entry);
      else {
        const created = [entry];
        queues.set(key, created);
        void runQueue(key, created);
      }
    });
  };
}
