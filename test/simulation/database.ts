import {
  type Ask,
  type Headroom,
  type Item,
  NOTHING,
  type Post,
  type Reply,
  type Verdict,
} from "../../src/admission/escrow/exchange.ts";
import { type Account, capacityOf, type Grant, limitOf, overruns, RATES, reservedOf } from "./account.ts";
import { CapRules } from "./cap-rules.ts";
import type { Defects } from "./defects.ts";
import { earlierUse, freeKeys, isUsedByOther, keepResponses, useKey } from "./keys.ts";
import { refusalOf, spareOf } from "./limits.ts";
import { lastItemOf, reduce } from "./settlement-log.ts";
import { SubjectGrants } from "./subject-grants.ts";
import { currentWindows, msLeft, UNITS } from "./windows.ts";

/** The answer to an item. */
export interface Result {
  reply: Reply;
  /** Replicas whose unused headroom is called back. */
  callBack: string[];
  /** Subjects whose unused headroom is called back. */
  subjects?: readonly string[];
  /** The item was executed before. */
  isRepeat: boolean;
}

const LIMITLESS = Number.POSITIVE_INFINITY;

/** The rules of the SQL functions, without SQL. */
export class Database {
  readonly accounts = new Map<string, Account>();
  /** Number of grants that were opened. */
  grants = 0;
  readonly caps: CapRules;
  readonly #subjects: SubjectGrants;
  readonly #defects: Defects;

  constructor(defects: Defects = {}) {
    this.#defects = defects;
    this.caps = new CapRules(defects);
    this.#subjects = new SubjectGrants(defects);
  }

  /**
   * @param reading the clock, in ms since 1970
   * @param live number of replicas that run
   * @returns the answer, and the replicas whose headroom is called back; undefined for a copy of an older item
   */
  exchange(replica: string, item: Item, reading: number, live: number): Result | undefined {
    const account = this.accounts.get(item.workspace);
    if (account) this.#postLog(account, reading);
    const row = account?.grants.get(replica);
    if (row && item.seq < row.seq) return undefined;
    if (row && item.seq === row.seq && !this.#defects.executesAgain)
      return { reply: row.reply, callBack: [], isRepeat: true };
    const isKnown = item.grant === 0 || (item.grant === row?.id && this.#isLast(row, item));
    if (!account || (!isKnown && !this.#mayBegin(account, item))) return unchanged("ended");
    const before = currentWindows(account, reading);
    const isOld = RATES.some((part) => item.keep[part] > 0 && item.keep[part] < LIMITLESS);
    if (isOld && before.minute !== item.minute) return unchanged("again");
    this.#advance(account, reading);
    if (item.grant === 0 && !this.#defects.keepsUnknown) this.#endGrant(account, replica);
    this.#count(account, account.grants.get(replica), item);
    const charges = this.#post(account, item.posts, replica);
    if (!this.#defects.freesNoKey) freeKeys(account, item.freed);
    this.caps.free(account, item.freed);
    return this.#reserve(account, replica, item, live, charges);
  }

  /** The rule of append_settlement.sql. */
  append(replica: string, { workspace, seq, grant, after, posts, held, used, subjects = [] }: Item): Result {
    const account = this.accounts.get(workspace) as Account;
    const last = lastItemOf(account, replica);
    const isKnown = account.grants.get(replica)?.id === grant && (last === after || last === seq);
    if (!isKnown && !this.#defects.appendsToEnded) return unchanged("ended");
    if (last !== seq) account.log.push({ replica, seq, posts, held, used, subjects });
    return { reply: { state: "appended" }, callBack: [], isRepeat: last === seq };
  }

  /** Posts what waits in the log of a workspace. */
  post(workspace: string, reading: number): Account {
    const account = this.accounts.get(workspace) as Account;
    this.#postLog(account, reading);
    return account;
  }

  /** Ends the grants of a replica. */
  end(replica: string, reading: number): void {
    for (const account of this.accounts.values()) {
      if (!account.grants.has(replica)) continue;
      if (this.#defects.dropsLog) account.log = account.log.filter((item) => item.replica !== replica);
      this.#postLog(account, reading);
      this.#endGrant(account, replica);
    }
  }

  #endGrant(account: Account, replica: string): void {
    const grant = account.grants.get(replica);
    if (grant) {
      this.caps.end(account, grant.id);
      this.#subjects.end(account, grant.id);
    }
    account.grants.delete(replica);
  }

  /** The rule of post_settlements.sql. */
  #postLog(account: Account, reading: number): void {
    const { log, grants } = account;
    if (log.length === 0) return;
    this.#advance(account, reading);
    if (!this.#defects.keepsLog) account.log = [];
    for (const [replica, items] of Map.groupBy(log, (item) => item.replica)) {
      const grant = grants.get(replica);
      for (const { posts, used } of items) {
        this.#post(account, posts, replica);
        this.#count(account, grant, { used });
      }
      this.#subjects.post(account, grant, items);
      if (grant) reduce(grant, items);
    }
  }

  /** Whether a crash has lost nothing that the replica knows. */
  #isLast(row: Grant, { after }: Item): boolean {
    return after === 0 || after === row.seq || this.#defects.forgetsCrash === true;
  }

  /** A grant that was closed has nothing to lose. */
  #mayBegin(account: Account, item: Item): boolean {
    if (this.#defects.acceptsEnded) return true;
    return item.close && item.posts.every(({ requestId }) => account.posted.has(requestId));
  }

  #advance(account: Account, reading: number): void {
    const before = currentWindows(account, account.clock);
    const now = currentWindows(account, reading);
    for (const unit of UNITS) {
      if (now[unit] <= before[unit]) continue;
      for (const counts of [account.requests, account.input, account.output, account.spent]) counts[unit] = 0;
    }
    account.at = now.at;
    account.clock = reading;
  }

  #count(account: Account, row: Grant | undefined, { used }: Pick<Item, "used">): void {
    if (!row) return;
    const then = currentWindows({ at: row.at, clock: row.at }, row.at);
    const now = currentWindows(account, account.clock);
    for (const unit of UNITS) {
      // After a step back of more than a day, the counters are kept and the windows are earlier ones.
      if (then[unit] < now[unit]) continue;
      account.requests[unit] += used.requests;
      account.input[unit] += used.input;
    }
  }

  #post(account: Account, posts: readonly Post[], replica: string): Record<string, number> {
    const charges: Record<string, number> = {};
    for (const post of posts) {
      const { requestId, charge: price, output, admittedBy } = post;
      const earlier = account.posted.get(requestId);
      if (earlier !== undefined && !this.#defects.postsTwice) {
        if (earlier !== price) charges[requestId] = earlier;
        continue;
      }
      const charge =
        admittedBy === undefined
          ? price
          : this.#lateCharge(account, post, admittedBy === replica ? undefined : admittedBy);
      if (charge !== price) charges[requestId] = charge;
      const granted = Math.min(charge, Math.max(0, account.granted));
      account.granted -= granted;
      account.purchased -= charge - granted;
      for (const unit of UNITS) {
        account.output[unit] += output;
        account.spent[unit] += charge - granted;
      }
      account.posted.set(requestId, (earlier ?? 0) + charge);
      this.caps.settle(account, post, charge);
    }
    keepResponses(account, posts, !this.#defects.forgetsKeys);
    return charges;
  }

  /** What a settlement of an earlier grant can be charged: the rest of that grant, and what nobody has reserved. */
  #lateCharge(account: Account, post: Post, other: string | undefined): number {
    const price = isUsedByOther(account, post) && !this.#defects.chargesKeysAgain ? 0 : post.charge;
    const origin = other === undefined ? undefined : account.grants.get(other);
    const rest = origin?.credit ?? 0;
    const most = rest + Math.max(0, capacityOf(account) - reservedOf(account).all.credit);
    const charge = this.caps.lateCharge(account, post, Math.min(price, most), origin?.id);
    if (origin) {
      origin.credit -= Math.min(rest, charge);
      origin.held = Math.min(origin.held, origin.credit);
      origin.seq = 0;
    }
    return charge;
  }

  #reserve(account: Account, replica: string, item: Item, live: number, charges: Record<string, number>): Result {
    const finite = (part: keyof Headroom): number => (limitOf(account, part) ? finiteOr0(item.keep[part]) : 0);
    const known = account.grants.get(replica)?.id;
    const id = known ?? ++this.grants;
    const grant: Grant = {
      id,
      seq: item.seq,
      at: account.at,
      credit: item.keep.credit + item.held.credit,
      held: item.held.credit,
      running: finite("running") + item.held.running,
      runningNow: item.held.running,
      requests: finite("requests"),
      input: finite("input"),
      output: finite("output"),
      reply: { state: "again" },
    };
    account.grants.set(replica, grant);
    this.#subjects.report(account, id, item);
    const called = new Set<string>();
    const isSeen = known !== undefined || !this.#defects.missesNewKeys;
    const verdicts = item.asks.map((ask) => {
      const grants = [...account.grants.values()].map((grant) => grant.id).filter((of) => isSeen || of !== id);
      return (
        earlierUse(account, ask, grants, !this.#defects.dropsResponse) ??
        this.#verdict(account, replica, ask, known, called)
      );
    });
    const kept = Object.values(item.keep).some((size) => size > 0);
    const isNeeded = kept || item.asks.length > 0 || item.spare.n > 0;
    const n = spareOf(this.#seenBy(replica, account), item, live);
    const { spare } = item;
    grant.credit += n * spare.credit;
    const extra = { ...NOTHING, credit: n * spare.credit };
    for (const [part, size] of [
      ["running", 1],
      ["requests", 1],
      ["input", spare.input],
      ["output", spare.output],
    ] as const) {
      extra[part] = isNeeded && !limitOf(account, part) ? LIMITLESS : n * size;
      if (extra[part] < LIMITLESS) grant[part] += extra[part];
    }
    const { minute } = currentWindows(account, account.clock);
    const isOver = isIdle(grant) && overruns(account).length > 0;
    grant.reply = { state: "done", grant: id, verdicts, charges, extra, minute, msLeft: msLeft(account), isOver };
    if (item.subjects?.some(({ spare }) => spare))
      grant.reply = { ...grant.reply, subjects: this.#subjects.grant(account, id, live, item) };
    const isClosed = item.close && grant.credit === 0 && grant.running === 0 && grant.runningNow === 0;
    if (isClosed) {
      this.#subjects.end(account, id);
      account.grants.delete(replica);
    }
    const others = [...account.grants.keys()].filter((id) => id !== replica);
    const isCalled = verdicts.some(({ calledBack, refusal }) => calledBack && !refusal?.limit?.includes(":"));
    return { reply: grant.reply, callBack: isCalled ? others : [], subjects: [...called], isRepeat: false };
  }

  /**
   * @param known number of the grant that the replica had before
   * @param called takes subjects whose headroom is called back
   */
  #verdict(account: Account, replica: string, ask: Ask, known: number | undefined, called: Set<string>): Verdict {
    const grant = account.grants.get(replica);
    if (!grant) throw new Error("no grant");
    const short = refusalOf(this.#seenBy(replica, account), ask, "reserved");
    const refusal = short && refusalOf(account, ask, "in use");
    const opened = known === undefined ? grant.id : undefined;
    const cap = refusal || !ask.subjects ? undefined : this.caps.check(account, ask, opened, called);
    if (cap?.refusal) {
      if (this.#defects.countsRefused)
        this.caps.take(account, { ...ask, subjects: ask.subjects?.slice(0, 1) ?? [] }, grant.id);
      return cap;
    }
    const reason = refusal ?? (this.#defects.neverCallsBack ? short : undefined);
    if (reason) return { refusal: reason };
    if (short) return { refusal: short, calledBack: true };
    for (const unit of UNITS) {
      account.requests[unit] += 1;
      account.input[unit] += ask.input;
    }
    grant.credit += ask.hold;
    grant.held += ask.hold;
    grant.running += 1;
    grant.runningNow += 1;
    useKey(account, ask, grant.id);
    this.caps.take(account, ask, grant.id);
    this.caps.note(account, ask, grant.id);
    return cap ?? {};
  }

  #seenBy(replica: string, account: Account): Account {
    const own = account.grants.get(replica);
    return this.#defects.ignoresOthers && own ? { ...account, grants: new Map([[replica, own]]) } : account;
  }
}

function unchanged(state: "ended" | "again"): Result {
  return { reply: { state }, callBack: [], isRepeat: false };
}

/** Whether a grant has more than running requests need. */
export function isIdle({ credit, held, running, runningNow, requests, input, output }: Grant): boolean {
  return credit > held || running > runningNow || requests > 0 || input > 0 || output > 0;
}

function finiteOr0(size: number): number {
  return size < LIMITLESS ? size : 0;
}
