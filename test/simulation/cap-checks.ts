import type { Ask, Item, Verdict } from "../../src/admission/escrow/exchange.ts";
import { type Account, copyOf } from "./account.ts";
import { limitOf } from "./cap-rules.ts";
import {
  type Admission,
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
import { Violation } from "./violation.ts";
import { currentWindows } from "./windows.ts";
import type { World } from "./world.ts";

/** Checks the caps of subjects. Every method throws Violation. */
export class CapChecks {
  readonly #world: World;
  /** Caps that were set or removed after the account was opened: workspace, subject and what is capped. */
  readonly #changed = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A cap was set or removed. */
  changed(workspace: string, cap: Cap): void {
    if (!cap.isFirst || cap.endsAt !== undefined) this.#changed.add(`${workspace} ${nameOf(cap.subject, cap)}`);
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
  exchanged({ workspace, asks, posts }: Item, verdicts: readonly Verdict[]): void {
    const account = this.#account(workspace);
    this.posted(workspace);
    for (const post of posts) if (post.admittedBy !== undefined) this.#checkUse(workspace, subjectsOf(post), false);
    for (const [i, ask] of asks.entries()) {
      const { refusal, response } = verdicts[i] ?? {};
      if (!ask.subjects || response !== undefined) continue;
      if (!refusal) this.#checkUse(workspace, ask.subjects, true);
      else if (refusal.limit?.includes(":") && !this.#isFull(workspace, account, ask, refusal.limit))
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
    account.at = currentWindows(account, this.#world.clock).at;
    const refused = capsOf(account, subject).filter(({ action }) => action === "refuse");
    if (!refused.every((cap) => this.#isFixed(workspace, subject, cap))) return;
    const ask = { requestId: "probe", hold: 1, input: 0, subjects: [subject] };
    const isFull = (isMost: boolean) =>
      refused.some((cap) => trueUse(account, subject, cap, isMost) + needOf(cap, ask) > cap.amount);
    const { refusal } = this.#world.database.caps.check(account, ask) ?? {};
    if (isFull(false) && !refusal)
      throw new Violation(1, `${subject} of ${workspace} has reached a cap and is admitted`);
    if (refusal && !isFull(true)) throw new Violation(6, `${subject} of ${workspace} has room and is refused`);
  }

  /**
   * Subjects use and hold no more than their caps.
   * @param isAdmitted whether a request was admitted just now, so that changed caps bind, too
   */
  #checkUse(workspace: string, subjects: readonly string[], isAdmitted: boolean): void {
    const account = this.#account(workspace);
    for (const subject of subjects) {
      for (const cap of capsOf(account, subject)) {
        if (cap.action !== "refuse" || cap.figure === "output_tokens") continue;
        const isFixed = this.#isFixed(workspace, subject, cap);
        if (!isFixed && !isAdmitted) continue;
        const size = isFixed
          ? trueUse(account, subject, cap, false) + heldOf(cap, this.#runningOf(account, subject))
          : usedOf(useAt(account, subject), cap) + heldOf(cap, holdsOf(account, subject));
        if (size > cap.amount)
          throw new Violation(1, `${nameOf(subject, cap)} of ${workspace} is ${size}, above the cap of ${cap.amount}`);
      }
    }
  }

  /** Whether a cap of this name has no room for a request. */
  #isFull(workspace: string, account: Account, ask: Ask, limit: string): boolean {
    return (ask.subjects ?? []).some((subject) =>
      capsOf(account, subject).some((cap) => {
        if (cap.action !== "refuse" || limitOf(subject, cap) !== limit) return false;
        const isFixed = this.#isFixed(workspace, subject, cap);
        const used = isFixed ? trueUse(account, subject, cap, true) : usedOf(useAt(account, subject), cap);
        return used + heldOf(cap, holdsOf(account, subject)) + needOf(cap, ask) > cap.amount;
      }),
    );
  }

  /** Whether a cap has been in force since the account was opened. */
  #isFixed(workspace: string, subject: string, cap: Cap): boolean {
    const names = [subject, templateOf(subject)].map((name) => `${workspace} ${nameOf(name, cap)}`);
    return cap.isFirst === true && !names.some((name) => this.#changed.has(name));
  }

  /** The requests of a subject that run, or wait to be posted. */
  #runningOf(account: Account, subject: string): Admission[] {
    const live = new Set([...account.grants.values()].map(({ id }) => id));
    return account.admissions.filter(({ subjects, grant, requestId }) => {
      if (!subjects.includes(subject) || !live.has(grant) || account.posted.has(requestId)) return false;
      const state = this.#world.requests.get(requestId)?.state;
      return state === "running" || state === "settled";
    });
  }

  #account(workspace: string): Account {
    return this.#world.database.accounts.get(workspace) as Account;
  }
}

const nameOf = (subject: string, { figure, period, action }: Cap): string => `${subject} ${figure} ${period} ${action}`;

/**
 * What a subject has used of a cap that has always been there, by all of its requests.
 * @param isMost whether it includes requests whose admission a crash has lost. They count if they are posted early.
 */
function trueUse({ admissions, usage, at }: Account, subject: string, cap: Cap, isMost: boolean): number {
  const now = currentWindows({ at, clock: at }, at);
  const use = noUse(at);
  const add = (then: number, sizes: Parameters<typeof addTo>[2]) => {
    const windows = currentWindows({ at: then, clock: then }, then);
    for (const period of PERIODS) if (period === "total" || windows[period] >= now[period]) addTo(use, period, sizes);
  };
  for (const { subjects, at: then, input } of admissions)
    if (subjects.includes(subject)) add(then, { requests: 1, input });
  for (const { requestId, subjects, at: then, input, output, charge } of usage) {
    if (!subjects.includes(subject)) continue;
    const isLost = isMost && !admissions.some((one) => one.requestId === requestId);
    add(then, { output, charge, ...(isLost ? { requests: 1, input } : {}) });
  }
  return usedOf(use, cap);
}
