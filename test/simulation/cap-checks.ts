import { type Ask, type Item, NOTHING, type Reply, type SubjectReport } from "../../src/admission/escrow/exchange.ts";
import type { Grant } from "../../src/admission/escrow/grant.ts";
import { type Account, copyOf } from "./account.ts";
import { isAwaiting, type Replica, type Request, type SharedAdmission } from "./actors.ts";
import { limitOf } from "./cap-rules.ts";
import {
  addTo,
  type Cap,
  capsOf,
  heldOf,
  holdsOf,
  needOf,
  noUse,
  PERIODS,
  subjectsOf,
  templateOf,
  useAt,
  usedOf,
} from "./caps.ts";
import { isIn, reservedOf } from "./subject-grants.ts";
import { Violation } from "./violation.ts";
import { currentWindows } from "./windows.ts";
import type { World } from "./world.ts";

/** Longest wait of a request for headroom of others, in milliseconds. */
const CALL_BACK_MS = 100;

/** A request that its replica has admitted by itself. */
interface Shared extends Pick<Ask, "requestId" | "input"> {
  shared: SharedAdmission;
}

/** Checks the caps of subjects. Every method throws Violation. */
export class CapChecks {
  readonly #world: World;
  /** Caps that were set or removed after the account was opened: workspace, subject and what is capped. */
  readonly #changed = new Set<string>();

  readonly #isSetBack: (replica: Replica, workspace: string) => boolean;
  /** Requests that replicas have admitted by themselves, of workspaces. */
  readonly #shared = new Map<string, Shared[]>();

  /** @param isSetBack whether a crash has undone the last changes of a grant, which its replica does not know */
  constructor(world: World, isSetBack: (replica: Replica, workspace: string) => boolean) {
    this.#world = world;
    this.#isSetBack = isSetBack;
  }

  /** A request was admitted. Notes those that a replica has admitted by itself, also after a pause. */
  admitted(request: Request): void {
    const { workspace, replica, subjects, requestId } = request;
    const own = replica.escrow.grants.get(workspace);
    if (!subjects || !own?.running.get(requestId)?.isShared) return;
    const minutes = new Map(subjects.map((subject) => [subject, own.shares.get(subject)?.free.minute ?? 0]));
    request.shared = { grant: own.number, minutes };
    this.#shared.set(workspace, [
      ...(this.#shared.get(workspace) ?? []),
      { ...request, requestId, shared: request.shared },
    ]);
    this.#checkUse(workspace, subjects, false);
    if (this.#world.isCalm) for (const subject of subjects) this.#checkRaises(workspace, subject, own.number);
  }

  /** Without faults, nothing is admitted under a raise that has ended. One that was set later had no effect on it. */
  #checkRaises(workspace: string, subject: string, grant: number): void {
    const { caps, reserves } = this.#account(workspace);
    const { at } = reserves.get(`${grant} ${subject}`) ?? {};
    for (const { subject: of, endsAt, isFirst } of caps) {
      if (at === undefined || endsAt === undefined || (of !== subject && of !== templateOf(subject))) continue;
      if (isFirst && endsAt > at && endsAt <= this.#world.clock)
        throw new Violation(1, `${subject} of ${workspace} was admitted under a raise that has ended`);
    }
  }

  /** A cap was set or removed. What an exception has admitted may exceed the template that applies after it. */
  changed(workspace: string, cap: Cap, isRemoved: boolean): void {
    if (isRemoved || !cap.isFirst || cap.endsAt !== undefined)
      this.#changed.add(`${workspace} ${nameOf(cap.subject, cap)}`);
  }

  /** What waited in the log was posted. */
  posted(workspace: string): void {
    const account = this.#account(workspace);
    for (const [subject, { spent }] of account.subjects) {
      const charges = account.usage.filter(({ subjects }) => subjects.includes(subject)).map(({ charge }) => charge);
      const sum = charges.reduce((total, charge) => total + charge, 0);
      if (spent.total !== sum)
        throw new Violation(3, `${subject} of ${workspace} has spent ${sum} and is counted with ${spent.total}`);
    }
  }

  /** The database has executed an item. */
  exchanged(
    replica: Replica,
    { workspace, asks, posts, subjects = [] }: Item,
    { verdicts, subjects: granted = [] }: Extract<Reply, { state: "done" }>,
    isLast: (ask: Ask) => boolean,
  ): void {
    this.posted(workspace);
    for (const post of posts) if (post.admittedBy !== undefined) this.#checkUse(workspace, subjectsOf(post), false);
    for (const { subject } of subjects.filter(({ spare }) => spare))
      this.#checkUse(
        workspace,
        [subject],
        granted.some((one) => one.subject === subject),
      );
    for (const [i, ask] of asks.entries()) {
      const { refusal, response, calledBack } = verdicts[i] ?? {};
      if (!ask.subjects || response !== undefined) continue;
      if (!refusal) this.#checkUse(workspace, ask.subjects, true);
      else if (calledBack && !isLast(ask)) continue;
      else if (refusal.limit?.includes(":") && !this.#isFull(replica, workspace, ask, refusal.limit, subjects))
        throw new Violation(6, `${ask.requestId} was refused for ${refusal.limit}, which has room`);
    }
  }

  /** No request runs, and nothing waits. */
  ended(): void {
    for (const [workspace, { subjects }] of this.#world.database.accounts)
      for (const subject of subjects.keys()) this.#probe(workspace, subject);
  }

  /** A small request of a subject, to see whether the database counts what there is. */
  #probe(workspace: string, subject: string): void {
    const account = copyOf(this.#account(workspace));
    // At the end nothing runs, so all of it is returned sooner or later.
    account.reserves.clear();
    account.at = currentWindows(account, this.#world.clock).at;
    const refused = capsOf(account, subject).filter(({ action }) => action === "refuse");
    if (!refused.every((cap) => this.#isFixed(workspace, subject, cap))) return;
    const ask = { requestId: "probe", hold: 1, input: 0, subjects: [subject] };
    const isFull = (isMost: boolean) =>
      refused.some((cap) => this.#trueUse(workspace, account, subject, cap, isMost) + needOf(cap, ask) > cap.amount);
    const { refusal } = this.#world.database.caps.check(account, ask) ?? {};
    if (isFull(false) && !refusal)
      throw new Violation(1, `${subject} of ${workspace} has reached a cap and is admitted`);
    if (refusal && !isFull(true)) throw new Violation(6, `${subject} of ${workspace} has room and is refused`);
  }

  /**
   * Subjects use and hold no more than their caps.
   * @param isAdmitted whether the database has admitted a request or reserved headroom just now, so that changed caps
   * bind, too
   */
  #checkUse(workspace: string, subjects: readonly string[], isAdmitted: boolean): void {
    const account = this.#account(workspace);
    for (const subject of subjects) {
      for (const cap of capsOf(account, subject)) {
        if (cap.action !== "refuse" || cap.figure === "output_tokens") continue;
        const isFixed = this.#isFixed(workspace, subject, cap);
        const known = isAdmitted ? this.#booked(account, subject, cap) : 0;
        const size = isFixed
          ? this.#trueUse(workspace, account, subject, cap, false) + this.#runningOf(workspace, account, subject, cap)
          : 0;
        if (Math.max(size, known) > cap.amount)
          throw new Violation(1, `${nameOf(subject, cap)} of ${workspace} uses ${size} or ${known} of ${cap.amount}`);
      }
    }
  }

  /** What the database knows that is used, held and reserved of a cap. */
  #booked(account: Account, subject: string, cap: Cap): number {
    const held = heldOf(cap, holdsOf(account, subject)) + reservedOf(account, subject, cap).size;
    return usedOf(useAt(account, subject), cap) + held;
  }

  /** Whether a cap of this name has no room for a request, although others return what they do not use. */
  #isFull(refused: Replica, workspace: string, ask: Ask, limit: string, reports: readonly SubjectReport[]): boolean {
    const account = this.#withoutIdle(refused, workspace, reports);
    return (ask.subjects ?? []).some((subject) =>
      capsOf(account, subject).some((cap) => {
        if (cap.action !== "refuse" || limitOf(subject, cap) !== limit) return false;
        const isFixed = this.#isFixed(workspace, subject, cap);
        const used = isFixed
          ? this.#trueUse(workspace, account, subject, cap, true)
          : usedOf(useAt(account, subject), cap);
        const held = heldOf(cap, holdsOf(account, subject)) + reservedOf(account, subject, cap).size;
        return used + held + needOf(cap, ask) > cap.amount;
      }),
    );
  }

  /**
   * An account without headroom of subjects that replicas could return at once.
   * @param reports of the item of the replica that was refused, which has returned the rest. What has ended since it
   * was sent is not known yet.
   */
  #withoutIdle(refused: Replica, workspace: string, reports: readonly SubjectReport[]): Account {
    const account = copyOf(this.#account(workspace));
    for (const [key, row] of account.reserves) {
      if (![...account.grants.values()].some(({ id }) => id === row.grant)) account.reserves.delete(key);
      const replica = this.#world.live.find(({ id }) => account.grants.get(id)?.id === row.grant);
      const own = replica?.escrow.grants.get(workspace);
      if (!replica || !own || own.number !== row.grant || replica.state !== "up") continue;
      if (replica !== refused && !canReturn(this.#world, replica, own)) continue;
      const reported = replica === refused ? reports.find(({ subject }) => subject === row.subject) : undefined;
      if (reported?.returns) {
        const { credit, running } = reported.held;
        const kept = { credit: Math.min(row.credit, credit), running: Math.min(row.running, running) };
        Object.assign(row, { ...NOTHING, ...kept });
        continue;
      }
      const share = own.shares.get(row.subject);
      Object.assign(row, {
        credit: Math.min(row.credit, (share?.held ?? 0) + (share?.owed ?? 0) + own.owed),
        running: Math.min(row.running, share?.running ?? 0),
        requests: Math.min(row.requests, share?.used.requests ?? 0),
        input: Math.min(row.input, share?.used.input ?? 0),
        output: 0,
      });
    }
    return account;
  }

  /** Whether a cap has been in force since the account was opened. */
  #isFixed(workspace: string, subject: string, cap: Cap): boolean {
    const names = [subject, templateOf(subject)].map((name) => `${workspace} ${nameOf(name, cap)}`);
    return cap.isFirst === true && !names.some((name) => this.#changed.has(name));
  }

  /** What the requests of a subject hold that run, or wait to be posted. */
  #runningOf(workspace: string, account: Account, subject: string, cap: Cap): number {
    const live = new Set([...account.grants.values()].map(({ id }) => id));
    const asked = account.admissions.filter(({ subjects, grant, requestId }) => {
      if (!subjects.includes(subject) || !live.has(grant) || account.posted.has(requestId)) return false;
      const state = this.#world.requests.get(requestId)?.state;
      return state === "running" || state === "settled";
    });
    return heldOf(cap, asked) + this.#sharedOf(workspace, account, subject, cap);
  }

  /** What requests use and hold that replicas have admitted by themselves, and that are not posted. */
  #sharedOf(workspace: string, account: Account, subject: string, cap: Cap): number {
    let sum = 0;
    for (const one of this.#shared.get(workspace) ?? []) {
      const request = this.#world.requests.get(one.requestId);
      const minute = one.shared.minutes.get(subject);
      if (!request || minute === undefined || account.posted.has(one.requestId)) continue;
      const { replica, state, hold, charge, input } = request;
      if (account.grants.get(replica.id)?.id !== one.shared.grant || this.#isSetBack(replica, workspace)) continue;
      if (state !== "running" && state !== "settled" && state !== "delivered") continue;
      if (cap.figure === "credits") sum += state === "running" ? hold : charge;
      else if (cap.figure === "concurrent_requests") sum += state === "running" ? 1 : 0;
      else if (cap.figure !== "output_tokens" && isIn(cap.period, minute, account.at))
        sum += cap.figure === "requests" ? 1 : input;
    }
    return sum;
  }

  /**
   * What a subject has used of a cap that has always been there, by all of its requests.
   * @param isMost whether it includes requests whose admission a crash has lost. They count if they are posted early.
   */
  #trueUse(workspace: string, account: Account, subject: string, cap: Cap, isMost: boolean): number {
    const { admissions, usage, at } = account;
    const use = noUse(at);
    const add = (then: number, sizes: Parameters<typeof addTo>[2]) => {
      for (const period of PERIODS) if (isIn(period, then, at)) addTo(use, period, sizes);
    };
    for (const { subjects, at: then, input } of admissions)
      if (subjects.includes(subject)) add(then, { requests: 1, input });
    const shared = new Map(this.#shared.get(workspace)?.map((one) => [one.requestId, one]));
    for (const { requestId, subjects, counted, createdAt, at: posted, input, output, charge } of usage) {
      if (!subjects.includes(subject)) continue;
      // A count that begins later takes it from the tables of usage, which have the time of the request.
      const then = counted.includes(subject) ? posted : createdAt;
      const isLost = isMost && !shared.has(requestId) && !admissions.some((one) => one.requestId === requestId);
      add(then, { output, charge, ...(isLost ? { requests: 1, input } : {}) });
    }
    for (const { requestId, shared: one, input } of shared.values()) {
      const minute = one.minutes.get(subject);
      const isCounted = account.posted.has(requestId) && !this.#world.requests.get(requestId)?.isLate;
      if (minute !== undefined && (isMost || isCounted)) add(minute, { requests: 1, input });
    }
    return usedOf(use, cap);
  }

  #account(workspace: string): Account {
    return this.#world.database.accounts.get(workspace) as Account;
  }
}

const nameOf = (subject: string, { figure, period, action }: Cap): string => `${subject} ${figure} ${period} ${action}`;

/** Whether nothing keeps a replica from returning what it does not use. */
function canReturn(world: World, replica: Replica, own: Grant): boolean {
  const { deaf, cutOffUntil, isToldDeaf, escrow } = replica;
  if (own.posts.length > 0 || own.flight || isAwaiting(replica) || world.now < cutOffUntil) return false;
  return (world.now >= deaf.until + CALL_BACK_MS || isToldDeaf) && escrow.wakeAt === undefined;
}
