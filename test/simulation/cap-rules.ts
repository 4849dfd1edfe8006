import type { Ask, Freed, Post, Verdict } from "../../src/admission/escrow/exchange.ts";
import type { Refusal } from "../../src/admission/escrow/refusal.ts";
import type { Account } from "./account.ts";
import {
  addTo,
  type Cap,
  capsOf,
  heldOf,
  holdsOf,
  kindOf,
  needOf,
  opensAt,
  PERIODS,
  type SubjectHold,
  type SubjectRow,
  subjectsOf,
  templateOf,
  useAt,
  usedOf,
} from "./caps.ts";
import type { CapDefects } from "./defects.ts";
import { reservedOf } from "./subject-grants.ts";
import { currentWindows, msLeft, msUntil } from "./windows.ts";

/** The rules of the SQL functions about caps. */
export class CapRules {
  readonly #defects: CapDefects;

  constructor(defects: CapDefects = {}) {
    this.#defects = defects;
  }

  /**
   * The rule of check_caps.sql.
   * @param opened number of a grant that the same exchange opens
   * @param called takes subjects of which other replicas have idle headroom that is in the way
   */
  check(account: Account, ask: Ask, opened?: number, called?: Set<string>): Verdict | undefined {
    const { checksFirstSubject, stopsAtLow } = this.#defects;
    const subjects = checksFirstSubject ? ask.subjects?.slice(0, 1) : ask.subjects;
    let worst: Refusal | undefined;
    let blocked: Refusal | undefined;
    let low = false;
    const inTheWay: string[] = [];
    for (const subject of subjects ?? []) {
      const use = useAt(account, subject, this.#defects);
      const holds = this.#holdsOf(account, subject, opened);
      for (const cap of capsOf(account, subject, this.#defects)) {
        const used = usedOf(use, cap);
        const needs = needOf(cap, ask);
        const isBudget = cap.action === "low" && cap.figure === "credits";
        if (isBudget && used < cap.amount) continue;
        const own = used + heldOf(cap, holds) + needs;
        const { size, hasIdle } = reservedOf(account, subject, cap);
        if (own + (this.#defects.ignoresSubjects ? 0 : size) <= cap.amount) continue;
        const isIdle = hasIdle && (isBudget || own <= cap.amount) && !this.#defects.callsNoSubjects;
        if (isIdle) inTheWay.push(subject);
        if (cap.action === "low") {
          if (stopsAtLow) return { low: true };
          low = true;
          continue;
        }
        const isSpent = used + needs > cap.amount;
        const isFinal = cap.period === "total" && isSpent;
        const refusal = refusalOf(subject, cap, isFinal && cap.figure === "credits");
        const opens = isSpent ? opensAt(account, subject, cap, used + needs) : undefined;
        const isTooMuch = needs > cap.amount;
        const later = isTooMuch ? opensAt(account, subject, cap, needs) : undefined;
        if ((isTooMuch && later === undefined) || isFinal) return { refusal: { ...refusal, never: true } };
        const { period } = cap;
        const waits = opens === undefined ? [] : [msUntil(account, opens)];
        if (isSpent && period !== "" && period !== "total")
          waits.push(Math.max(msLeft(account, period), later === undefined ? 0 : msUntil(account, later)));
        const retry_ms = waits.length > 0 ? Math.min(...waits) : 1_000;
        if (isIdle) blocked ??= { ...refusal, retry_ms };
        else if (worst === undefined || retry_ms > (worst.retry_ms ?? 0)) worst = { ...refusal, retry_ms };
      }
    }
    for (const subject of inTheWay) called?.add(subject);
    if (worst) return { refusal: worst };
    if (blocked) return { refusal: blocked, calledBack: true };
    return low ? { low } : undefined;
  }

  /** The rule of take_caps.sql. */
  take(account: Account, { requestId, subjects = [], hold, input }: Ask, grant: number): void {
    for (const subject of subjects) {
      if (capsOf(account, subject).length === 0) continue;
      const use = useAt(account, subject, this.#defects);
      for (const period of PERIODS) addTo(use, period, { requests: 1, input });
      account.subjects.set(subject, use);
      if (!this.#defects.takesNoHold) account.holds.set(`${requestId} ${subject}`, { requestId, subject, grant, hold });
    }
  }

  /** Notes an admission, for the checks. */
  note(account: Account, { requestId, subjects, hold, input }: Ask, grant: number): void {
    if (!subjects) return;
    account.admissions = [...account.admissions, { requestId, subjects, grant, hold, input, at: account.at }];
  }

  /** The rule of charge_under_caps.sql. @param origin the grant that has admitted it, if it exists */
  lateCharge(account: Account, post: Post, charge: number, origin: number | undefined): number {
    if (account.caps.length === 0) return charge;
    const subjects = subjectsOf(post);
    const { requestId } = post;
    this.free(account, [{ requestId }]);
    let most = charge;
    for (const subject of subjects) {
      for (const cap of capsOf(account, subject)) {
        if (cap.figure !== "credits" || cap.action !== "refuse") continue;
        const used = usedOf(useAt(account, subject), cap) + heldOf(cap, holdsOf(account, subject));
        const left = cap.amount - used - reservedOf(account, subject, cap).size;
        const rest = account.reserves.get(`${origin} ${subject}`)?.credit ?? 0;
        most = Math.min(most, Math.max(0, left) + rest);
      }
    }
    for (const subject of subjects) {
      account.holds.set(`${requestId} ${subject}`, { requestId, subject, grant: 0, hold: most });
      const row = account.reserves.get(`${origin} ${subject}`);
      if (row) row.credit = Math.max(0, row.credit - most);
    }
    return most;
  }

  /** What post_settlements.sql does about the subjects of a settlement. */
  settle(account: Account, post: Post, charge: number): void {
    const subjects = subjectsOf(post);
    if (subjects.length === 0) return;
    const { requestId, output, row } = post;
    const { created_at, input_tokens: input = 0 } = row as SubjectRow;
    const rows = subjects.filter((subject) => account.subjects.has(subject));
    for (const subject of this.#defects.spendsNothing ? [] : rows) {
      const use = useAt(account, subject, this.#defects);
      for (const period of PERIODS) addTo(use, period, { output, charge });
      account.subjects.set(subject, use);
    }
    const createdAt = created_at?.getTime() ?? 0;
    const { at } = account;
    account.usage = [...account.usage, { requestId, subjects, counted: rows, createdAt, at, input, output, charge }];
    this.free(account, [{ requestId }]);
  }

  /** These requests hold nothing. */
  free({ holds }: Account, freed: readonly Freed[]): void {
    for (const { requestId } of freed)
      for (const [key, hold] of holds) if (hold.requestId === requestId) holds.delete(key);
  }

  /** What the holds under a grant mean when it ends. */
  end({ holds }: Account, grant: number): void {
    for (const [key, hold] of holds) if (hold.grant === grant && !this.#defects.keepsHoldsOfEnded) holds.delete(key);
  }

  /**
   * What an operator does who sets a cap. It replaces another one of the same subject, figure, period and action.
   * Without a cap nothing is counted, so the first one begins with what the tables of usage have.
   */
  set(account: Account, cap: Cap, reading: number): void {
    const { caps, subjects } = account;
    const { at } = currentWindows(account, reading);
    const isCounted = (names: readonly string[]) =>
      caps.some(({ subject, endsAt }) => names.includes(subject) && (endsAt === undefined || endsAt > at));
    if (!isCounted([cap.subject, templateOf(cap.subject)]))
      for (const subject of subjects.keys()) {
        const isCovered = subject === cap.subject || templateOf(subject) === cap.subject;
        if (isCovered && !isCounted([subject])) subjects.delete(subject);
      }
    account.caps = [...caps.filter((other) => !isSame(other, cap)), cap];
  }

  #holdsOf(account: Account, subject: string, opened: number | undefined): SubjectHold[] {
    if (this.#defects.keepsHoldsOfEnded) return [...account.holds.values()].filter((hold) => hold.subject === subject);
    const holds = holdsOf(account, subject);
    return this.#defects.missesNewHolds ? holds.filter(({ grant }) => grant !== opened) : holds;
  }
}

export function isSame(a: Cap, b: Cap): boolean {
  const isTemporary = (cap: Cap) => cap.endsAt !== undefined;
  if (a.subject !== b.subject || a.figure !== b.figure || a.period !== b.period) return false;
  return a.action === b.action && isTemporary(a) === isTemporary(b);
}

function refusalOf(subject: string, cap: Cap, isSpent: boolean): Refusal {
  return { refusal: isSpent ? "insufficient_credit" : "rate_limited", limit: limitOf(subject, cap) };
}

/** The name of a cap in a refusal. */
export function limitOf(subject: string, { figure, period }: Cap): string {
  const name = subject.startsWith("tag:") ? `tag.${kindOf(subject).slice(4)}` : kindOf(subject);
  const end = period === "" ? "" : period === "total" ? "_total" : `_per_${period}`;
  return `${name}:${figure}${end}`;
}
