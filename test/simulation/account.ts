import type { Headroom, Reply } from "../../src/admission/escrow/exchange.ts";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import type { Admission, Cap, SubjectHold, SubjectUse, Usage } from "./caps.ts";
import type { KeyUse } from "./keys.ts";
import type { Logged } from "./settlement-log.ts";
import type { SubjectReserve } from "./subject-grants.ts";
import { type Clocked, currentWindows, UNITS, type Unit } from "./windows.ts";

/** A grant of a replica. */
export interface Grant extends Headroom {
  id: number;
  seq: number;
  /** Time of the windows at the last exchange. */
  at: number;
  /** What running requests hold, as far as the replica has said. */
  held: number;
  runningNow: number;
  reply: Reply;
}

/** Amounts for each of minute, day, week and month. */
export type Counts = Record<Unit, number>;

export interface Limits {
  running?: number;
  requests?: Partial<Counts>;
  input?: Partial<Counts>;
  output?: Partial<Counts>;
  /** Micro-credits of purchased credit, without `minute`. */
  spend?: Partial<Counts>;
}

export interface Account extends Clocked {
  granted: number;
  purchased: number;
  limits: Limits;
  requests: Counts;
  input: Counts;
  output: Counts;
  spent: Counts;
  grants: Map<string, Grant>;
  /** In the order in which they were appended. */
  log: Logged[];
  /** Charges by request. */
  posted: Map<string, number>;
  /** Uses of idempotency keys. */
  keys: Map<string, KeyUse>;
  caps: readonly Cap[];
  /** Counters of subjects with caps. */
  subjects: Map<string, SubjectUse>;
  /** By request and subject. */
  holds: Map<string, SubjectHold>;
  /** By grant and subject. */
  reserves: Map<string, SubjectReserve>;
  /** Of all subjects, in their order. */
  admissions: readonly Admission[];
  usage: readonly Usage[];
}

const LIMITLESS = Number.POSITIVE_INFINITY;

/** The parts that windows limit. */
export const RATES = ["requests", "input", "output"] as const;

export function newAccount(at: number, account: Partial<Account> = {}): Account {
  const zero = (): Counts => ({ minute: 0, day: 0, week: 0, month: 0 });
  return {
    granted: 0,
    purchased: 0,
    limits: {},
    at,
    clock: at,
    requests: zero(),
    input: zero(),
    output: zero(),
    spent: zero(),
    grants: new Map(),
    log: [],
    posted: new Map(),
    keys: new Map(),
    caps: [],
    subjects: new Map(),
    holds: new Map(),
    reserves: new Map(),
    admissions: [],
    usage: [],
    ...account,
  };
}

/** A copy that does not change with the account. */
export function copyOf(account: Account): Account {
  const { requests, input, output, spent, grants, log, posted, keys, subjects, holds, reserves } = account;
  return {
    ...account,
    requests: { ...requests },
    input: { ...input },
    output: { ...output },
    spent: { ...spent },
    grants: new Map([...grants].map(([replica, grant]) => [replica, { ...grant }])),
    log: [...log],
    posted: new Map(posted),
    keys: new Map(keys),
    subjects: new Map(subjects),
    holds: new Map(holds),
    reserves: new Map([...reserves].map(([key, row]) => [key, { ...row }])),
  };
}

/** What is reserved in the current windows. */
export function reservedOf(account: Account): { all: Headroom; perUnit: Record<(typeof RATES)[number], Counts> } {
  const all = { ...NOTHING };
  const zero = (): Counts => ({ minute: 0, day: 0, week: 0, month: 0 });
  const perUnit = { requests: zero(), input: zero(), output: zero() };
  const now = currentWindows(account, account.clock);
  for (const grant of account.grants.values()) {
    all.credit += grant.credit;
    all.running += grant.running;
    const then = currentWindows({ at: grant.at, clock: grant.at }, grant.at);
    for (const unit of UNITS) {
      if (then[unit] !== now[unit]) continue;
      for (const part of RATES) perUnit[part][unit] += grant[part];
    }
  }
  return { all, perUnit };
}

/** Whether a workspace has a limit. */
export function limitOf({ limits }: Account, part: keyof Headroom): boolean {
  if (part === "credit") return true;
  if (part === "running") return limits.running !== undefined;
  return Object.values(limits[part] ?? {}).some((limit) => limit !== undefined);
}

/** What can be charged: granted credit, and of the purchased credit what the spend limits leave. */
export function capacityOf({ granted, purchased, limits, spent }: Account): number {
  const left = (["day", "week", "month"] as const).map((unit) => (limits.spend?.[unit] ?? LIMITLESS) - spent[unit]);
  return granted + Math.max(0, Math.min(purchased, ...left));
}

/** The dimensions in which more is posted and reserved than the limit, with the amount beyond it. */
export function overruns(account: Account): [name: string, beyond: number][] {
  const { all, perUnit } = reservedOf(account);
  const found: [string, number][] = [
    ["credit", all.credit - capacityOf(account)],
    ["running", all.running - (account.limits.running ?? LIMITLESS)],
  ];
  for (const unit of ["minute", "day", "month"] as const) {
    for (const part of RATES) {
      const total = account[part][unit] + perUnit[part][unit];
      found.push([`${part} ${unit}`, total - (account.limits[part]?.[unit] ?? LIMITLESS)]);
    }
  }
  return found.filter(([, beyond]) => beyond > 0);
}
