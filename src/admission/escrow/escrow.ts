import { TransientMap } from "../../concurrency/transient.ts";
import type { Command, Event } from "./events.ts";
import type { Ask, Mode, Post, Reply, Verdict } from "./exchange.ts";
import { Grant } from "./grant.ts";
import type { QueuedAsk, Unposted } from "./request-states.ts";
import { Sender } from "./sender.ts";

/** Time after the last heartbeat in which requests are admitted, in ms. Replicas declare others dead after 10 s. */
const SAFE_MS = 8_000;

/** Default of `callBackMs`. */
const CALL_BACK_MS = 100;

/** Largest number of workspaces whose last request is remembered after their grant is removed. About 2 MB. */
const MAX_SEEN = 10_000;

/** Wait before an ask is repeated, in milliseconds. */
const RETRY_MS = 10;

/**
 * The rules of one replica: an event in, commands out. It reads no clock and waits for nothing; each event comes with
 * the time of a monotonic clock in ms (docs/decisions/grants.md).
 */
export class Escrow {
  readonly grants = new Map<string, Grant>();
  /** The grants of running requests. */
  readonly #running = new TransientMap<string, Grant>();
  readonly #replica: string;
  readonly #callBackMs: number;
  readonly #sender = new Sender();
  /** When the last request of workspaces without a grant was admitted, in the order of removal. */
  readonly #seen = new Map<string, number>();
  /** Charges of settlements on their way to the journal. */
  readonly #writing = new Map<string, number>();
  readonly #observed = { count: 0 };
  #safeUntil = Number.NEGATIVE_INFINITY;

  /** @param callBackMs longest wait for headroom that another replica was told to return, in milliseconds */
  constructor(replica: string, callBackMs = CALL_BACK_MS) {
    this.#replica = replica;
    this.#callBackMs = callBackMs;
  }

  /** When a `tick` can have an effect, in ms, besides the return of idle headroom; undefined: not before an event. */
  get wakeAt(): number | undefined {
    return this.#sender.wakeAt;
  }

  /** Whether an answer is awaited, or something is reserved that no request holds. */
  get isReturning(): boolean {
    return [...this.grants.values()].some(
      ({ number, flight, running }) => flight || (number !== 0 && running.size === 0),
    );
  }

  /** Whether something that was admitted is not known to the database, and is on its way there. */
  isReporting(workspace: string): boolean {
    const grant = this.grants.get(workspace);
    return grant !== undefined && (grant.flight !== undefined || grant.mustReport || grant.shares.isBehind);
  }

  handle(event: Event, now: number): Command[] {
    const commands: Command[] = [];
    this.#apply(event, now, commands);
    this.#sender.next(
      now,
      (mode, items) => commands.push({ type: "send", mode, items }),
      (grant) => this.#forget(grant),
    );
    return commands;
  }

  #apply(event: Event, now: number, commands: Command[]): void {
    switch (event.type) {
      case "request":
        this.#request(event.workspace, event, now, commands);
        return;
      case "settle":
        for (const post of event.posts) this.#settle(post, now, commands);
        return;
      case "recover":
        this.#grant(event.workspace).posts.push({ ...event.post, isJournaled: true });
        return;
      case "receive":
        this.#receive(event.mode, event.replies, now, commands);
        return;
      case "fail":
        this.#fail(event.mode, now, commands);
        return;
      case "journaled":
        for (const id of event.requestIds) this.#journaled(id, event.isWritten, commands);
        return;
      case "callBack":
        this.#callBack(event.workspace, now, event.subject);
        return;
      case "report":
        this.#report(event.workspace);
        return;
      case "find":
        this.#find(event.workspace, event.grant);
        return;
      case "beat":
        this.#beat(event.sentAt, event.isDeaf, now);
        return;
      case "tick":
        for (const grant of this.grants.values()) {
          grant.shares.sweep(now);
          this.#sender.add(grant);
        }
        return;
      case "stop":
        for (const workspace of this.grants.keys()) this.#callBack(workspace, now);
    }
  }

  #request(workspace: string, ask: Ask, now: number, commands: Command[]): void {
    const { requestId } = ask;
    if (now >= this.#safeUntil) {
      commands.push({ type: "refuse", requestId, refusal: undefined });
      return;
    }
    const grant = this.#grant(workspace);
    // Keys are claimed in the database. A request does not overtake those that wait for headroom.
    const mustAsk = ask.key !== undefined || grant.asks.length > 0;
    if (!mustAsk && grant.admit(ask, now)) {
      this.#admit(grant, requestId, commands);
    } else if (this.#sender.isAway || grant.pause.isOn(now)) {
      commands.push({ type: "refuse", requestId, refusal: undefined });
    } else {
      grant.asks.push({ ...ask, retryAt: now });
    }
  }

  #admit(grant: Grant, requestId: string, commands: Command[], isLow = false): void {
    this.#running.set(requestId, grant);
    commands.push({ type: "admit", requestId, ...(isLow ? { isLow } : {}) });
  }

  #settle(post: Post, now: number, commands: Command[]): void {
    const grant = this.#running.get(post.requestId);
    if (!grant) {
      commands.push({ type: "deny", requestId: post.requestId });
      return;
    }
    this.#running.delete(post.requestId);
    const unposted = grant.settle(post, now);
    this.#sender.add(grant);
    if (this.#sender.isAway || grant.pause.isOn(now)) this.#journal(grant.workspace, [unposted], commands);
  }

  #receive(mode: Mode, replies: readonly (Reply | undefined)[], now: number, commands: Command[]): void {
    for (const [i, grant] of this.#sender.answered(mode).entries()) {
      const reply = replies[i];
      if (reply?.state === "locked") {
        this.#giveUp(grant, commands);
        grant.pause.begin(now);
      } else if (reply?.state === "done") this.#done(grant, reply, now, commands);
      else if (reply?.state === "appended") this.#confirm(grant.appended().posts, {}, commands);
      else if (reply?.state === "ended") this.#end(grant, commands);
      else grant.takeBack();
      if (reply?.state === "rejected") this.#reject(grant, reply.requestIds, commands);
    }
  }

  #done(grant: Grant, reply: Extract<Reply, { state: "done" }>, now: number, commands: Command[]): void {
    const { asks, posts } = grant.receive(reply, now);
    this.#confirm(posts, reply.charges, commands);
    for (const [i, ask] of asks.entries()) {
      const verdict = reply.verdicts[i];
      if (verdict && !ask.isAbandoned) this.#answer(grant, ask, verdict, now, commands);
    }
  }

  #confirm(posts: readonly Unposted[], charges: Readonly<Record<string, number>>, commands: Command[]): void {
    for (const { requestId, charge, isJournaled } of posts) {
      if (isJournaled) commands.push({ type: "unjournal", requestId });
      if (isJournaled && !this.#writing.delete(requestId)) continue;
      commands.push({ type: "confirm", requestId, charge: charges[requestId] ?? charge });
    }
  }

  #answer(grant: Grant, ask: QueuedAsk, verdict: Verdict, now: number, commands: Command[]): void {
    const { requestId, calledAt = now } = ask;
    if (verdict.response !== undefined) commands.push({ type: "replay", requestId, response: verdict.response });
    else if (!verdict.refusal) this.#admit(grant, requestId, commands, verdict.low);
    else if (verdict.calledBack && now - calledAt < this.#callBackMs) {
      grant.asks.push({ ...ask, calledAt, retryAt: now + RETRY_MS });
      if (!verdict.refusal.limit?.includes(":")) grant.callBack(now);
    } else commands.push({ type: "refuse", requestId, refusal: verdict.refusal });
  }

  /** Another replica has ended the grant. What was not posted is not charged, and its end does not leave. */
  #end(grant: Grant, commands: Command[]): void {
    grant.takeBack();
    grant.shares.clear();
    this.grants.delete(grant.workspace);
    this.#sender.remove(grant);
    for (const id of grant.running.keys()) this.#running.delete(id);
    const next = this.#grant(grant.workspace);
    next.asks = grant.asks;
    for (const post of grant.posts) {
      const { requestId, isJournaled } = post;
      // What is in the journal has been delivered: it is charged as far as limits and balance allow.
      if (isJournaled) next.posts.push({ admittedBy: this.#replica, ...post });
      else commands.push({ type: "deny", requestId });
    }
  }

  #reject(grant: Grant, requestIds: readonly string[], commands: Command[]): void {
    for (const requestId of requestIds) {
      grant.drop(requestId);
      this.#writing.delete(requestId);
      commands.push({ type: "deny", requestId, isInvalid: true });
    }
  }

  /** The database is unavailable: settlements go to the journal, and nothing is asked. */
  #fail(mode: Mode, now: number, commands: Command[]): void {
    this.#sender.failed(mode, now);
    for (const grant of this.grants.values()) this.#giveUp(grant, commands);
  }

  /** Settlements of a workspace go to the journal, and its asks are refused. Those in flight may have been applied. */
  #giveUp(grant: Grant, commands: Command[]): void {
    const flight = grant.flight?.item;
    for (const ask of [...(flight?.asks ?? []), ...grant.asks]) {
      if (!ask.isAbandoned) commands.push({ type: "refuse", requestId: ask.requestId, refusal: undefined });
      ask.isAbandoned = true;
    }
    grant.asks = [];
    this.#journal(grant.workspace, [...(flight?.posts ?? []), ...grant.posts], commands);
  }

  #journal(workspace: string, all: readonly Unposted[], commands: Command[]): void {
    const posts = all.filter(({ isJournaled }) => !isJournaled);
    for (const post of posts) {
      post.isJournaled = true;
      this.#writing.set(post.requestId, post.charge);
    }
    if (posts.length > 0) commands.push({ type: "journal", workspace, posts });
  }

  #journaled(requestId: string, isWritten: boolean, commands: Command[]): void {
    const charge = this.#writing.get(requestId);
    // The database has confirmed it in the meantime.
    if (charge === undefined) return;
    this.#writing.delete(requestId);
    if (isWritten) {
      commands.push({ type: "confirm", requestId, charge });
      return;
    }
    for (const grant of this.grants.values()) grant.drop(requestId);
    commands.push({ type: "deny", requestId });
  }

  /** A grant that is not known here is closed. */
  #find(workspace: string, number: number): void {
    const grant = this.#grant(workspace);
    if (grant.number !== 0 || grant.flight) return;
    grant.number = number;
    grant.mustReturn = true;
  }

  #beat(sentAt: number, isDeaf: boolean, now: number): void {
    this.#sender.isDeaf = isDeaf;
    // Other replicas may have ended the grants in the meantime. Each is confirmed before it is used again.
    if (isDeaf || now >= this.#safeUntil) for (const workspace of this.grants.keys()) this.#callBack(workspace, now);
    if (isDeaf) for (const { shares } of this.grants.values()) shares.callBack(now);
    this.#safeUntil = Math.max(this.#safeUntil, sentAt + SAFE_MS);
  }

  /** @param subject of which alone unused headroom is returned */
  #callBack(workspace: string, now: number, subject?: string): void {
    const grant = this.grants.get(workspace);
    if (!grant) return;
    if (subject === undefined) grant.callBack(now);
    else grant.shares.callBack(now, subject);
    this.#sender.add(grant);
  }

  #report(workspace: string): void {
    const grant = this.grants.get(workspace);
    if (!grant || grant.used.requests === 0) return;
    grant.mustReport = true;
    this.#sender.add(grant);
  }

  /** Removes a grant. When its last request came is remembered, to notice workspaces that are used now and then. */
  #forget({ workspace, admittedAt, shares }: Grant): void {
    shares.clear();
    this.grants.delete(workspace);
    this.#seen.set(workspace, admittedAt);
    if (this.#seen.size > MAX_SEEN) this.#seen.delete(this.#seen.keys().next().value as string);
  }

  #grant(workspace: string): Grant {
    let grant = this.grants.get(workspace);
    if (!grant) {
      grant = new Grant(workspace, this.#seen.get(workspace), this.#observed);
      this.#seen.delete(workspace);
      this.grants.set(workspace, grant);
    }
    this.#sender.add(grant);
    return grant;
  }
}
