import type { Headroom, Item, Post } from "../../src/admission/escrow/exchange.ts";
import type { Grant as OwnGrant } from "../../src/admission/escrow/grant.ts";
import type { Account, Grant, Limits } from "./account.ts";
import type { Replica } from "./actors.ts";
import { lastItemOf, waitingOf } from "./settlement-log.ts";
import { chargesBySubject } from "./subject-grants.ts";
import { Violation } from "./violation.ts";
import type { Unit } from "./windows.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

/** The limits that a workspace has now and did not have before, named as by `overruns`. */
export function newLimits(before: Limits, now: Limits): string[] {
  const rates = (["requests", "input", "output"] as const).flatMap((part) =>
    Object.keys(now[part] ?? {})
      .filter((unit) => before[part]?.[unit as Unit] === undefined)
      .map((unit) => `${part} ${unit}`),
  );
  return before.running === undefined && now.running !== undefined ? ["running", ...rates] : rates;
}

export type IsBound = (part: keyof Headroom) => boolean;

/** What a replica has used of a grant, and what it keeps, are within the grant. */
export function checkUse({ id }: Replica, item: Item, before: Account, isBound: IsBound): void {
  const { keep, held, used, posts, close, mode } = item;
  const grant = before.grants.get(id);
  if (close || !grant) return;
  const fail = (part: string, size: number, of: number) => {
    if (size > of) throw new Violation(2, `${id} has used and keeps ${size} ${part} of a grant of ${of}`);
  };
  fail("credit", keep.credit + held.credit + chargesOf(posts) + waitingOf(before, id), grant.credit);
  const waiting = before.log.filter((one) => one.replica === id);
  for (const rate of ["requests", "input"] as const) {
    const size = waiting.reduce((sum, one) => sum + one.used[rate], used[rate] + Math.max(0, keep[rate]));
    if (size < LIMITLESS && isBound(rate)) fail(rate, size, grant[rate]);
  }
  if (mode === "append" || keep.output === 0 || !isBound("output")) return;
  const own = [...waiting.flatMap((one) => one.posts), ...posts].filter(({ admittedBy }) => admittedBy === undefined);
  const output = own.reduce((sum, post) => sum + post.output, keep.output);
  if (output < LIMITLESS) fail("output tokens", output, grant.output);
}

/** The charges that a grant covers. */
function chargesOf(posts: readonly Post[]): number {
  return posts.reduce((sum, { charge, admittedBy }) => sum + (admittedBy === undefined ? charge : 0), 0);
}

/**
 * What a replica's requests hold, what it may still admit, and what it has not posted are within its grant.
 * @param isExact whether nothing is under way and nothing was lost, so that they are all of it
 */
export function checkOwn(
  replica: Replica,
  own: OwnGrant,
  grant: Grant,
  account: Account,
  isBound: IsBound,
  isExact: boolean,
): void {
  const { flight, free } = own;
  const isApplied = flight !== undefined && lastItemOf(account, replica.id) === flight.item.seq;
  const posting = isApplied ? flight.item.posts : [];
  const credit = own.held + own.owed - chargesOf(posting) + free.credit + waitingOf(account, replica.id);
  const fail = (part: string, size: number, of: number, mustBeAll = isExact) => {
    if (size > of || (mustBeAll && size < of))
      throw new Violation(2, `${replica.id} uses ${size} ${part} of a grant of ${of}`);
  };
  fail("credit", credit, grant.credit);
  if (free.running < LIMITLESS && isBound("running"))
    fail("concurrent requests", own.running.size + free.running, grant.running);
  const waiting = account.log.filter((item) => item.replica === replica.id);
  const unreported = isApplied || !flight ? waiting : [...waiting, flight.item];
  for (const rate of ["requests", "input"] as const) {
    const used = unreported.reduce((sum, item) => sum + item.used[rate], own.used[rate]);
    // After its minute, nothing of it is used.
    if (free[rate] < LIMITLESS && isBound(rate)) fail(rate, used + free[rate], grant[rate], isExact && free[rate] > 0);
  }
  if (free.output <= 0 || free.output === LIMITLESS || !isBound("output")) return;
  const posts = [...own.posts, ...unreported.flatMap((item) => item.posts)].filter(
    ({ admittedBy }) => admittedBy === undefined,
  );
  const output = posts.reduce((sum, post) => sum + post.output, free.output);
  fail("output tokens", output, grant.output);
}

/** What the requests of subjects hold, and what a replica may still admit of them, is within what is reserved. */
export function checkShares(replica: Replica, own: OwnGrant, grant: number, account: Account): void {
  const waiting = account.log.filter((item) => item.replica === replica.id);
  const charges = chargesBySubject(waiting.flatMap(({ posts }) => posts));
  for (const row of account.reserves.values()) {
    const share = row.grant === grant ? own.shares.get(row.subject) : undefined;
    if (!share) continue;
    const { free, held, owed, running, used } = share;
    const reports = waiting.flatMap(({ subjects = [] }) => subjects.filter(({ subject }) => subject === row.subject));
    const { credits = 0 } = charges.get(row.subject) ?? {};
    const sizes: [part: "credit" | "running" | "requests" | "input", size: number][] = [
      ["credit", free.credit + held + owed + credits],
      ["running", free.running + running],
    ];
    for (const rate of ["requests", "input"] as const)
      if (free[rate] > 0)
        sizes.push([rate, reports.reduce((sum, one) => sum + one.used[rate], free[rate] + used[rate])]);
    for (const [part, size] of sizes)
      if (size < LIMITLESS && size > row[part])
        throw new Violation(2, `${replica.id} uses ${size} ${part} of ${row[part]} of ${row.subject}`);
  }
}
