import { onAbort, type Signal } from "./abort.ts";
import { TransientMap, TransientSet } from "./transient.ts";

export interface FairQueueOptions {
  /** Most permits that are held at one time; may be changed later. */
  capacity: number;
  /**
   * Most permits that a key may hold for each permit that is free before it takes one; at least 1. With 4, one key
   * alone gets about 4/5 of the capacity and two keys 4/9 each, so a part stays free for keys that come later. This is
   * the dynamic threshold of shared switch buffers (Choudhury and Hahne, 1998). Default: no limit.
   */
  perFree?: number;
  /** Most waiting requests. Default 1,000. */
  maxWaiting?: number;
  /** Most waiting requests of one key. Default 100. */
  maxWaitingPerKey?: number;
  /** The current time in milliseconds, from any fixed point. Default `performance.now`. */
  clock?: () => number;
}

export interface AcquireOptions {
  /** Aborts the wait, which then rejects with the signal's reason. */
  signal?: Signal | undefined;
  /** Latest time for the permit, as a value of `clock`. Absent: any. */
  deadline?: number | undefined;
}

/** The right to do one piece of work. Disposing it more than once has no further effect. */
export interface Permit extends Disposable {}

/**
 * A request for a permit was refused. `full`: too many requests wait. `late`: it would get its permit after its
 * deadline.
 */
export class QueueRefusal extends Error {
  override name = "QueueRefusal";
  readonly reason: "full" | "late";
  /** Estimated time until a permit is available, in milliseconds: 1,000 to 30,000. */
  readonly retryAfterMs: number;

  constructor(reason: "full" | "late", waitMs: number | undefined) {
    super(reason === "full" ? "Too many requests wait." : "The request would wait past its deadline.");
    this.reason = reason;
    this.retryAfterMs = Math.min(30_000, Math.max(1_000, waitMs ?? 0));
  }
}

/** A key that holds permits or waits. */
interface Share {
  readonly key: string;
  held: number;
  /** Number of its latest permit, in the order of all permits; 0 before the first. */
  served: number;
  /** In the order of arrival. */
  readonly waiters: Waiter[];
}

interface Waiter {
  /** Number of the request, in the order of arrival over all keys. */
  readonly order: number;
  readonly promise: PromiseWithResolvers<Permit>;
  timer: NodeJS.Timeout | undefined;
  unlink: () => void;
}

/** A class and not an object with a closure, which takes twice as long to create. */
class HeldPermit implements Permit {
  readonly #release: (share: Share, since: number) => void;
  readonly #since: number;
  #share: Share | undefined;

  constructor(release: (share: Share, since: number) => void, share: Share, since: number) {
    this.#release = release;
    this.#share = share;
    this.#since = since;
  }

  [Symbol.dispose](): void {
    const share = this.#share;
    this.#share = undefined;
    if (share) this.#release(share, this.#since);
  }
}

/** Weight of a new sample in the mean time for which permits are held. */
const HOLD_WEIGHT = 0.05;

/**
 * Shares a number of permits between keys, such as workspaces, by max-min fairness: a free permit goes to the waiting
 * key that holds the fewest, of several to the one whose latest permit is the oldest. Requests of one key are served in
 * order.
 * The number of waiting requests is bounded; beyond it the newest request of the key with the most is refused, so a
 * key cannot fill the queue for others. Nothing is stored for a key that neither holds a permit nor waits.
 *
 * While all is free, a permit costs one look-up. While requests wait, each step takes time linear in the number of
 * waiting keys.
 */
export class FairQueue {
  readonly #options: Required<Omit<FairQueueOptions, "capacity">>;
  readonly #shares = new TransientMap<string, Share>();
  /** The shares with waiters. */
  readonly #queued = new TransientSet<Share>();
  #capacity: number;
  #held = 0;
  #waiting = 0;
  #arrivals = 0;
  #grants = 0;
  /** Mean time for which a permit is held, in milliseconds; undefined before the first release. */
  #holdMs: number | undefined;

  constructor({ capacity, ...options }: FairQueueOptions) {
    this.#capacity = capacity;
    this.#options = {
      perFree: Number.MAX_VALUE,
      maxWaiting: 1_000,
      maxWaitingPerKey: 100,
      clock: () => performance.now(),
      ...options,
    };
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Changes the capacity. Permits above a lower capacity stay valid until they are disposed. */
  set capacity(capacity: number) {
    this.#capacity = capacity;
    this.#serve();
  }

  /** Permits held, requests that wait, and keys with either. */
  get size(): { held: number; waiting: number; keys: number } {
    return { held: this.#held, waiting: this.#waiting, keys: this.#shares.size };
  }

  /** Takes a permit if that needs no wait. */
  tryAcquire(key: string): Permit | undefined {
    const share = this.#shares.get(key);
    // A key with waiters never passes: they would have been served.
    if (!this.#mayHold((share?.held ?? 0) + 1)) return undefined;
    return this.#grant(share ?? this.#add(key));
  }

  /**
   * Takes a permit, and waits for it if necessary.
   * @throws QueueRefusal, at once or while it waits; the reason of the signal
   */
  acquire(key: string, { signal, deadline }: AcquireOptions = {}): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const permit = this.tryAcquire(key);
    if (permit) return Promise.resolve(permit);
    const known = this.#shares.get(key);
    const waitMs = this.#expectedWait(known);
    const leftMs = deadline === undefined ? undefined : deadline - this.#options.clock();
    if (leftMs !== undefined && (waitMs ?? 0) >= leftMs) return Promise.reject(new QueueRefusal("late", waitMs));
    if (!this.#makeRoom(known, waitMs)) return Promise.reject(new QueueRefusal("full", waitMs));

    const share = known ?? this.#add(key);
    const promise = Promise.withResolvers<Permit>();
    const waiter: Waiter = { order: this.#arrivals++, promise, timer: undefined, unlink: () => {} };
    share.waiters.push(waiter);
    this.#queued.add(share);
    this.#waiting += 1;
    const refuse = (error: unknown) => {
      this.#remove(share, waiter);
      promise.reject(error);
    };
    waiter.unlink = onAbort(signal, () => refuse(signal?.reason));
    if (leftMs !== undefined) waiter.timer = setTimeout(() => refuse(new QueueRefusal("late", waitMs)), leftMs);
    return promise.promise;
  }

  /** Whether a key may hold this many permits now, the last of which is to be taken. */
  #mayHold(held: number): boolean {
    const free = this.#capacity - this.#held;
    return free > 0 && held <= free * this.#options.perFree;
  }

  #add(key: string): Share {
    const share: Share = { key, held: 0, served: 0, waiters: [] };
    this.#shares.set(key, share);
    return share;
  }

  #grant(share: Share): Permit {
    share.held += 1;
    share.served = ++this.#grants;
    this.#held += 1;
    return new HeldPermit(this.#release, share, this.#options.clock());
  }

  readonly #release = (share: Share, since: number): void => {
    const heldMs = this.#options.clock() - since;
    this.#holdMs = this.#holdMs === undefined ? heldMs : this.#holdMs + HOLD_WEIGHT * (heldMs - this.#holdMs);
    share.held -= 1;
    this.#held -= 1;
    this.#forget(share);
    this.#serve();
  };

  #forget(share: Share): void {
    if (share.held === 0 && share.waiters.length === 0) this.#shares.delete(share.key);
  }

  /** Gives the free permits to those who wait. */
  #serve(): void {
    while (this.#waiting > 0) {
      const share = first(this.#queued, isBefore);
      const waiter = share?.waiters[0];
      if (!share || !waiter || !this.#mayHold(share.held + 1)) return;
      this.#remove(share, waiter, true);
      waiter.promise.resolve(this.#grant(share));
    }
  }

  /** Ends the wait of a request. @param isServed whether its share stays, because it gets a permit */
  #remove(share: Share, waiter: Waiter, isServed = false): void {
    clearTimeout(waiter.timer);
    waiter.unlink();
    share.waiters.splice(share.waiters.indexOf(waiter), 1);
    this.#waiting -= 1;
    if (share.waiters.length === 0) this.#queued.delete(share);
    if (!isServed) this.#forget(share);
  }

  /** Makes room for one more waiter, for which it may refuse another. @returns false: the new one is refused */
  #makeRoom(share: Share | undefined, waitMs: number | undefined): boolean {
    const own = share?.waiters.length ?? 0;
    if (own >= this.#options.maxWaitingPerKey) return false;
    if (this.#waiting < this.#options.maxWaiting) return true;
    const longest = first(this.#queued, isLonger);
    const newest = longest?.waiters.at(-1);
    if (!longest || !newest || longest.waiters.length <= own + 1) return false;
    this.#remove(longest, newest);
    newest.promise.reject(new QueueRefusal("full", waitMs));
    return true;
  }

  /**
   * Estimates how long one more request of a key waits, in milliseconds: the number of releases that it needs, at the
   * recent rate of releases, which is the number of held permits divided by the mean time for which they are held.
   * @returns undefined while the rate is unknown
   */
  #expectedWait(share: Share | undefined): number | undefined {
    if (this.#holdMs === undefined || this.#held === 0) return undefined;
    const own = share?.waiters.length ?? 0;
    // The permits that the key would hold before this request, if it released none.
    const level = (share?.held ?? 0) + own;
    let ahead = own;
    for (const other of this.#queued) {
      if (other !== share) ahead += Math.min(other.waiters.length, Math.max(0, level + 1 - other.held));
    }
    const freeBefore = Math.ceil((level + 1) / this.#options.perFree);
    const releases = ahead + freeBefore - (this.#capacity - this.#held);
    return (Math.max(1, releases) * this.#holdMs) / this.#held;
  }
}

/** Whether `a` is served before `b`. */
function isBefore(a: Share, b: Share): boolean {
  if (a.held !== b.held) return a.held < b.held;
  if (a.served !== b.served) return a.served < b.served;
  return (a.waiters[0]?.order ?? 0) < (b.waiters[0]?.order ?? 0);
}

/** Whether `a` has more waiters than `b`, or as many with the newest among them. */
function isLonger(a: Share, b: Share): boolean {
  const more = a.waiters.length - b.waiters.length;
  return more > 0 || (more === 0 && (a.waiters.at(-1)?.order ?? 0) > (b.waiters.at(-1)?.order ?? 0));
}

/** The element that comes before all others; undefined if there is none. */
function first(shares: Iterable<Share>, precedes: (a: Share, b: Share) => boolean): Share | undefined {
  let best: Share | undefined;
  for (const share of shares) if (!best || precedes(share, best)) best = share;
  return best;
}
