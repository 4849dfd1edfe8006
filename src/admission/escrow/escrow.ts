import type { Command, Event } from "./events.ts";
import type { Ask, Lane, Post, Reply, Verdict } from "./exchange.ts";
import type { QueuedAsk, Unposted } from "./request-states.ts";
import { Sender } from "./sender.ts";
import { type Running, Share } from "./share.ts";

/** Time after the last heartbeat in which requests are admitted, in ms. Replicas declare others dead after 10 s. */
const SAFE_MS = 8_000;

/** Default of `callBackMs`. */
const CALL_BACK_MS = 100;

/** Largest number of workspaces whose last request is remembered after their share is removed. About 2 MB. */
const MAX_SEEN = 10_000;

/** Wait before an ask is repeated, in milliseconds. */
const RETRY_MS = 10;

/**
 * The rules of one replica: an event in, commands out. It reads no clock and waits for nothing; each event comes with
 * the time of a monotonic clock in ms (docs/decisions/grants.md).
 */
export class Escrow {
  readonly shares = new Map<string, Share>();
  readonly #running = new Map<string, Running>();
  readonly #replica: string;
  readonly #callBackMs: number;
  readonly #sender = new Sender();
  /** When the last request of workspaces without a share was admitted, in the order of removal. */
  readonly #seen = new Map<string, number>();
  /** Settlements on their way to the journal. */
  readonly #writing = new Map<string, Unposted>();
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
    return [...this.shares.values()].some(
      ({ grant, flight, running }) => flight || (grant !== 0 && running.size === 0),
    );
  }

  /** Whether something that was admitted is not known to the database, and is on its way there. */
  isReporting(workspace: string): boolean {
    const share = this.shares.get(workspace);
    return share !== undefined && (share.flight !== undefined || share.mustReport);
  }

  handle(event: Event, now: number): Command[] {
    const commands: Command[] = [];
    this.#apply(event, now, commands);
    this.#sender.next(
      now,
      (lane, items) => commands.push({ type: "send", lane, items }),
      (share) => this.#forget(share),
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
        this.#share(event.workspace).posts.push({ ...event.post, isJournaled: true });
        return;
      case "receive":
        this.#receive(event.lane, event.replies, now, commands);
        return;
      case "fail":
        this.#fail(event.lane, now, commands);
        return;
      case "journaled":
        for (const id of event.requestIds) this.#journaled(id, event.isWritten, commands);
        return;
      case "callBack":
        this.#callBack(event.workspace, now);
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
        for (const share of this.shares.values()) this.#sender.add(share);
        return;
      case "stop":
        for (const workspace of this.shares.keys()) this.#callBack(workspace, now);
    }
  }

  #request(workspace: string, ask: Ask, now: number, commands: Command[]): void {
    const { requestId } = ask;
    if (now >= this.#safeUntil) {
      commands.push({ type: "refuse", requestId, refusal: undefined });
      return;
    }
    const share = this.#share(workspace);
    // A key is claimed in the database. A request does not overtake those that wait for headroom.
    if (ask.key === undefined && share.asks.length === 0 && share.admit(ask, now)) {
      this.#admit(share, requestId, commands);
    } else if (this.#sender.isAway || share.pause.isOn(now)) {
      commands.push({ type: "refuse", requestId, refusal: undefined });
    } else {
      share.asks.push({ ...ask, retryAt: now });
    }
  }

  #admit(share: Share, requestId: string, commands: Command[]): void {
    const running = share.running.get(requestId);
    if (running) this.#running.set(requestId, running);
    commands.push({ type: "admit", requestId });
  }

  #settle(post: Post, now: number, commands: Command[]): void {
    const running = this.#running.get(post.requestId);
    if (!running) {
      commands.push({ type: "deny", requestId: post.requestId });
      return;
    }
    this.#running.delete(post.requestId);
    const { key } = running;
    const charge = Math.min(post.charge, running.hold);
    const unposted: Unposted = { ...post, charge, ...(key === undefined ? {} : { key }) };
    running.share.settle(running, unposted, now);
    this.#sender.add(running.share);
    if (this.#sender.isAway || running.share.pause.isOn(now))
      this.#journal(running.share.workspace, [unposted], commands);
  }

  #receive(lane: Lane, replies: readonly (Reply | undefined)[], now: number, commands: Command[]): void {
    for (const [i, share] of this.#sender.answered(lane).entries()) {
      const reply = replies[i];
      if (reply?.state === "locked") {
        this.#giveUp(share, commands);
        share.pause.park(now);
      } else if (reply?.state === "done") this.#done(share, reply, now, commands);
      else if (reply?.state === "appended") this.#confirm(share.appended().posts, {}, commands);
      else if (reply?.state === "ended") this.#end(share, commands);
      else share.takeBack();
      if (reply?.state === "rejected") this.#reject(share, reply.requestIds, commands);
    }
  }

  #done(share: Share, reply: Extract<Reply, { state: "done" }>, now: number, commands: Command[]): void {
    const { asks, posts } = share.receive(reply, now);
    this.#confirm(posts, reply.charges, commands);
    for (const [i, ask] of asks.entries()) {
      const verdict = reply.verdicts[i];
      if (verdict && !ask.isAbandoned) this.#answer(share, ask, verdict, now, commands);
    }
  }

  #confirm(posts: readonly Unposted[], charges: Readonly<Record<string, number>>, commands: Command[]): void {
    for (const { requestId, charge, isJournaled } of posts) {
      if (isJournaled) commands.push({ type: "unjournal", requestId });
      if (isJournaled && !this.#writing.delete(requestId)) continue;
      commands.push({ type: "confirm", requestId, charge: charges[requestId] ?? charge });
    }
  }

  #answer(share: Share, ask: QueuedAsk, verdict: Verdict, now: number, commands: Command[]): void {
    const { requestId, askedAt = now } = ask;
    if (verdict.response !== undefined) commands.push({ type: "replay", requestId, response: verdict.response });
    else if (!verdict.refusal) this.#admit(share, requestId, commands);
    else if (verdict.calledBack && now - askedAt < this.#callBackMs) {
      share.asks.push({ ...ask, askedAt, retryAt: now + RETRY_MS });
      share.callBack(now);
    } else commands.push({ type: "refuse", requestId, refusal: verdict.refusal });
  }

  /** Another replica has ended the grant. What was not posted is not charged, and its end does not leave. */
  #end(share: Share, commands: Command[]): void {
    share.takeBack();
    this.shares.delete(share.workspace);
    this.#sender.remove(share);
    for (const id of share.running.keys()) this.#running.delete(id);
    const next = this.#share(share.workspace);
    next.asks = share.asks;
    for (const post of share.posts) {
      const { requestId, isJournaled } = post;
      // What is in the journal has been delivered: it is charged as far as limits and balance allow.
      if (isJournaled) this.#repost(next, { admittedBy: this.#replica, ...post });
      else commands.push({ type: "deny", requestId });
    }
  }

  #reject(share: Share, requestIds: readonly string[], commands: Command[]): void {
    for (const requestId of requestIds) {
      share.drop(requestId);
      this.#writing.delete(requestId);
      commands.push({ type: "deny", requestId, isInvalid: true });
    }
  }

  #repost(share: Share, post: Unposted): void {
    share.posts.push(post);
    if (this.#writing.has(post.requestId)) this.#writing.set(post.requestId, post);
  }

  /** The database is unavailable: settlements go to the journal, and nothing is asked. */
  #fail(lane: Lane, now: number, commands: Command[]): void {
    this.#sender.failed(lane, now);
    for (const share of this.shares.values()) this.#giveUp(share, commands);
  }

  /** Settlements of a workspace go to the journal, and its asks are refused. Those in flight may have been applied. */
  #giveUp(share: Share, commands: Command[]): void {
    const flight = share.flight?.item;
    for (const ask of [...(flight?.asks ?? []), ...share.asks]) {
      if (!ask.isAbandoned) commands.push({ type: "refuse", requestId: ask.requestId, refusal: undefined });
      ask.isAbandoned = true;
    }
    share.asks = [];
    this.#journal(share.workspace, [...(flight?.posts ?? []), ...share.posts], commands);
  }

  #journal(workspace: string, all: readonly Unposted[], commands: Command[]): void {
    const posts = all.filter(({ isJournaled }) => !isJournaled);
    for (const post of posts) {
      post.isJournaled = true;
      this.#writing.set(post.requestId, post);
    }
    if (posts.length > 0) commands.push({ type: "journal", workspace, posts });
  }

  #journaled(requestId: string, isWritten: boolean, commands: Command[]): void {
    const post = this.#writing.get(requestId);
    // The database has confirmed it in the meantime.
    if (!post) return;
    this.#writing.delete(requestId);
    if (isWritten) {
      commands.push({ type: "confirm", requestId, charge: post.charge });
      return;
    }
    for (const share of this.shares.values()) {
      share.drop(requestId);
      this.#sender.add(share);
    }
    commands.push({ type: "deny", requestId });
  }

  /** A grant that is not known here is closed. */
  #find(workspace: string, grant: number): void {
    const share = this.#share(workspace);
    if (share.grant !== 0 || share.flight) return;
    share.grant = grant;
    share.mustReturn = true;
  }

  #beat(sentAt: number, isDeaf: boolean, now: number): void {
    this.#sender.isDeaf = isDeaf;
    // Other replicas may have ended the grants in the meantime. Each is confirmed before it is used again.
    if (isDeaf || now >= this.#safeUntil) for (const workspace of this.shares.keys()) this.#callBack(workspace, now);
    this.#safeUntil = Math.max(this.#safeUntil, sentAt + SAFE_MS);
  }

  #callBack(workspace: string, now: number): void {
    const share = this.shares.get(workspace);
    if (!share) return;
    share.callBack(now);
    this.#sender.add(share);
  }

  #report(workspace: string): void {
    const share = this.shares.get(workspace);
    if (!share || share.used.requests === 0) return;
    share.mustReport = true;
    this.#sender.add(share);
  }

  /** Removes a share. When its last request came is remembered, to notice workspaces that are used now and then. */
  #forget({ workspace, admittedAt }: Share): void {
    this.shares.delete(workspace);
    this.#seen.set(workspace, admittedAt);
    const [oldest] = this.#seen.size > MAX_SEEN ? this.#seen.keys() : [];
    if (oldest !== undefined) this.#seen.delete(oldest);
  }

  #share(workspace: string): Share {
    let share = this.shares.get(workspace);
    if (!share) {
      share = new Share(workspace, this.#seen.get(workspace));
      this.#seen.delete(workspace);
      this.shares.set(workspace, share);
    }
    this.#sender.add(share);
    return share;
  }
}
