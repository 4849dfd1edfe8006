import { DemandMeter } from "./demand.ts";
import { type Ask, LIMITLESS, PARTS, type SubjectGrant, type SubjectReport } from "./exchange.ts";
import { Unused } from "./unused.ts";

/** Time in which no headroom is taken in advance after some had to be returned, in milliseconds. */
const QUIET_MS = 1_000;

/** Headroom is taken in advance when less than this part of the requests of the next one to two seconds fits … */
const LOW = 1 / 4;

/** … or, if another subject needs some, less than this part. So one item takes it for many subjects. */
export const HALF_FULL = 1;

/** It is taken for as many of these times. */
const FULL = 2;

/**
 * What one subject has of its caps on one replica, in the grant of its workspace, for requests that are admitted here.
 * All of it, also a part without a cap, is used until the minute ends, because caps can change.
 */
export class Share {
  readonly subject: string;
  readonly demand = new DemandMeter();
  readonly free = new Unused();
  /** Holds and number of the running requests that were admitted here. */
  held = 0;
  running = 0;
  /** Charges of their settlements that are in no item yet. */
  owed = 0;
  /** Admitted here since the last item. */
  used = { requests: 0, input: 0 };
  /** Nothing is admitted here until the database knows what is used. */
  mustReturn = false;
  /** There may be more than running requests need. */
  hasIdle = false;
  /** The database may have something reserved. */
  #isReserved = false;
  #isReturning = false;
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(subject: string) {
    this.subject = subject;
  }

  fits(ask: Ask, now: number): boolean {
    return !this.mustReturn && !this.#isReturning && !this.free.isOver(now) && this.free.has(ask, now);
  }

  take({ hold, input }: Ask): void {
    this.free.deduct(hold, input);
    this.held += hold;
    this.running += 1;
    this.used.requests += 1;
    this.used.input += input;
  }

  settle(hold: number, charge: number, output: number): void {
    this.held -= hold;
    this.running -= 1;
    this.owed += charge;
    this.free.credit += hold - charge;
    this.free.running += 1;
    this.free.output -= output;
    this.hasIdle = true;
  }

  /** Returns what is not used with the next item. @param now set: nothing is taken in advance for a while */
  callBack(now?: number): void {
    if (this.#isReserved) this.mustReturn = true;
    if (now !== undefined) this.#quietUntil = now + QUIET_MS;
  }

  /** Whether nothing is expected of it soon. */
  isIdle(now: number): boolean {
    return this.demand.isIdle(now) || (this.hasIdle && this.free.isOver(now));
  }

  /** Whether nothing is reserved or runs. */
  get isEmpty(): boolean {
    return !this.#isReserved && !this.#isReturning && this.running === 0 && this.owed === 0;
  }

  /** Whether less is left than a part of what is expected. @param part of the requests of the next seconds */
  isLow(now: number, part = LOW): boolean {
    if (this.mustReturn || this.#isReturning || this.free.isOver(now) || now < this.#quietUntil) return false;
    const demand = this.demand.read(now);
    return !demand.isSlow && this.free.fits(demand) < part * demand.n;
  }

  /** What an item says of it. */
  report(): SubjectReport {
    const { subject, used, held, owed, running } = this;
    this.used = { requests: 0, input: 0 };
    return { subject, used, held: { credit: held + owed, running } };
  }

  /** Returns what is not used. @param canReserve whether it takes headroom in advance */
  return(report: SubjectReport = this.report(), now: number, canReserve: boolean): SubjectReport {
    const { held } = report;
    const demand = this.demand.read(now);
    this.mustReturn = false;
    const isWanted = canReserve && demand.n > 0 && now >= this.#quietUntil;
    if (!this.#isReserved && !isWanted && held.credit === 0) return report;
    this.free.keepNothing();
    this.free.expire();
    this.hasIdle = false;
    this.#isReturning = true;
    this.#isReserved = true;
    return {
      ...report,
      returns: true,
      ...(isWanted ? { spare: sizeOf(demand, FULL * demand.n) } : {}),
    };
  }

  /** Takes more headroom of the minute. */
  refill(report: SubjectReport, now: number): void {
    const demand = this.demand.read(now);
    report.spare = { ...sizeOf(demand, FULL * demand.n - this.free.fits(demand)), minute: this.free.minute };
  }

  /** @param ends when the headroom ends, in ms of the monotonic clock */
  receive(
    { held, returns, spare }: SubjectReport,
    grant: SubjectGrant | undefined,
    minute: number,
    ends: number,
  ): void {
    if (returns) {
      this.#isReturning = false;
      this.#isReserved = held.credit > 0 || held.running > 0 || grant !== undefined;
    }
    if (!spare || !grant) return;
    this.#isReserved = true;
    this.hasIdle = true;
    for (const part of PARTS) {
      // A part that had no cap is not known to the database.
      if (!returns && this.free[part] === LIMITLESS && grant.extra[part] < LIMITLESS) this.mustReturn = true;
      this.free[part] += grant.extra[part];
    }
    if (returns) this.free.startMinute(minute, ends);
  }

  /** The database has not applied what an item said. */
  takeBack({ used, returns }: SubjectReport): void {
    this.used.requests += used.requests;
    this.used.input += used.input;
    if (!returns) return;
    this.#isReturning = false;
    this.hasIdle = true;
  }
}

function sizeOf({ credit, input, output }: { credit: number; input: number; output: number }, n: number) {
  return { n, credit, input, output };
}
