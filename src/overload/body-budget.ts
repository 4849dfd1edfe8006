import { TransientMap, TransientSet } from "../concurrency/transient.ts";
import { Turns } from "../concurrency/turns.ts";
import { CallerGone } from "../contract/endings.ts";
import { Failure } from "../contract/failure.ts";
import { BODIES, PER_TURN } from "./bounds.ts";

/** Time between two searches for late bodies, in milliseconds. */
const SWEEP_MS = 1_000;

/** How long a body may take to arrive, in milliseconds. */
export interface BodyTimeouts {
  /** Longest time without a byte. */
  readonly idleMs: number;
  /** Longest time for the whole body. */
  readonly totalMs: number;
}

/** Whose share of the memory a body uses: that of a workspace, an owner, an operator or the source of a sign-in. */
export type BodySender = { readonly workspaceId: string } | { readonly admin: string };

/** Memory for the request bodies of a listener. */
export type BodyBudget = ReturnType<typeof createBodyBudget>;

type OnShed = (cause: "body_memory" | "body_aborted" | "slow_body") => void;

export type BodyHold = Pick<Hold, "expect" | "take" | "complete" | "release">;

/**
 * Creates a budget of `total` bytes for callers, and a separate one for sign-ins, owners and operators. Bytes count
 * when they arrive, for the workspace that sends them. When memory is short, the workspace that uses most of it gives
 * way: its new body is refused, or the one that has been arriving for longest is aborted. So a workspace that uses less
 * is never refused because of bodies that are still arriving. Bodies of running requests stay; therefore a workspace
 * may use at most half of the memory, and the last quarter is for workspaces that use up to 1 MB. A body of the largest
 * size fits in any case.
 * @param onShed called for each body that is refused or aborted
 */
export function createBodyBudget(total: number, timeouts: BodyTimeouts, onShed: OnShed = () => undefined) {
  const callers = new BodyPool(total, BODIES.max, timeouts, onShed);
  const admins = new BodyPool(BODIES.adminBytes, BODIES.maxSmall, timeouts, onShed);
  return {
    /**
     * Begins a body, which has until the end of its timeouts to arrive.
     * @param abort called at most once, before `complete`: with `request_incomplete` when the body is late, or with
     *   `overloaded` when another sender needs the memory. The hold is released by then.
     */
    open: (sender: BodySender, abort: (failure: Failure) => void): BodyHold =>
      "admin" in sender ? admins.open(sender.admin, abort) : callers.open(sender.workspaceId, abort),
    /** Bytes of bodies in memory. */
    get used(): number {
      return callers.used + admins.used;
    },
  };
}

/** What the bodies of one sender use. */
interface Share {
  readonly sender: string;
  used: number;
  /** The part of `used` that belongs to arriving bodies. */
  incomplete: number;
  bodies: number;
  /** In the order of their start. */
  readonly arriving: TransientSet<Hold>;
}

class BodyPool {
  readonly #timeouts: BodyTimeouts;
  readonly #onShed: OnShed;
  readonly #shares = new TransientMap<string, Share>();
  /** Most bytes of all senders, of those that use more than `BODIES.small`, and of one sender. */
  readonly #limits: { readonly all: number; readonly large: number; readonly sender: number };
  used = 0;
  /** The part of `used` that belongs to complete bodies. */
  #complete = 0;
  #sweep: NodeJS.Timeout | undefined;
  /** Late bodies. Bodies that began together are late together. */
  readonly #late = new Turns<string>(PER_TURN.late);

  constructor(total: number, maxBody: number, timeouts: BodyTimeouts, onShed: OnShed) {
    const large = Math.max(total * BODIES.largeShare, maxBody);
    this.#limits = {
      all: large + total * (1 - BODIES.largeShare),
      large,
      sender: Math.max(total * BODIES.ownShare, maxBody),
    };
    this.#timeouts = timeouts;
    this.#onShed = onShed;
  }

  open(sender: string, abort: (failure: Failure) => void): Hold {
    const share = this.#shares.get(sender) ?? {
      sender,
      used: 0,
      incomplete: 0,
      bodies: 0,
      arriving: new TransientSet(),
    };
    if (share.bodies === 0) this.#shares.set(sender, share);
    const hold = new Hold(this, share, abort);
    share.bodies++;
    share.arriving.add(hold);
    this.#sweep ??= setInterval(() => this.#abortLate(), SWEEP_MS).unref();
    return hold;
  }

  expect(share: Share, bytes: number): void {
    if (!this.#fits(share, bytes, this.#complete)) throw this.#refusal();
  }

  take(share: Share, bytes: number): void {
    while (!this.#fits(share, bytes, this.used)) {
      const largest = this.#largestAbove(share.used + bytes);
      if (largest === undefined || share.used + bytes > this.#limits.sender) throw this.#refusal();
      for (const hold of largest.arriving) {
        if (hold.held === 0) continue;
        this.#onShed("body_aborted");
        hold.abort(full());
        break;
      }
    }
    share.used += bytes;
    share.incomplete += bytes;
    this.used += bytes;
  }

  complete(share: Share, hold: Hold): void {
    if (!share.arriving.delete(hold)) return;
    share.incomplete -= hold.held;
    this.#complete += hold.held;
  }

  release(share: Share, hold: Hold): void {
    if (share.arriving.delete(hold)) share.incomplete -= hold.held;
    else this.#complete -= hold.held;
    share.used -= hold.held;
    this.used -= hold.held;
    if (--share.bodies === 0) this.#shares.delete(share.sender);
  }

  #refusal(): Failure {
    this.#onShed("body_memory");
    return full();
  }

  #fits(share: Share, bytes: number, used: number): boolean {
    const own = share.used + bytes;
    return own <= this.#limits.sender && used + bytes <= (own > BODIES.small ? this.#limits.large : this.#limits.all);
  }

  /** The sender with memory of arriving bodies that uses most, if it uses more than `bytes`. */
  #largestAbove(bytes: number): Share | undefined {
    let largest: Share | undefined;
    for (const share of this.#shares.values()) {
      if (share.incomplete > 0 && share.used > Math.max(bytes, largest?.used ?? 0)) largest = share;
    }
    return largest;
  }

  /** @returns whether the body was still arriving */
  #end(share: Share, hold: Hold): boolean {
    if (!share.arriving.has(hold)) return false;
    this.#onShed("slow_body");
    hold.abort(new Failure("request_incomplete"));
    return true;
  }

  #abortLate(): void {
    let arriving = 0;
    const now = performance.now();
    for (const share of this.#shares.values()) {
      for (const hold of share.arriving) {
        if (hold.isLate(now, this.#timeouts)) this.#late.add(share.sender, () => this.#end(share, hold));
      }
      arriving += share.arriving.size;
    }
    if (arriving > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

/** The memory of one body. */
class Hold {
  readonly #pool: BodyPool;
  readonly #share: Share;
  /** Undefined once the body is complete, because it refers to the body. */
  #abort: ((failure: Failure) => void) | undefined;
  held = 0;
  #isReleased = false;
  readonly #startedAt = performance.now();
  /** What was held when `isLate` last saw a change, and when that was. */
  #seenHeld = 0;
  #seenAt = this.#startedAt;

  constructor(pool: BodyPool, share: Share, abort: (failure: Failure) => void) {
    this.#pool = pool;
    this.#share = share;
    this.#abort = abort;
  }

  /** @throws Failure overloaded when a body of this size does not fit beside those of running requests */
  expect(bytes: number): void {
    this.#pool.expect(this.#share, bytes);
  }

  /** Takes memory for bytes that have arrived. @throws Failure overloaded; CallerGone after `release` */
  take(bytes: number): void {
    if (this.#isReleased) throw new CallerGone();
    this.#pool.take(this.#share, bytes);
    this.held += bytes;
  }

  /** Ends the arrival and its timeouts. The memory stays until `release`. Later calls have no effect. */
  complete(): void {
    this.#abort = undefined;
    this.#pool.complete(this.#share, this);
  }

  /** Gives the memory back. Later calls have no effect. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#pool.release(this.#share, this);
  }

  abort(failure: Failure): void {
    this.release();
    this.#abort?.(failure);
  }

  isLate(now: number, { idleMs, totalMs }: BodyTimeouts): boolean {
    if (this.held !== this.#seenHeld) {
      this.#seenHeld = this.held;
      this.#seenAt = now;
    }
    const age = now - this.#startedAt;
    return now - this.#seenAt >= idleMs || age >= totalMs || this.held < (age - idleMs) * BODIES.leastRate;
  }
}

function full(): Failure {
  return new Failure("overloaded", {
    message: "The service has no memory left for this body. Send the request again after the stated time.",
  });
}
