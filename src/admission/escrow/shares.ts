import type { Ask, Mode, Post, Reply, SubjectReport } from "./exchange.ts";
import type { QueuedAsk } from "./request-states.ts";
import { HALF_FULL, Share } from "./share.ts";

/** Largest number of subjects that a replica observes. Requests of others ask the database. About 25 MB. */
const MAX_SHARES = 20_000;

/**
 * Largest number of subjects of which one item says what was used, without those of its settlements. After a time
 * without an answer of the database, there can be thousands.
 */
const MAX_REPORTED = 1_024;

/** Items that may follow one that has left out what subjects have used, until all are named. */
export const MAX_ITEMS_BEHIND = Math.ceil(MAX_SHARES / MAX_REPORTED);

/** Largest number of subjects whose unused headroom one item returns, and for which it takes some in advance. */
const MAX_CHANGED = 256;

/** Time between two searches for headroom that is not used, in milliseconds. */
const SWEEP_MS = 1_000;

/** Number of subjects that a replica observes, of all workspaces. */
export interface Observed {
  count: number;
}

/** What subjects of one workspace have of it on one replica, in the grant of the workspace. */
export class Shares {
  readonly #shares = new Map<string, Share>();
  readonly #observed: Observed;
  /** Those of which something was admitted, or has ended, since the last item. */
  readonly #used = new Set<Share>();
  /** Those of `#used` were too many for the last item. */
  #isBehind = false;
  /** Those that return what they do not use. */
  readonly #returning = new Set<Share>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(observed: Observed) {
    this.#observed = observed;
  }

  get(subject: string): Share | undefined {
    return this.#shares.get(subject);
  }

  /** Whether unused headroom is to be returned. */
  get mustReturn(): boolean {
    return this.#returning.size > 0;
  }

  /** Whether the last item has left out what subjects have used, so that another one has to follow. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Whether all subjects of a request have headroom for it. */
  fit(ask: Ask, now: number): boolean {
    return ask.subjects?.every((subject) => this.#shares.get(subject)?.fits(ask, now)) ?? true;
  }

  /** Takes what a request needs, after `fit`. */
  take(ask: Ask): void {
    for (const subject of ask.subjects ?? []) {
      const share = this.#shares.get(subject) as Share;
      share.take(ask);
      this.#used.add(share);
    }
  }

  /** Notes a request that was admitted, here or by the database. */
  admitted({ subjects = [], hold, input }: Ask, now: number): void {
    for (const subject of subjects) this.#observe(subject)?.demand.admitted(hold, input, now);
  }

  /** Notes the end of a request. @param isTaken whether it was admitted here */
  ended(
    { subjects = [], hold }: Ask,
    { charge, output }: Pick<Post, "charge" | "output">,
    isTaken: boolean,
    now: number,
  ) {
    for (const subject of subjects) {
      const share = this.#shares.get(subject);
      share?.demand.ended(output, now);
      if (!share || !isTaken) continue;
      share.settle(hold, charge, output);
      this.#used.add(share);
    }
  }

  /** A settlement is not posted: nothing can record it. */
  dropped({ shared = [] }: Post): void {
    for (const subject of shared) {
      const share = this.#shares.get(subject);
      if (share) this.#return(share);
    }
  }

  /** @param isSent whether the posts are in an item now, or no more */
  posting(posts: readonly Post[], isSent: boolean): void {
    for (const { shared = [], charge, admittedBy } of posts)
      if (admittedBy === undefined)
        for (const subject of shared) {
          const share = this.#shares.get(subject);
          if (share) share.owed += isSent ? -charge : charge;
        }
  }

  /** Returns unused headroom of a subject or, of a template, of all its subjects. */
  callBack(now: number, of = "*"): void {
    const isIn = ({ subject }: Share) => subject.startsWith(of.slice(0, -1));
    const all = of.endsWith("*") ? [...this.#shares.values()].filter(isIn) : [this.#shares.get(of)];
    for (const share of all) if (share) this.#return(share, now);
  }

  /** Whether a subject of the next item will soon have too little headroom for what is expected of it. */
  isLow(now: number): boolean {
    return firstOf(this.#used, MAX_REPORTED).some((share) => share.isLow(now));
  }

  /**
   * What the next item says of subjects, and wants for them. A request asks because one of its subjects has too little
   * headroom: that one returns what it does not use. When the request asks again, all of them do, so that nothing of
   * this replica is in its way. Otherwise each new user would take the headroom of its key away from all requests.
   * @param posts those of the item
   * @param isQuiet whether nothing is reserved in advance
   */
  report(
    mode: Mode,
    asks: readonly QueuedAsk[],
    posts: readonly Post[],
    now: number,
    isQuiet: boolean,
  ): SubjectReport[] {
    this.posting(posts, true);
    const reports = new Map<Share, SubjectReport>();
    const used = this.#takeUsed(posts);
    for (const share of used) reports.set(share, share.report());
    this.#isBehind = this.#used.size > 0;
    if (mode === "append") return [...reports.values()];
    const low = [...used].filter((share) => !isQuiet && share.isLow(now, HALF_FULL));
    const returned = (share: Share, canReserve: boolean) => {
      this.#used.delete(share);
      reports.set(share, share.return(reports.get(share), now, canReserve));
      this.#returning.delete(share);
    };
    for (const share of this.#returnedFor(asks, now)) returned(share, !isQuiet);
    for (const share of firstOf(this.#returning, MAX_CHANGED)) returned(share, false);
    for (const share of low.slice(0, MAX_CHANGED)) {
      const report = reports.get(share) as SubjectReport;
      if (!report.returns) share.refill(report, now);
    }
    // One that has nothing to return says nothing.
    for (const [share, { returns, spare }] of reports)
      if (!used.has(share) && !returns && !spare) reports.delete(share);
    return [...reports.values()];
  }

  /** Applies the answer to an item. */
  receive(reports: readonly SubjectReport[], reply: Extract<Reply, { state: "done" }>, sentAt: number): void {
    const granted = new Map(reply.subjects?.map((one) => [one.subject, one]));
    for (const report of reports) {
      const share = this.#shares.get(report.subject);
      const grant = granted.get(report.subject);
      share?.receive(report, grant, reply.minute, sentAt + (grant?.msLeft ?? 0));
      if (share?.mustReturn) this.#returning.add(share);
    }
  }

  /** The database has not applied an item. */
  takeBack(reports: readonly SubjectReport[], posts: readonly Post[]): void {
    this.posting(posts, false);
    for (const report of reports) {
      const share = this.#shares.get(report.subject);
      if (!share) continue;
      share.takeBack(report);
      this.#return(share);
    }
  }

  /** The grant does not exist any more. */
  clear(): void {
    this.#observed.count -= this.#shares.size;
    for (const all of [this.#shares, this.#used, this.#returning]) all.clear();
    this.#isBehind = false;
  }

  /** Now and then, returns what is idle, and forgets subjects of which nothing is reserved. */
  sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const [subject, share] of this.#shares) {
      if (!share.isIdle(now)) continue;
      if (share.hasIdle) this.#return(share);
      else if (share.isEmpty) {
        this.#shares.delete(subject);
        this.#observed.count -= 1;
      }
    }
  }

  #return(share: Share, now?: number): void {
    share.callBack(now);
    if (share.mustReturn) this.#returning.add(share);
  }

  /** Takes those of which the next item says what was used: the subjects of its settlements, and the first others. */
  #takeUsed(posts: readonly Post[]): Set<Share> {
    const taken = new Set<Share>();
    for (const { shared = [] } of posts)
      for (const subject of shared) {
        const share = this.#shares.get(subject);
        if (share && this.#used.has(share)) taken.add(share);
      }
    for (const share of this.#used) {
      if (taken.size >= MAX_REPORTED) break;
      taken.add(share);
    }
    for (const share of taken) this.#used.delete(share);
    return taken;
  }

  #returnedFor(asks: readonly QueuedAsk[], now: number): Set<Share> {
    const found = new Set<Share>();
    for (const ask of asks)
      for (const subject of ask.subjects ?? []) {
        const share = this.#observe(subject);
        if (share && (ask.calledAt !== undefined || !share.fits(ask, now))) found.add(share);
      }
    return found;
  }

  #observe(subject: string): Share | undefined {
    let share = this.#shares.get(subject);
    if (share || this.#observed.count >= MAX_SHARES) return share;
    share = new Share(subject);
    this.#shares.set(subject, share);
    this.#observed.count += 1;
    return share;
  }
}

/** The first members of a set, as a list. */
function firstOf<T>(all: ReadonlySet<T>, most: number): T[] {
  return [...all.values().take(most)];
}
