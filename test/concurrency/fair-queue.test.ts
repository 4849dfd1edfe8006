import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { test } from "vitest";
import { FairQueue, type FairQueueOptions, type Permit } from "../../src/concurrency/fair-queue.ts";

/** Takes permits that need no wait. */
function take(queue: FairQueue, key: string, count: number): Permit[] {
  return Array.from({ length: count }, () => queue.tryAcquire(key) ?? assert.fail(`${key} got no permit`));
}

const release = (permits: readonly Permit[]) => {
  for (const permit of permits) permit[Symbol.dispose]();
};

/** Requests permits, and notes the name of each request when it is served or refused. */
function observe(queue: FairQueue, log: string[]) {
  return (key: string, name: string, options = {}) =>
    queue.acquire(key, options).then(
      (permit) => {
        log.push(name);
        return [permit];
      },
      (error) => {
        log.push(`${name}: ${error.reason ?? error.message}`);
        return [];
      },
    );
}

test("gives free permits at once and up to the capacity", () => {
  const queue = new FairQueue({ capacity: 2 });
  const permits = take(queue, "a", 2);
  assert.equal(queue.tryAcquire("b"), undefined);
  release(permits);
  release(permits);
  release(take(queue, "b", 2));
  assert.deepEqual(queue.size, { held: 0, waiting: 0, keys: 0 }, "a second disposal has no effect");
});

test("gives the next permit to the key that holds the fewest, then to the one that got its last before", async () => {
  const queue = new FairQueue({ capacity: 4 });
  const [a1, a2, a3, b1] = [...take(queue, "a", 3), ...take(queue, "b", 1)];
  const log: string[] = [];
  const ask = observe(queue, log);
  const waiting = [ask("a", "a4"), ask("b", "b2"), ask("c", "c1"), ask("c", "c2"), ask("b", "b3")];
  for (const permit of [a1, a2, a3, b1]) {
    release(permit ? [permit] : []);
    await nextTurn();
  }
  // c holds none; then all hold one each, and a, b and c got theirs in this order.
  assert.deepEqual(log, ["c1", "a4", "b2", "c2"]);
  release(await (waiting[0] ?? []));
  release((await Promise.all(waiting)).flat());
});

test("serves keys in turn when each has one permit at a time", async () => {
  const queue = new FairQueue({ capacity: 1 });
  const held = take(queue, "a", 1);
  const log: string[] = [];
  const ask = observe(queue, log);
  const all = [ask("a", "a1"), ask("a", "a2"), ask("a", "a3"), ask("b", "b1"), ask("b", "b2"), ask("c", "c1")];
  for (const each of all) each.then(release);
  release(held);
  await Promise.all(all);
  assert.deepEqual(log, ["b1", "c1", "a1", "b2", "a2", "a3"]);
});

test("keeps a part free for other keys", () => {
  const queue = new FairQueue({ capacity: 100, perFree: 4 });
  const counts = ["a", "b", "c"].map((key) => {
    let count = 0;
    while (queue.tryAcquire(key)) count++;
    return count;
  });
  assert.deepEqual(counts, [80, 16, 4]);
  const small = new FairQueue({ capacity: 1, perFree: 4 });
  assert.ok(small.tryAcquire("a"));
});

test("refuses the newest request of the key with the most when the queue is full", async () => {
  const queue = new FairQueue({ capacity: 1, maxWaiting: 4, maxWaitingPerKey: 3 });
  const held = take(queue, "a", 1);
  const log: string[] = [];
  const ask = observe(queue, log);
  const waiting = [ask("a", "a1"), ask("a", "a2"), ask("a", "a3"), ask("a", "a4"), ask("b", "b1"), ask("c", "c1")];
  await nextTurn();
  assert.deepEqual(log, ["a4: full", "a3: full"], "the bound of one key, then that of all");
  waiting.push(ask("b", "b2"));
  await nextTurn();
  assert.deepEqual(log.splice(0), ["a4: full", "a3: full", "b2: full"], "no key has more than b would have");
  release(held);
  for (const each of [waiting[4], waiting[5], waiting[0], waiting[1]]) release((await each) ?? []);
  assert.deepEqual(log, ["b1", "c1", "a1", "a2"]);
  assert.deepEqual(queue.size, { held: 0, waiting: 0, keys: 0 });
});

test("refuses at once a request that would wait past its deadline, and says when to retry", async () => {
  let now = 0;
  const queue = new FairQueue({ capacity: 2, clock: () => now });
  const first = take(queue, "a", 2);
  now = 10_000;
  release(first);
  const held = take(queue, "a", 2);
  // Permits are held for 10 s, so two permits give one release every 5 s.
  const late = { name: "QueueRefusal", reason: "late", retryAfterMs: 5_000 };
  await assert.rejects(queue.acquire("b", { deadline: now + 4_999 }), late);
  const b = queue.acquire("b", { deadline: now + 5_001 });
  await assert.rejects(queue.acquire("b", { deadline: now + 9_999 }), { ...late, retryAfterMs: 10_000 });
  await assert.rejects(queue.acquire("c", { deadline: now + 9_999 }), { ...late, retryAfterMs: 10_000 });
  await assert.rejects(queue.acquire("c", { deadline: now - 1 }), { reason: "late" });
  release(held);
  release([await b]);
});

test("refuses a request whose deadline passes while it waits", async () => {
  const queue = new FairQueue({ capacity: 1 });
  const held = take(queue, "a", 1);
  const expected = { name: "QueueRefusal", reason: "late", retryAfterMs: 1_000 };
  await assert.rejects(queue.acquire("b", { deadline: performance.now() + 20 }), expected);
  assert.equal(queue.size.waiting, 0);
  release(held);
});

test("ends the wait of a request that aborts, with its reason", async () => {
  const queue = new FairQueue({ capacity: 1 });
  const held = take(queue, "a", 1);
  const gone = new Error("gone");
  await assert.rejects(queue.acquire("b", { signal: AbortSignal.abort(gone) }), gone);
  const abort = new AbortController();
  const waiting = queue.acquire("b", { signal: abort.signal });
  abort.abort(gone);
  await assert.rejects(waiting, gone);
  release(held);
  assert.deepEqual(queue.size, { held: 0, waiting: 0, keys: 0 });
});

/** Runs of the property; set CHORUS_TEST_RUNS for a longer search. */
const RUNS = Number(process.env.CHORUS_TEST_RUNS ?? 300);

type Step =
  | { do: "ask"; key: string }
  | { do: "release"; which: number }
  | { do: "leave"; which: number }
  | { do: "resize"; capacity: number };

const which = fc.nat(30);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("ask" as const), key: fc.constantFrom("a", "a", "b", "c") }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("release" as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("leave" as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("resize" as const), capacity: fc.integer({ min: 1, max: 8 }) }) },
);

const KEYS = ["a", "b", "c"];

interface Request {
  id: number;
  key: string;
}

/** The rules of the queue over plain lists. */
class Reference {
  held: Request[] = [];
  waiting: Request[] = [];
  refused: Request[] = [];
  /** The order in which the keys with held or waiting requests last got a permit. */
  served: string[] = [];
  readonly options: Required<Omit<FairQueueOptions, "clock">>;

  constructor(options: Reference["options"]) {
    this.options = options;
  }

  ask(request: Request): void {
    this.forget();
    this.waiting.push(request);
    this.serve();
    const most = Math.max(...KEYS.map((key) => this.of(this.waiting, key)));
    if (this.of(this.waiting, request.key) > this.options.maxWaitingPerKey) this.refuse(request);
    else if (this.waiting.length > this.options.maxWaiting) {
      const newest = this.waiting.findLast(({ key }) => this.of(this.waiting, key) === most);
      if (newest) this.refuse(newest);
    }
  }

  refuse(request: Request): void {
    this.waiting.splice(this.waiting.indexOf(request), 1);
    this.refused.push(request);
  }

  serve(): void {
    this.forget();
    for (;;) {
      const free = this.options.capacity - this.held.length;
      const [next] = this.waiting.toSorted(
        (a, b) =>
          this.of(this.held, a.key) - this.of(this.held, b.key) ||
          this.served.lastIndexOf(a.key) - this.served.lastIndexOf(b.key) ||
          a.id - b.id,
      );
      if (!next || free <= 0 || this.of(this.held, next.key) + 1 > free * this.options.perFree) return;
      this.waiting.splice(this.waiting.indexOf(next), 1);
      this.held.push(next);
      this.served.push(next.key);
    }
  }

  forget(): void {
    const known = new Set([...this.held, ...this.waiting].map(({ key }) => key));
    this.served = this.served.filter((key) => known.has(key));
  }

  of(list: readonly Request[], key: string): number {
    return list.filter((one) => one.key === key).length;
  }
}

test("behaves like the reference, never exceeds its capacity, serves everyone and forgets idle keys", async () => {
  const options = fc.record({
    capacity: fc.integer({ min: 1, max: 6 }),
    perFree: fc.constantFrom(1, 2, 4, Number.MAX_VALUE),
    maxWaiting: fc.integer({ min: 0, max: 10 }),
    maxWaitingPerKey: fc.integer({ min: 1, max: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(options, fc.array(step, { maxLength: 80 }), async (options, steps) => {
      const queue = new FairQueue(options);
      const model = new Reference({ ...options });
      const permits = new Map<number, Permit>();
      const refused: number[] = [];
      const aborts = new Map<number, AbortController>();
      let asked = 0;

      const perform = async (step: Step) => {
        const { held } = queue.size;
        if (step.do === "ask") {
          const request = { id: asked++, key: step.key };
          const abort = new AbortController();
          aborts.set(request.id, abort);
          queue.acquire(step.key, { signal: abort.signal }).then(
            (permit) => permits.set(request.id, permit),
            () => refused.push(request.id),
          );
          model.ask(request);
        } else if (step.do === "release") {
          const [request] = model.held.splice(step.which % Math.max(1, model.held.length), 1);
          if (!request) return;
          permits.get(request.id)?.[Symbol.dispose]();
          permits.delete(request.id);
          model.serve();
        } else if (step.do === "leave") {
          const request = model.waiting[step.which % Math.max(1, model.waiting.length)];
          if (!request) return;
          model.refuse(request);
          aborts.get(request.id)?.abort();
        } else {
          queue.capacity = step.capacity;
          model.options.capacity = step.capacity;
          model.serve();
        }
        await nextTurn();
        assert.ok(queue.size.held <= Math.max(held, queue.capacity));
        assert.deepEqual([...permits.keys()].toSorted(ascending), model.held.map(({ id }) => id).toSorted(ascending));
        assert.deepEqual(refused.toSorted(ascending), model.refused.map(({ id }) => id).toSorted(ascending));
        const keys = new Set([...model.held, ...model.waiting].map(({ key }) => key)).size;
        assert.deepEqual(queue.size, { held: model.held.length, waiting: model.waiting.length, keys });
      };
      for (const step of steps) await perform(step);
      while (permits.size > 0) await perform({ do: "release", which: 0 });
      assert.deepEqual(queue.size, { held: 0, waiting: 0, keys: 0 }, "everyone is served");
    }),
    { numRuns: RUNS },
  );
});

const ascending = (a: number, b: number) => a - b;
