import { FairQueue, type Permit, QueueRefusal } from "../concurrency/fair-queue.ts";
import type { ModelCall } from "./port/model.ts";
import { notSent } from "./port/model-error.ts";

export interface CallLimitOptions {
  /** Largest number of calls at a time, at least 1. */
  max: number;
  /** Connections to all vendors, by workspace. Nothing waits for one. */
  connections: FairQueue;
  /** The current time in milliseconds, from any fixed point. Default `performance.now`. */
  clock?: () => number;
}

/** A call that may be sent. Dispose it when the call has ended. */
export class Slot implements Disposable {
  readonly #limit: CallLimit;
  readonly #workspace: string;
  readonly #permit: Permit;
  readonly #connection: Permit;
  readonly #startedAt: number;

  constructor(limit: CallLimit, workspace: string, permit: Permit, connection: Permit, startedAt: number) {
    this.#limit = limit;
    this.#workspace = workspace;
    this.#permit = permit;
    this.#connection = connection;
    this.#startedAt = startedAt;
  }

  /** The model has begun to answer. */
  accept(): void {
    this.#limit.rise();
  }

  /** The model is overloaded, or cannot be reached. */
  reject(): void {
    this.#limit.fall(this.#workspace, this.#startedAt);
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
    this.#permit[Symbol.dispose]();
  }
}

/** Calls that a workspace may have for each free place. One alone gets four fifths. */
const PER_FREE = 4;
/** The least limit. It is the smallest capacity of which one workspace alone cannot take all. */
const MIN_LIMIT = 5;
/** Factor of the limit at a rejection, as TCP Cubic's. */
const DECREASE = 0.7;
/** A rejection lowers the limit at least to a value near the calls that run, or to this one if few run. */
const FEW_CALLS = 64;

/**
 * Limits the calls of one model at a time, and shares them between workspaces. The limit adapts: additive increase,
 * multiplicative decrease. It rises by its square root for each round of accepted calls while at least half of it is
 * used, and falls by 30 % at a rejection. One overload rejects many calls, so only a call that began after the last
 * decrease can lower the limit again. While several workspaces have calls, it falls only when two of them are rejected,
 * because vendors also reject single prompts. docs/decisions/overload.md has the reasons.
 */
export class CallLimit {
  readonly #options: Required<CallLimitOptions>;
  readonly #queue: FairQueue;
  #limit: number;
  #decreasedAt = Number.NEGATIVE_INFINITY;
  /** Workspace of a rejected call since the last decrease. */
  #rejected: string | undefined;

  constructor(options: CallLimitOptions) {
    this.#options = { clock: () => performance.now(), ...options };
    this.#limit = options.max;
    this.#queue = new FairQueue({ capacity: options.max, perFree: PER_FREE, clock: this.#options.clock });
  }

  /** The limit, calls that run, and calls that wait. */
  get size(): { limit: number; running: number; waiting: number } {
    const { held, waiting } = this.#queue.size;
    return { limit: this.#queue.capacity, running: held, waiting };
  }

  /**
   * Waits until a call may be sent: at most `maxWaitMs`, and half of the time that the call has left.
   * @returns no promise if there is no wait
   * @throws ModelError with a `refusal`; the reason of the call's signal
   */
  enter(call: ModelCall, maxWaitMs: number): Slot | Promise<Slot> {
    const workspace = call.requester?.workspace ?? "";
    const permit = this.#queue.tryAcquire(workspace);
    return permit ? this.#connect(workspace, permit) : this.#wait(workspace, call, maxWaitMs);
  }

  async #wait(workspace: string, { signal, endsAt }: ModelCall, maxWaitMs: number): Promise<Slot> {
    const waitMs = Math.min(maxWaitMs, (endsAt - performance.now()) / 2);
    try {
      const permit = await this.#queue.acquire(workspace, { signal, deadline: this.#options.clock() + waitMs });
      return this.#connect(workspace, permit);
    } catch (error) {
      if (error instanceof QueueRefusal) throw notSent(error.reason, error.retryAfterMs, error);
      throw error;
    }
  }

  #connect(workspace: string, permit: Permit): Slot {
    const connection = this.#options.connections.tryAcquire(workspace);
    if (!connection) {
      permit[Symbol.dispose]();
      throw notSent("connections");
    }
    return new Slot(this, workspace, permit, connection, this.#options.clock());
  }

  /** Counts an accepted call. */
  rise(): void {
    if (this.#limit === this.#options.max || 2 * this.#queue.size.held < this.#limit) return;
    this.#change(this.#limit + 1 / Math.sqrt(this.#limit));
  }

  /** Counts a rejected call of a workspace, which began at `startedAt` of the clock. */
  fall(workspace: string, startedAt: number): void {
    if (startedAt < this.#decreasedAt) return;
    const { held, keys } = this.#queue.size;
    const isAlone = keys === 1 || (this.#rejected !== undefined && this.#rejected !== workspace);
    this.#rejected = workspace;
    if (!isAlone) return;
    this.#rejected = undefined;
    this.#decreasedAt = this.#options.clock();
    this.#change(DECREASE * Math.min(this.#limit, Math.max(FEW_CALLS, 2 * held)));
  }

  #change(limit: number): void {
    const { max } = this.#options;
    this.#limit = Math.min(max, Math.max(MIN_LIMIT, limit));
    this.#queue.capacity = Math.floor(this.#limit);
  }
}

/** Shares the connections to all vendors between workspaces. @param max largest number of connections */
export function shareConnections(max: number): FairQueue {
  return new FairQueue({ capacity: max, perFree: PER_FREE });
}
