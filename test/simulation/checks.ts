import type { Ask, Item } from "../../src/admission/escrow/exchange.ts";
import type { QueuedAsk } from "../../src/admission/escrow/request-states.ts";
import { type Account, type Grant, type Limits, limitOf, overruns } from "./account.ts";
import { isAwaiting, isOpen, type Replica, type Request } from "./actors.ts";
import { Calm } from "./calm.ts";
import { CapChecks } from "./cap-checks.ts";
import type { Result } from "./database.ts";
import { checkOwn, checkShares, checkUse, type IsBound, newLimits } from "./grant-checks.ts";
import { refusalOf } from "./limits.ts";
import type { Executed } from "./server.ts";
import { chargeOf, lastItemOf } from "./settlement-log.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** Longest wait of a request for headroom of others, in milliseconds. */
const CALL_BACK_MS = 100;

/** Checks the invariants of a world while it runs. Every method throws Violation. */
export class Checks {
  /** Whether the request that is being admitted was admitted by the replica alone. */
  isLocal = false;
  readonly #world: World;
  /** What exceeds a limit because the limit was lowered: workspace and dimension → amount. */
  readonly #allowed = new Map<string, number>();
  /** Grants that a crash has lost: replica, workspace and number. */
  readonly #lost = new Set<string>();
  /** Grants whose last changes a crash has lost: replica and workspace → number of the last item that is left. */
  readonly #setBack = new Map<string, number>();
  readonly caps: CapChecks;
  readonly #calm: Calm;
  /** Limits that the workspace did not have at first: what was reserved before may exceed them. */
  readonly #new = new Set<string>();

  constructor(world: World) {
    this.#world = world;
    this.#calm = new Calm(world);
    this.caps = new CapChecks(world, (replica, workspace) => this.#isSetBack(replica, workspace));
  }

  opened(workspace: string): void {
    this.#calm.limited(workspace);
  }

  limited(workspace: string, before: Limits): void {
    const account = this.#account(workspace);
    this.#calm.limited(workspace);
    for (const [name, beyond] of overruns(account)) this.#allowed.set(`${workspace} ${name}`, beyond);
    for (const name of newLimits(before, account.limits)) this.#new.add(`${workspace} ${name}`);
  }

  admitted(request: Request): void {
    const { replica, workspace } = request;
    const grant = this.#account(workspace).grants.get(replica.id);
    if (!grant) request.isOrphan = true;
    if (this.isLocal) this.#calm.admitted(workspace, request);
    this.caps.admitted(request);
    const known = replica.escrow.grants.get(workspace)?.number;
    if (!grant && this.isLocal && !this.#lost.has(`${replica.id} ${workspace} ${known}`))
      throw new Violation(5, `${request.replica.id} admitted ${request.requestId} without a grant`);
  }

  /** The grants of a replica are about to be ended. */
  ending(replica: Replica): void {
    for (const request of this.#world.requests.values()) {
      const account = this.#account(request.workspace);
      if (request.replica !== replica || !account.grants.has(replica.id)) continue;
      const isSettled = chargeOf(account, request.requestId) !== undefined;
      if (isOpen(request) && request.state !== "asked" && !isSettled) request.isOrphan = true;
    }
  }

  /** A crash has undone items. */
  crashed(undone: readonly Executed[]): void {
    for (const { replica, item, reply } of undone) {
      const { workspace } = item;
      const account = this.#account(workspace);
      if (account.grants.has(replica)) this.#setBack.set(`${replica} ${workspace}`, lastItemOf(account, replica));
      else if (reply.state === "done") this.#lost.add(`${replica} ${workspace} ${reply.grant}`);
    }
    for (const request of this.#world.requests.values()) {
      const { state, requestId, workspace, replica } = request;
      const account = this.#account(workspace);
      if (state !== "running" && state !== "settled") continue;
      if (chargeOf(account, requestId) === undefined && !account.grants.has(replica.id)) request.isOrphan = true;
    }
  }

  delivered({ requestId, workspace, replica }: Request): void {
    if (this.#chargeOf(workspace, requestId) !== undefined || replica.journal.has(requestId)) return;
    throw new Violation(4, `the end of ${requestId} left before its settlement was durable`);
  }

  /** A request was answered with the response that was kept of another one. */
  replayed({ requestId, workspace, key, body }: Request, of: string): void {
    const original = this.#world.requests.get(of);
    const isSame = original?.workspace === workspace && original.key === key && original.body === body;
    if (isSame && original.hasResponse && this.#account(workspace).posted.has(of)) return;
    throw new Violation(4, `${requestId} got the response of ${of}, which is not charged or is of another request`);
  }

  denied({ requestId, workspace, isUnknown }: Request): void {
    if (isUnknown || this.#chargeOf(workspace, requestId) === undefined) return;
    throw new Violation(4, `${requestId} is charged and its end did not leave`);
  }

  /** Which parts of a grant are bounded: those with a limit, unless requests were admitted when there was none. */
  #bound(account: Account, workspace: string): IsBound {
    const isNew = (part: string) => [...this.#new].some((name) => name.startsWith(`${workspace} ${part}`));
    return (part) => limitOf(account, part) && !isNew(part);
  }

  /** What waited in the log of a workspace was posted. */
  posted(workspace: string): void {
    this.#checkTotals(workspace, this.#account(workspace), false);
    this.caps.posted(workspace);
  }

  /** The database has executed an item. `before`: the account as it was. */
  exchanged(replica: Replica, item: Item, { reply, isRepeat }: Result, before: Account): void {
    const account = this.#account(item.workspace);
    if (reply.state === "appended") {
      for (const post of item.posts) this.#checkPost(account, post.requestId, false);
      if (!isRepeat) checkUse(replica, item, before, this.#bound(before, item.workspace));
      return;
    }
    this.#checkTotals(item.workspace, account, reply.state === "done" && reply.extra.output > 0 && !isRepeat);
    if (reply.state !== "done") return;
    for (const post of item.posts) this.#checkPost(account, post.requestId, post.admittedBy !== undefined);
    if (isRepeat) return;
    if (item.grant !== 0) checkUse(replica, item, before, this.#bound(before, item.workspace));
    this.caps.exchanged(replica, item, reply, (ask) => this.#isLast(ask));
    for (const [i, { refusal, calledBack, response }] of reply.verdicts.entries()) {
      const ask = item.asks[i];
      if (ask && !refusal && response === undefined) this.#calm.admitted(item.workspace, ask);
      if (ask && refusal?.refusal === "idempotency_key_in_use") this.#checkInUse(account, replica, ask);
      if (refusal?.refusal.startsWith("idempotency_key") || refusal?.limit?.includes(":")) continue;
      if (ask && refusal && (!calledBack || this.#isLast(ask))) this.#checkRefusal(account, replica, item, ask);
    }
  }

  /** Checks what can be checked at any moment. */
  holds(): void {
    if (this.#world.isCalm) this.#calm.holds();
    for (const [workspace, account] of this.#world.database.accounts) {
      for (const replica of this.#world.live) {
        const own = replica.escrow.grants.get(workspace);
        const grant = account.grants.get(replica.id);
        if (!own || grant?.id !== own.number) continue;
        if (this.#isSetBack(replica, workspace)) continue;
        checkOwn(replica, own, grant, account, this.#bound(account, workspace), this.#world.isCalm && !own.flight);
        if (!own.flight) checkShares(replica, own, grant.id, account);
      }
    }
  }

  /** Whether a crash has undone the last changes of a grant, which its replica does not know. */
  #isSetBack({ id }: Replica, workspace: string): boolean {
    return this.#setBack.get(`${id} ${workspace}`) === lastItemOf(this.#account(workspace), id);
  }

  /** Checks what must hold when all messages have arrived and no request runs. */
  ended(): void {
    if (this.#world.isCalm) this.#calm.ended();
    for (const request of this.#world.requests.values()) {
      const { requestId, state, workspace, charge, isLate, isUnknown } = request;
      const posted = this.#chargeOf(workspace, requestId);
      if (state === "delivered") {
        if (posted === undefined) throw new Violation(4, `${requestId} was delivered and is not charged`);
        if (posted > charge || (posted < charge && !isLate)) {
          throw new Violation(4, `${requestId} is charged ${posted} instead of ${charge}`);
        }
      } else if (posted !== undefined && state !== "lost" && !isUnknown) {
        throw new Violation(4, `${requestId} is charged and ended as ${state}`);
      } else if (isOpen(request)) throw new Violation(4, `${requestId} has no end`);
    }
    this.caps.ended();
    for (const [workspace, account] of this.#world.database.accounts) {
      const { grants, log } = account;
      if (log.length > 0) throw new Violation(4, `settlements of ${workspace} wait in the log`);
      for (const [id, { credit, running }] of grants) {
        if (credit > 0 || running > 0) throw new Violation(1, `${id} still holds ${credit} of ${workspace}`);
      }
    }
  }

  /** @param isGiven whether output tokens were reserved: only then they are bounded. Answers count at their end. */
  #checkTotals(workspace: string, account: Account, isGiven: boolean): void {
    if (account.granted < 0 || account.purchased < 0) throw new Violation(1, `a balance of ${workspace} is negative`);
    for (const [name, beyond] of overruns(account)) {
      if (name.startsWith("output") && !isGiven) continue;
      const allowed = this.#allowed.get(`${workspace} ${name}`) ?? 0;
      if (this.#new.has(`${workspace} ${name}`)) continue;
      if (beyond > allowed) throw new Violation(1, `${name} of ${workspace} exceeds its limit by ${beyond}`);
    }
  }

  /** Whether a request is not asked for again, and nothing keeps others from returning what they do not use. */
  #isLast({ calledAt }: Ask & Pick<QueuedAsk, "calledAt">): boolean {
    const { isCalm, now } = this.#world;
    return isCalm && calledAt !== undefined && now - calledAt >= CALL_BACK_MS;
  }

  #checkPost(account: Account, requestId: string, isLate: boolean): void {
    const request = this.#world.requests.get(requestId);
    const posted = chargeOf(account, requestId) ?? 0;
    if (!request) return;
    if (isLate) request.isLate = true;
    if (posted > request.charge || posted > request.hold) {
      throw new Violation(3, `${requestId} is charged ${posted}, held ${request.hold}, and cost ${request.charge}`);
    }
    this.#checkKey(account, request);
    if (request.isOrphan && !request.isLate)
      throw new Violation(5, `${requestId} was posted after its grant had ended`);
  }

  /** The requests of an idempotency key are charged once: its other answers of journals are charged nothing. */
  #checkKey(account: Account, { requestId, workspace, key, hasResponse }: Request): void {
    if (key === undefined || !hasResponse || !account.posted.get(requestId)) return;
    for (const other of this.#world.requests.values()) {
      if (other.workspace !== workspace || other.key !== key || other.requestId === requestId) continue;
      if (other.hasResponse && account.posted.get(other.requestId))
        throw new Violation(3, `${requestId} and ${other.requestId} have the same key and are both charged`);
    }
  }

  /** A key is in use while its request runs: until its replica has told the database that it does not. */
  #checkInUse(account: Account, refused: Replica, { key = "", requestId }: Ask): void {
    const use = account.keys.get(key);
    const user = this.#world.requests.get(use?.requestId ?? "");
    if (!user || (user.state !== "refused" && user.state !== "denied")) return;
    const { replica, workspace } = user;
    const own = replica.escrow.grants.get(workspace);
    if (!own || own.number !== use?.grant) return;
    const isOwn = replica === refused;
    if (isOwn && (own.flight?.sentAt ?? 0) <= user.failedAt) return;
    const isBusy = replica.state !== "up" || isAwaiting(replica) || own.flight || this.#world.now < replica.cutOffUntil;
    if (!isOwn && (isBusy || replica.escrow.wakeAt !== undefined)) return;
    throw new Violation(6, `${requestId} was refused for the key of ${user.requestId}, which does not run`);
  }

  /** A refusal may not be due to headroom that another replica holds and could return at once. */
  #checkRefusal(account: Account, refused: Replica, item: Item, ask: { hold: number; input: number }): void {
    const grants = new Map(account.grants);
    const { workspace } = item;
    for (const replica of this.#world.live) {
      const grant = grants.get(replica.id);
      const own = replica.escrow.grants.get(workspace);
      if (!grant || own?.number !== grant.id || replica === refused || replica.state !== "up") continue;
      // It is about to return what it has, or cannot.
      const isBusy = own.posts.length > 0 || own.flight !== undefined;
      // A call-back that was sent before is lost.
      const isUnaware = this.#world.now < replica.deaf.until + CALL_BACK_MS && !replica.isToldDeaf;
      if (isBusy || isUnaware || isAwaiting(replica) || this.#world.now < replica.cutOffUntil) continue;
      if (replica.escrow.wakeAt !== undefined) continue;
      grants.set(replica.id, {
        ...grant,
        credit: own.held,
        held: own.held,
        running: own.running.size,
        requests: own.used.requests,
        input: own.used.input,
      });
    }
    const own = grants.get(refused.id) as Grant;
    grants.set(refused.id, { ...own, credit: own.held, running: own.runningNow, requests: 0, input: 0 });
    if (refusalOf({ ...account, grants }, ask, "reserved")) return;
    throw new Violation(6, `a request of ${workspace} was refused while another replica had headroom for it`);
  }

  #chargeOf(workspace: string, requestId: string): number | undefined {
    return chargeOf(this.#account(workspace), requestId);
  }

  #account(workspace: string): Account {
    return this.#world.database.accounts.get(workspace) as Account;
  }
}
