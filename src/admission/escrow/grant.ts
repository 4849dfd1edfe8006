import { TransientMap } from "../../concurrency/transient.ts";
import { type Demand, DemandMeter } from "./demand.ts";
import {
  type Ask,
  type Freed,
  type Headroom,
  type Item,
  LIMITLESS,
  type LimitsLeft,
  type Mode,
  NOTHING,
  type Post,
  type Reply,
} from "./exchange.ts";
import { Pause } from "./pause.ts";
import type { Flight, QueuedAsk, Running, Unposted } from "./request-states.ts";
import { type Observed, Shares } from "./shares.ts";
import { Unused } from "./unused.ts";

/** Time after which the database is told what was admitted, in milliseconds. */
const SILENT_MS = 2_000;

/** Time in which a replica takes no spare headroom after it had to return some, in milliseconds. */
const QUIET_MS = 1_000;

/** Headroom is taken in advance when less than this part of the expected requests fits. */
const REFILL = 4;

/** Time that a slow workspace waits for headroom, so that many share a statement and no answer waits for it, in ms. */
const REFILL_MS = 100;

/** Largest number of asks and of posts in one item. */
const MAX_ITEMS = 256;

/** The grant of one workspace on one replica: what is reserved for it, and what its requests hold. */
export class Grant {
  readonly workspace: string;
  readonly free = new Unused();
  readonly shares: Shares;
  readonly pause = new Pause();
  readonly running = new TransientMap<string, Running>();
  /** Sum of the holds of `running`. */
  held = 0;
  /** Charges of settlements that are not posted, those in flight included. */
  owed = 0;
  used = { requests: 0, input: 0 };
  /** When the first request of `used` was admitted. */
  #usedAt = Number.NEGATIVE_INFINITY;
  asks: QueuedAsk[] = [];
  posts: Unposted[] = [];
  #freed: Freed[] = [];
  flight: Flight | undefined;
  /** Number of the grant in the database; 0: there is none. */
  number = 0;
  /** The limits by the last answer of the database; undefined: there are none. They hold for the minute of `free`. */
  left: LimitsLeft | undefined;
  /** What was returned since then, which is left, too. */
  returned: Returned = NOTHING;
  /** Number of the last item that was answered under this grant; 0: none. */
  #after = 0;
  /** Another replica needs what is not used, or limits have changed. */
  mustReturn = false;
  /** The database has to be told what was admitted. */
  mustReport = false;
  readonly #demand: DemandMeter;
  /** Since when a slow workspace has had less headroom than it is expected to need. */
  #lowSince = Number.POSITIVE_INFINITY;
  #quietUntil = Number.NEGATIVE_INFINITY;

  /** @param admittedAt when an earlier grant of the workspace has admitted a request, in milliseconds */
  constructor(workspace: string, admittedAt: number | undefined, observed: Observed) {
    this.workspace = workspace;
    this.shares = new Shares(observed);
    this.#demand = new DemandMeter(admittedAt);
  }

  /** When the last request was admitted, in milliseconds. */
  get admittedAt(): number {
    return this.#demand.admittedAt;
  }

  /** Admits a request from the unused headroom: all parts or none. @returns whether it fits */
  admit(ask: Ask, now: number): boolean {
    if (this.mustReturn || !this.free.has(ask, now) || !this.shares.fit(ask, now)) return false;
    this.free.deduct(ask.hold, ask.input);
    this.shares.take(ask);
    if (this.used.requests === 0) this.#usedAt = now;
    this.used.requests += 1;
    this.used.input += ask.input;
    this.#run(ask.subjects ? { ...ask, isShared: true } : ask, now);
    return true;
  }

  /** Ends a running request. It is charged at most its hold, whose rest is free at once. @returns its settlement */
  settle(post: Post, now: number): Unposted {
    const running = this.running.get(post.requestId) as Running;
    const { hold, key, subjects, isShared = false } = running;
    const unposted: Unposted = { ...post, charge: Math.min(post.charge, hold), key, subjects };
    if (isShared) unposted.shared = subjects;
    this.shares.ended(running, unposted, isShared, now);
    this.#free(running, unposted.charge);
    this.free.output -= post.output;
    this.owed += unposted.charge;
    this.posts.push(unposted);
    this.#demand.ended(post.output, now);
    return unposted;
  }

  /** Returns unused headroom with the next item, and takes no spare headroom for a while. */
  callBack(now: number): void {
    this.mustReturn = true;
    this.#quietUntil = now + QUIET_MS;
    this.#lowSince = LIMITLESS;
  }

  /** Whether requests wait for the database. */
  get isAwaited(): boolean {
    return this.asks.length + this.posts.length > 0;
  }

  /** Whether the next item can wait: it takes headroom in advance, or returns what is idle. */
  get isUnhurried(): boolean {
    return !this.isAwaited && !this.mustReturn && !this.mustReport && !this.shares.mustReturn;
  }

  /** Whether there is something to tell the database. */
  needsItem(now: number): boolean {
    if (this.posts.length > 0 || this.asks.some(({ retryAt }) => retryAt <= now)) return true;
    if (this.mustReport && this.used.requests > 0) return true;
    if (this.number === 0) return false;
    if (this.#freed.length > 0 || this.shares.mustReturn || this.shares.isBehind) return true;
    if (now - this.#lowSince >= REFILL_MS) return true;
    const hasPart = (isCounted: (size: number) => boolean) => Object.values(this.free.parts).some(isCounted);
    if (this.mustReturn) return this.running.size === 0 || hasPart((size) => size > 0);
    if (this.used.requests > 0 && now - this.#usedAt >= SILENT_MS) return true;
    return this.#demand.isIdle(now) && (this.running.size === 0 || hasPart((size) => size > 0 && size < LIMITLESS));
  }

  /** Whether nothing of the workspace is reserved or waits, and no request has come for a while. */
  isIdle(now: number): boolean {
    return this.number === 0 && !this.flight && !this.isAwaited && this.#demand.isIdle(now);
  }

  /** How the next item is executed; undefined: there is none. `isDeaf`: nothing is reserved in advance. */
  modeOf(now: number, isDeaf: boolean): Mode | undefined {
    if (!this.needsItem(now)) return undefined;
    if (!this.#canAppend(now)) return "exchange";
    const demand = this.#demand.read(now);
    if (this.#isQuiet(demand, now, isDeaf)) return "exchange";
    if (this.shares.mustReturn || this.shares.isLow(now)) return "exchange";
    if (this.#missing(demand) === 0) return "append";
    this.#lowSince = Math.min(this.#lowSince, now);
    return demand.isSlow ? "append" : "exchange";
  }

  /** Makes the next item, for the mode that `modeOf` has named, and puts it in flight. */
  send(mode: Mode, seq: number, now: number, isDeaf: boolean): Item {
    this.free.endMinute(now);
    const isAppend = mode === "append";
    const demand = this.#demand.read(now);
    const isQuiet = this.#isQuiet(demand, now, isDeaf);
    const posts = this.posts.splice(0, MAX_ITEMS);
    const asks = this.#takeAsks(now);
    if (!isAppend) this.#lowSince = Number.POSITIVE_INFINITY;
    const kept = this.free.parts;
    if (isQuiet) this.free.keepNothing();
    else if (!isAppend) this.free.keepAtMost(2 * demand.n, demand);
    this.returned = sumOf(this.returned, kept, this.free);
    const credit = this.held + this.owed - chargesOf(posts);
    const item = {
      workspace: this.workspace,
      seq,
      // No request runs under a grant that was found, so a new one replaces it.
      grant: this.#after === 0 ? 0 : this.number,
      after: this.#after,
      minute: this.free.minute,
      keep: this.free.parts,
      held: { credit, running: this.running.size },
      used: this.used,
      asks,
      posts,
      freed: this.#freed,
      subjects: this.shares.report(mode, asks, posts, now, isQuiet),
      spare: {
        n: isAppend || isQuiet ? 0 : this.#missing(demand),
        ...{ credit: demand.credit, input: demand.input, output: demand.output },
      },
      close: isQuiet && asks.length + this.posts.length + this.running.size === 0 && !this.shares.isBehind,
      mode,
    };
    this.used = { requests: 0, input: 0 };
    this.#freed = [];
    this.mustReturn = false;
    this.mustReport = false;
    this.flight = { item, sentAt: now };
    return item;
  }

  /** Applies the answer to the item in flight. @returns the item, whose asks and posts the caller has to answer */
  receive(reply: Extract<Reply, { state: "done" }>, now: number): Flight["item"] {
    const { item, sentAt } = this.#land();
    this.free.add(reply.extra, { ...this.used, running: this.running.size - item.held.running, output: 0 });
    this.free.startMinute(reply.minute, sentAt + reply.msLeft);
    if (reply.left !== undefined) {
      this.left = reply.left ?? undefined;
      this.returned = NOTHING;
    }
    this.owed -= chargesOf(item.posts);
    this.number = item.close ? 0 : reply.grant;
    this.#after = item.close ? 0 : item.seq;
    if (item.close) this.shares.clear();
    else this.shares.receive(item.subjects, reply, sentAt);
    for (const [i, ask] of item.asks.entries()) {
      const verdict = reply.verdicts[i];
      if (!verdict || verdict.refusal || verdict.response !== undefined) continue;
      this.#run(ask, now);
      if (!ask.isAbandoned) continue;
      this.#free(ask, 0);
      this.#release(ask);
      this.mustReturn = true;
    }
    if (reply.isOver) this.callBack(now);
    return item;
  }

  /** Notes that the posts of the item in flight are in the log. @returns the item, whose posts the caller answers */
  appended(): Flight["item"] {
    const { item } = this.#land();
    this.owed -= chargesOf(item.posts);
    this.#after = item.seq;
    return item;
  }

  /** Takes an item back that the database did not apply. */
  takeBack(): void {
    const { item } = this.#land();
    this.posts.unshift(...item.posts);
    this.asks.unshift(...item.asks.filter(({ isAbandoned }) => !isAbandoned));
    this.used.requests += item.used.requests;
    this.used.input += item.used.input;
    this.#freed = [...item.freed, ...this.#freed];
    this.shares.takeBack(item.subjects, item.posts);
    this.mustReport = true;
    this.free.expire();
  }

  /** Removes an ask that the database rejects, or a settlement that nothing could record. */
  drop(requestId: string): void {
    this.asks = this.asks.filter((ask) => ask.requestId !== requestId);
    for (const posts of this.flight ? [this.posts, this.flight.item.posts] : [this.posts]) {
      const post = posts.find((one) => one.requestId === requestId);
      if (!post) continue;
      posts.splice(posts.indexOf(post), 1);
      if (post.admittedBy !== undefined) continue;
      this.mustReturn = true;
      this.#release(post);
      if (posts === this.posts) this.shares.posting([post], true);
      this.shares.dropped(post);
      this.owed -= post.charge;
    }
  }

  /** Whether the next item need not change the grant. Idempotency keys and journals have to. */
  #canAppend(now: number): boolean {
    // Requests count in the windows of the item before, so each minute begins with another item.
    if (this.posts.length === 0 || this.asks.length > 0 || this.free.isOver(now)) return false;
    return this.posts.every(({ key, admittedBy }) => (key ?? admittedBy) === undefined);
  }

  /** Whether unused headroom is returned. */
  #isQuiet({ n }: Demand, now: number, isDeaf: boolean): boolean {
    return isDeaf || n === 0 || this.mustReturn || now < this.#quietUntil;
  }

  /** Number of requests for which headroom is taken in advance: none while a part of what is expected is left. */
  #missing(demand: Demand): number {
    const left = this.free.fits(demand);
    return left < demand.n / REFILL ? demand.n - left : 0;
  }

  /** Takes the first asks that are due. */
  #takeAsks(now: number): QueuedAsk[] {
    const due: QueuedAsk[] = [];
    const rest: QueuedAsk[] = [];
    for (const ask of this.asks) (ask.retryAt <= now && due.length < MAX_ITEMS ? due : rest).push(ask);
    this.asks = rest;
    return due;
  }

  #run(ask: Running, now: number): void {
    this.running.set(ask.requestId, ask);
    this.shares.admitted(ask, now);
    this.held += ask.hold;
    this.#demand.admitted(ask.hold, ask.input, now);
  }

  #free({ requestId, hold }: Ask, charge: number): void {
    this.running.delete(requestId);
    this.held -= hold;
    this.free.credit += hold - charge;
    this.free.running += 1;
  }

  /** Frees what a request without an end has in the database: its key, and what it holds of caps. */
  #release({ requestId, key, subjects }: Pick<Unposted, "requestId" | "key" | "subjects">): void {
    if (key !== undefined || subjects) this.#freed.push({ requestId, key });
  }

  /** Takes the item that the database has answered. */
  #land(): Flight {
    const flight = this.flight as Flight;
    this.flight = undefined;
    this.pause.end();
    return flight;
  }
}

type Returned = Pick<Headroom, "requests" | "input" | "output">;

/** What was returned before, and what an item returns; NaN: there is no limit. */
function sumOf(before: Returned, from: Returned, to: Returned): Returned {
  const of = (part: keyof Returned) => before[part] + from[part] - to[part];
  return { requests: of("requests"), input: of("input"), output: of("output") };
}

/** The charges that are reserved. Those of an earlier grant are not. */
function chargesOf(posts: readonly Post[]): number {
  return posts.reduce((sum, { charge, admittedBy }) => sum + (admittedBy === undefined ? charge : 0), 0);
}
