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
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Processes items in batches: items that arrive while a batch runs form the next batch. This way a busy database gets
 * fewer and larger statements, and an idle one gets an item at once, without a timer. One batch runs at a time.
 * @param run processes one batch and returns a result for each item, in their order; when it throws, every item of the
 *   batch fails with that error
 * @param limits largest number of items of one batch, and largest number of items that wait
 * @returns a function that processes one item; it rejects with `overloaded` when too many items wait
 */
export function createBatcher<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  { maxItems, maxWaiting }: { maxItems: number; maxWaiting: number },
): (item: Item) => Promise<Result> {
  const queue: Queued<Item, Result>[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    while (queue.length > 0) {
      const batch = queue.splice(0, maxItems);
      try {
        const results = await run(batch.map(({ item }) => item));
        for (const [i, { item, resolve }] of batch.entries()) turns.run(item, () => resolve(results[i] as Result));
      } catch (error) {
        for (const { item, reject } of batch) turns.run(item, () => reject(error));
      }
    }
    isRunning = false;
  }

  return (item) => {
    if (queue.length >= maxWaiting) return Promise.reject(new Failure("overloaded"));
    return new Promise((resolve, reject) => {
      queue.push({ item, resolve, reject });
      if (!isRunning) void runAll();
    });
  };
}
