import type { Item, Post, SubjectGrant, SubjectReport } from "../../src/admission/escrow/exchange.ts";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import type { Account, Grant } from "./account.ts";
import { addTo, type Cap, capsOf, heldOf, holdsOf, PERIODS, type Period, templateOf, useAt, usedOf } from "./caps.ts";
import type { CapDefects } from "./defects.ts";
import type { Logged } from "./settlement-log.ts";
import { currentWindows, msLeft } from "./windows.ts";

/** What is reserved for requests of a subject that a replica admits by itself; a row of `subject_grants`. */
export interface SubjectReserve {
  subject: string;
  grant: number;
  at: number;
  credit: number;
  /** Of requests that run, at the last report. */
  held: number;
  running: number;
  runningNow: number;
  requests: number;
  input: number;
  output: number;
  hasIdle: boolean;
}

const LIMITLESS = Number.POSITIVE_INFINITY;
const PARTS = {
  credits: "credit",
  concurrent_requests: "running",
  requests: "requests",
  input_tokens: "input",
  output_tokens: "output",
} as const;

const windowsAt = (at: number) => currentWindows({ at, clock: at }, at);

/** Whether a time is in the current window of a period, or in a later one. */
export function isIn(period: Period | "", then: number, now: number): boolean {
  return period === "" || period === "total" || windowsAt(then)[period] >= windowsAt(now)[period];
}

/** What replicas have reserved of a cap of a subject, and whether they may return some of it. */
export function reservedOf({ reserves, at }: Account, subject: string, cap: Cap): { size: number; hasIdle: boolean } {
  const rows = [...reserves.values()].filter((row) => row.subject === subject);
  const part = PARTS[cap.figure];
  const isHeld = part === "credit" || part === "running";
  const size = rows.reduce((sum, row) => sum + (isHeld || isIn(cap.period, row.at, at) ? row[part] : 0), 0);
  return { size, hasIdle: rows.some(({ hasIdle }) => hasIdle) };
}

/** What posts charge to the headroom of subjects. */
export function chargesBySubject(posts: readonly Post[]): Map<string, { credits: number; output: number }> {
  const found = new Map<string, { credits: number; output: number }>();
  for (const { shared = [], charge, output, admittedBy } of posts) {
    if (admittedBy !== undefined) continue;
    for (const subject of shared) {
      const { credits = 0, output: before = 0 } = found.get(subject) ?? {};
      found.set(subject, { credits: credits + charge, output: before + output });
    }
  }
  return found;
}

/** The rules of the SQL functions about headroom of subjects. */
export class SubjectGrants {
  readonly #defects: CapDefects;

  constructor(defects: CapDefects) {
    this.#defects = defects;
  }

  /** The rule of report_subjects.sql. */
  report(account: Account, grant: number, { subjects = [], posts }: Item): void {
    const charges = chargesBySubject(posts);
    const reports = new Map<string, Partial<SubjectReport>>([...charges.keys()].map((subject) => [subject, {}]));
    for (const report of subjects) reports.set(report.subject, report);
    for (const [subject, { used, held, returns }] of reports) {
      const key = `${grant} ${subject}`;
      const row = account.reserves.get(key);
      if (row && used && used.requests > 0) this.#count(account, row, used);
      if (!returns) {
        if (row) reduce(row, charges.get(subject), used, held);
      } else if (held && held.credit + held.running > 0) {
        const kept = { ...NOTHING, ...held, held: held.credit, runningNow: held.running };
        account.reserves.set(key, { subject, grant, at: row?.at ?? account.at, ...kept, hasIdle: false });
      } else account.reserves.delete(key);
    }
  }

  /** What post_settlements.sql does about them. */
  post(account: Account, grant: Grant | undefined, items: readonly Logged[]): void {
    for (const { subjects = [], posts } of items) {
      const charges = chargesBySubject(posts);
      const reports = new Map(subjects.map((report) => [report.subject, report]));
      for (const subject of new Set([...charges.keys(), ...reports.keys()])) {
        const row = account.reserves.get(`${grant?.id} ${subject}`);
        if (!row) continue;
        const { used, held } = reports.get(subject) ?? {};
        this.#count(account, row, used ?? { requests: 0, input: 0 });
        reduce(row, charges.get(subject), used, held);
      }
    }
  }

  /** The rule of grant_subjects.sql. */
  grant(account: Account, grant: number, live: number, { subjects = [] }: Item): SubjectGrant[] {
    return subjects.flatMap((report) => this.#grant(account, grant, live, report) ?? []);
  }

  /** The grant ends. */
  end({ reserves }: Account, grant: number): void {
    if (this.#defects.keepsSubjectsOfEnded) return;
    for (const [key, row] of reserves) if (row.grant === grant) reserves.delete(key);
  }

  #grant(account: Account, grant: number, live: number, { subject, spare }: SubjectReport): SubjectGrant | undefined {
    if (!spare) return undefined;
    const key = `${grant} ${subject}`;
    const row = account.reserves.get(key);
    const { minute } = windowsAt(account.at);
    const isSame = spare.minute === minute && row !== undefined && row.at >= minute;
    if (spare.minute !== undefined && !isSame) return undefined;
    const caps = capsOf(account, subject);
    const n = this.#most(account, subject, caps, live, spare);
    if (n < Math.min(4, spare.n)) return undefined;
    const has = (figure: Cap["figure"]) => caps.some((cap) => cap.figure === figure);
    const size = { credits: spare.credit, concurrent_requests: 1, requests: 1 };
    const sizes = { ...size, input_tokens: spare.input, output_tokens: spare.output };
    const extra = { ...NOTHING };
    const before = row ?? { subject, grant, at: account.at, ...NOTHING, held: 0, runningNow: 0, hasIdle: true };
    const next = { ...before, at: account.at, hasIdle: true };
    for (const [figure, part] of Object.entries(PARTS) as [Cap["figure"], (typeof PARTS)[Cap["figure"]]][]) {
      extra[part] = has(figure) ? n * sizes[figure] : LIMITLESS;
      if (has(figure)) next[part] += extra[part];
    }
    if (caps.length > 0) {
      account.reserves.set(key, next);
      if (!account.subjects.has(subject)) account.subjects.set(subject, useAt(account, subject, this.#defects));
    } else if (row) row.at = account.at;
    return { subject, extra, msLeft: this.#msLeft(account, subject) };
  }

  #most(
    account: Account,
    subject: string,
    caps: readonly Cap[],
    live: number,
    spare: NonNullable<SubjectReport["spare"]>,
  ): number {
    const use = useAt(account, subject, this.#defects);
    const holds = holdsOf(account, subject);
    const { credit, input, output } = spare;
    const sizes = { credits: credit, concurrent_requests: 1, requests: 1, input_tokens: input, output_tokens: output };
    let n = spare.n;
    for (const cap of caps) {
      // One that is exceeded already leaves nothing, also for requests that need nothing of it.
      const size = Math.max(1, sizes[cap.figure]);
      const others = this.#defects.ignoresSubjects ? 0 : reservedOf(account, subject, cap).size;
      const left = cap.amount - usedOf(use, cap) - heldOf(cap, holds) - others;
      n = Math.min(n, Math.trunc(left / (2 * live * size)));
    }
    return n;
  }

  #msLeft(account: Account, subject: string): number {
    const names = [subject, templateOf(subject)];
    const ends = account.caps.flatMap((cap) =>
      names.includes(cap.subject) && cap.endsAt !== undefined && cap.endsAt > account.at ? [cap.endsAt] : [],
    );
    const minute = msLeft(account);
    return this.#defects.outlastsRaises ? minute : Math.min(minute, ...ends.map((end) => end - account.at));
  }

  #count(account: Account, row: SubjectReserve, { requests, input }: SubjectReport["used"]): void {
    if (!account.subjects.has(row.subject) || this.#defects.countsNoShared) return;
    const use = useAt(account, row.subject, this.#defects);
    for (const period of PERIODS) if (isIn(period, row.at, account.at)) addTo(use, period, { requests, input });
    account.subjects.set(row.subject, use);
  }
}

function reduce(
  row: SubjectReserve,
  { credits, output }: { credits: number; output: number } = { credits: 0, output: 0 },
  { requests, input }: SubjectReport["used"] = { requests: 0, input: 0 },
  held: SubjectReport["held"] = { credit: row.held, running: row.runningNow },
): void {
  row.credit = Math.max(0, row.credit - credits);
  row.output = Math.max(0, row.output - output);
  row.requests = Math.max(0, row.requests - requests);
  row.input = Math.max(0, row.input - input);
  row.held = held.credit;
  row.runningNow = held.running;
  row.hasIdle = true;
}
