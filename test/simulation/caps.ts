import type { Ask, Post } from "../../src/admission/escrow/exchange.ts";
import type { Account } from "./account.ts";
import { type Clocked, currentWindows, UNITS } from "./windows.ts";

export const FIGURES = ["concurrent_requests", "credits", "input_tokens", "output_tokens", "requests"] as const;
export type Figure = (typeof FIGURES)[number];

export const PERIODS = [...UNITS, "total"] as const;
export type Period = (typeof PERIODS)[number];

/** A limit on a subject, or with `*` on each subject of a kind. */
export interface Cap {
  subject: string;
  figure: Figure;
  /** Empty for concurrent requests. */
  period: Period | "";
  amount: number;
  action: "refuse" | "low";
  /** By the clock of the database; undefined: for good. */
  endsAt?: number;
  /** Set when the account was opened, and not changed since. */
  isFirst?: boolean;
}

type Totals = Record<Period, number>;

/** What a subject has used; a row of `subject_periods`. */
export interface SubjectUse {
  at: number;
  requests: Totals;
  input: Totals;
  output: Totals;
  spent: Totals;
}

export const COUNTED = ["requests", "input", "output", "spent"] as const;

/** What a running request holds of one of its subjects; a row of `subject_holds`. */
export interface SubjectHold {
  requestId: string;
  subject: string;
  grant: number;
  hold: number;
}

/** A request that was admitted under caps, for the checks. */
export interface Admission extends Pick<Ask, "requestId" | "hold" | "input"> {
  subjects: readonly string[];
  grant: number;
  at: number;
}

/** A settlement of somebody, for the tables of usage and for the checks. */
export interface Usage {
  requestId: string;
  subjects: readonly string[];
  /** Those for which there was a count when it was posted. */
  counted: readonly string[];
  createdAt: number;
  /** Time of the windows when it was posted. */
  at: number;
  input: number;
  output: number;
  charge: number;
}

/** What the row of a request says of its subjects. */
export interface SubjectRow {
  key_id?: string;
  end_user?: string;
  tags?: Record<string, string>;
  created_at?: Date;
  input_tokens?: number;
}

/** All subjects of a request, by its row. */
export function subjectsOf({ row }: Pick<Post, "row">): string[] {
  const { key_id, end_user, tags = {} } = row as SubjectRow;
  if (key_id === undefined) return [];
  const named = Object.entries(tags).map(([name, value]) => `tag:${name}=${value}`);
  return [`key:${key_id}`, ...(end_user === undefined ? [] : [`user:${end_user}`]), ...named];
}

/** The rule of template_of.sql. */
export function templateOf(subject: string): string {
  const [kind = ""] = subject.split(subject.startsWith("tag:") ? "=" : ":");
  return subject.startsWith("tag:") ? `${kind}=*` : `${kind}:*`;
}

/** The rule of capped_kinds.sql, for all keys: `key:ID`, `key:*`, `user`, `tag:NAME`. */
export function cappedKinds({ caps }: Account): ReadonlySet<string> {
  return new Set(caps.map(({ subject }) => (subject.startsWith("key:") ? subject : kindOf(subject))));
}

export function kindOf(subject: string): string {
  return subject.startsWith("tag:") ? (subject.split("=")[0] as string) : (subject.split(":")[0] as string);
}

const orderOf = ({ figure, period, action }: Cap): string => `${figure} ${period} ${action}`;

/** Changes of the rule of caps_of.sql that tests plant. */
export interface ForceDefects {
  prefersTemplate?: boolean | undefined;
  keepsRaises?: boolean | undefined;
}

/** The caps of a subject: the rule of caps_of.sql, in its order. */
export function capsOf({ caps, at }: Pick<Account, "caps" | "at">, subject: string, defects: ForceDefects = {}): Cap[] {
  const template = templateOf(subject);
  const rank = (cap: Cap): number =>
    (cap.subject === subject ? 2 : 0) * (defects.prefersTemplate ? -1 : 1) + (cap.endsAt === undefined ? 0 : 1);
  const found = new Map<string, Cap>();
  for (const cap of caps) {
    if (cap.subject !== subject && cap.subject !== template) continue;
    if (cap.endsAt !== undefined && cap.endsAt <= at && !defects.keepsRaises) continue;
    const other = found.get(orderOf(cap));
    if (!other || rank(cap) > rank(other)) found.set(orderOf(cap), cap);
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, cap]) => cap);
}

/**
 * When a cap of a subject ends and what holds then has room for what is needed, by the rule of cap_opens.sql.
 * @param cap the one that refuses
 */
export function opensAt(account: Pick<Account, "caps" | "at">, subject: string, cap: Cap, needed: number) {
  const isSame = (other: Cap) => orderOf(other) === orderOf(cap);
  const ends = account.caps
    .filter((other) => isSame(other) && [subject, templateOf(subject)].includes(other.subject))
    .map(({ endsAt = 0 }) => endsAt)
    .filter((at) => at > account.at)
    .filter((at) => {
      const later = capsOf({ caps: account.caps, at }, subject).find(isSame);
      return !later || later.amount >= needed;
    });
  return cap.period === "total" || ends.length === 0 ? undefined : Math.min(...ends);
}

export function noUse(at: number): SubjectUse {
  const zero = (): Totals => ({ minute: 0, day: 0, week: 0, month: 0, total: 0 });
  return { at, requests: zero(), input: zero(), output: zero(), spent: zero() };
}

const windowsAt = (at: number) => currentWindows({ at, clock: at } satisfies Clocked, at);

/** Changes of the rule of subject_periods_at.sql that tests plant. */
export interface UseDefects {
  keepsWindows?: boolean | undefined;
  startsAtZero?: boolean | undefined;
}

/** The rule of subject_periods_at.sql: what a subject has used in the windows of its workspace. */
export function useAt({ subjects, usage, at }: Account, subject: string, defects: UseDefects = {}): SubjectUse {
  const now = windowsAt(at);
  const row = subjects.get(subject);
  const use = noUse(at);
  if (row) {
    const then = windowsAt(row.at);
    for (const period of PERIODS) {
      if (period !== "total" && now[period] > then[period] && !defects.keepsWindows) continue;
      for (const part of COUNTED) use[part][period] = row[part][period];
    }
    return use;
  }
  for (const one of defects.startsAtZero ? [] : usage) {
    if (!one.subjects.includes(subject)) continue;
    const then = windowsAt(one.createdAt);
    for (const period of PERIODS)
      if (period === "total" || then[period] >= now[period]) addTo(use, period, { ...one, requests: 1 });
  }
  return use;
}

/** Adds what a request or a settlement has used to one period. */
export function addTo(
  use: SubjectUse,
  period: Period,
  {
    requests = 0,
    input = 0,
    output = 0,
    charge = 0,
  }: { requests?: number; input?: number; output?: number; charge?: number },
): void {
  use.requests[period] += requests;
  use.input[period] += input;
  use.output[period] += output;
  use.spent[period] += charge;
}

/** What a subject has used of a figure. */
export function usedOf(use: SubjectUse, { figure, period }: Pick<Cap, "figure" | "period">): number {
  if (period === "") return 0;
  if (figure === "credits") return use.spent[period];
  if (figure === "requests") return use.requests[period];
  if (figure === "input_tokens") return use.input[period];
  return figure === "output_tokens" ? use.output[period] : 0;
}

/** What one more request needs of a figure. */
export function needOf({ figure }: Pick<Cap, "figure">, { hold, input }: Pick<Ask, "hold" | "input">): number {
  if (figure === "credits") return hold;
  return figure === "input_tokens" ? input : 1;
}

/** What some holds take of a figure. */
export function heldOf({ figure }: Pick<Cap, "figure">, holds: readonly Pick<SubjectHold, "hold">[]): number {
  if (figure === "credits") return holds.reduce((sum, { hold }) => sum + hold, 0);
  return figure === "concurrent_requests" ? holds.length : 0;
}

/** The holds of a subject whose grants exist, and those of settlements that are about to be posted. */
export function holdsOf({ holds, grants }: Pick<Account, "holds" | "grants">, subject: string): SubjectHold[] {
  const live = new Set([0, ...[...grants.values()].map(({ id }) => id)]);
  return [...holds.values()].filter((hold) => hold.subject === subject && live.has(hold.grant));
}
