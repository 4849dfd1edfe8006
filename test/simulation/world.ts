import type { Command, Event } from "../../src/admission/escrow/events.ts";
import type { Item, Post, Reply } from "../../src/admission/escrow/exchange.ts";
import type { Limits } from "./account.ts";
import { type Call, isOpen, type Mutation, newReplica, type Replica, type Request } from "./actors.ts";
import { Checks } from "./checks.ts";
import { Database } from "./database.ts";
import { Random } from "./random.ts";

/** A heartbeat is due this often, and a replica without one for this long is dead; see src/admission/replica.ts. */
const BEAT_MS = 2_000;
const DEAD_MS = 10_000;
const TICK_MS = 500;
const TIMEOUT_MS = 3_000;

const LOCKED: Reply = { state: "locked" };

/** Replicas, a database, a network that loses, delays and repeats messages, and a clock. Everything follows a seed. */
export class World {
  readonly random: Random;
  readonly database: Database;
  readonly replicas: Replica[] = [];
  readonly requests = new Map<string, Request>();
  readonly checks: Checks;
  readonly calls: Call[] | undefined;
  now = 0;
  /** The clock of the database, in ms since 1970, when `now` is 0. */
  epoch: number;
  /** Probability that a message is lost, that it is late, and that it is repeated. */
  faults = 0;
  readonly #mutation: Mutation;
  #messages: { at: number; run: () => void }[] = [];
  #count = 0;

  constructor(seed: number, mutation: Mutation = {}, calls?: Call[]) {
    this.random = new Random(seed);
    this.epoch = Date.UTC(2026, 10, 30, 23, 58, this.random.integer(0, 59));
    this.#mutation = mutation;
    this.database = new Database(mutation);
    this.calls = calls;
    this.checks = new Checks(this);
  }

  get clock(): number {
    return this.epoch + this.now;
  }

  get live(): Replica[] {
    return this.replicas.filter(({ state }) => state !== "dead");
  }

  /** Starts a process, which finds what an earlier one has left in its journal. */
  start(journal: Replica["journal"] = new Map()): Replica {
    const id = `r${this.#count++}`;
    const replica = newReplica(id, this.now, BEAT_MS, TICK_MS);
    this.replicas.push(replica);
    this.tell(replica, { type: "beat", sentAt: this.now, isDeaf: false });
    for (const [requestId, { workspace, post }] of journal) {
      replica.journal.set(requestId, { workspace, post });
      this.tell(replica, { type: "recover", workspace, post });
    }
    return replica;
  }

  /** A crash. Others notice it after a while; the disk stays. */
  kill(replica: Replica): void {
    replica.state = "dead";
    replica.awaited = 0;
    for (const request of this.requests.values()) {
      if (request.replica === replica && isOpen(request)) request.state = "lost";
    }
  }

  request(replica: Replica, workspace: string, hold: number, input: number): void {
    const requestId = `q${this.#count++}`;
    const ask = { requestId, hold, input };
    const isNew = { state: "asked", charge: 0, isOrphan: false, isLate: false, isUnknown: false } as const;
    this.requests.set(requestId, { ...ask, ...isNew, workspace, replica });
    this.checks.isLocal = true;
    this.tell(replica, { type: "request", workspace, ...ask });
    this.checks.isLocal = false;
  }

  /** An operator changes the limits of a workspace. */
  limit(workspace: string, limits: Limits): void {
    const account = this.database.accounts.get(workspace);
    if (!account) return;
    account.limits = limits;
    this.calls?.push({ do: "limits", workspace, limits, at: this.clock });
    this.checks.limited(workspace);
    for (const id of account.grants.keys()) this.#callBack(id, workspace);
  }

  /** An operator grants credit. */
  grant(workspace: string, amount: number): void {
    const account = this.database.accounts.get(workspace);
    if (!account) return;
    account.granted += amount;
    this.calls?.push({ do: "grant", workspace, amount, at: this.clock });
  }

  settle(request: Request, charge: number, output: number): void {
    const { requestId, replica } = request;
    request.state = "settled";
    request.charge = charge;
    if (this.#mutation.opensGate) this.#delivered(request);
    this.tell(replica, { type: "settle", post: { requestId, charge, output, row: {} } });
  }

  /** Passes time, and runs what is due. */
  advance(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const next = this.#nextTime();
      if (next > end) break;
      this.now = Math.max(this.now, next);
      this.#runDue();
    }
    this.now = end;
  }

  tell(replica: Replica, event: Event): void {
    if (replica.state !== "up") {
      // A process that sleeps gets it when it wakes.
      if (replica.state === "asleep") this.#later(replica.wakesAt - this.now, () => this.tell(replica, event));
      return;
    }
    for (const command of replica.escrow.handle(event, this.now)) this.#obey(replica, command);
  }

  #obey(replica: Replica, command: Command): void {
    switch (command.type) {
      case "send":
        this.#send(replica, command.items);
        return;
      case "journal":
        this.#journal(replica, command.workspace, command.posts);
        return;
      case "unjournal":
        replica.journal.delete(command.requestId);
        return;
      case "replay":
        return;
    }
    const request = this.requests.get(command.requestId);
    if (!request) return;
    if (command.type === "confirm") this.#delivered(request);
    else if (command.type === "deny") this.#denied(request);
    else if (command.type === "refuse") request.state = "refused";
    else this.#admitted(replica, request);
  }

  #denied(request: Request): void {
    request.state = "denied";
    this.checks.denied(request);
  }

  #admitted(replica: Replica, request: Request): void {
    request.state = "running";
    const share = replica.escrow.shares.get(request.workspace);
    if (share && this.#mutation.forgetsHolds) share.free.credit += request.hold;
    this.checks.admitted(request);
  }

  #delivered(request: Request): void {
    request.state = "delivered";
    this.checks.delivered(request);
  }

  #journal(replica: Replica, workspace: string, posts: readonly Post[]): void {
    const isWritten = !this.random.isLikely(this.faults / 4);
    const requestIds = posts.map(({ requestId }) => requestId);
    this.#later(this.random.integer(0, 2), () => {
      if (replica.state === "dead") return;
      if (isWritten) {
        for (const post of posts) {
          const admittedBy = post.admittedBy ?? replica.id;
          replica.journal.set(post.requestId, { workspace, post: { ...post, admittedBy } });
        }
      } else {
        for (const id of requestIds) (this.requests.get(id) as Request).isUnknown = true;
      }
      this.tell(replica, { type: "journaled", requestIds, isWritten });
      // It was posted before it was written.
      for (const id of requestIds) {
        const isPosted = this.database.accounts.get(workspace)?.posted.has(id);
        if (isPosted && this.requests.get(id)?.state === "delivered") replica.journal.delete(id);
      }
    });
  }

  #send(replica: Replica, items: readonly Item[]): void {
    const exchange = ++this.#count;
    replica.awaited = exchange;
    // Copies, because a settlement that nothing could record is dropped from an item.
    const copy = items.map((item) => ({ ...item, posts: [...item.posts] }));
    const copies = this.random.isLikely(this.faults / 4) ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      if (this.#isLost(replica)) continue;
      this.#later(this.#delay(), () => {
        const replies = this.#execute(replica, copy);
        if (!replies || this.#isLost(replica)) return;
        this.#later(this.#delay(), () => {
          if (replica.awaited !== exchange || replica.state === "dead") return;
          replica.awaited = 0;
          this.tell(replica, { type: "receive", replies });
        });
      });
    }
    this.#later(TIMEOUT_MS, () => {
      if (replica.awaited !== exchange) return;
      replica.awaited = 0;
      this.tell(replica, { type: "fail" });
    });
  }

  /** One transaction. @returns undefined for a copy that is older than what the database has seen */
  #execute(replica: Replica, items: readonly Item[]): Reply[] | undefined {
    const live = this.live.length;
    const locked = items.filter(() => this.random.isLikely(this.faults / 4));
    const open = items.filter((item) => !locked.includes(item));
    const results = open.map((item) => this.database.exchange(replica.id, item, this.clock, live));
    const executed = results.map((result) => result?.reply);
    this.calls?.push({ do: "exchange", replica: replica.id, items: open, at: this.clock, live, replies: executed });
    const replies = items.map((item) => (locked.includes(item) ? LOCKED : executed[open.indexOf(item)]));
    for (const [i, item] of open.entries()) {
      const result = results[i];
      if (!result) continue;
      this.checks.exchanged(replica, item, result.reply, result.isRepeat);
      for (const id of result.callBack) this.#callBack(id, item.workspace);
    }
    return replies.some((reply) => reply === undefined) ? undefined : (replies as Reply[]);
  }

  #callBack(id: string, workspace: string): void {
    const other = this.replicas.find((replica) => replica.id === id);
    if (other && !this.#isLost(other))
      this.#later(this.#delay(), () => this.tell(other, { type: "callBack", workspace }));
  }

  #isLost(replica: Replica): boolean {
    return this.now < replica.cutOffUntil || this.random.isLikely(this.faults / 2);
  }

  #delay(): number {
    return this.random.isLikely(this.faults) ? this.random.integer(5, 6_000) : this.random.integer(0, 3);
  }

  #later(ms: number, run: () => void): void {
    const at = this.now + Math.max(0, ms);
    let place = this.#messages.length;
    while (place > 0 && (this.#messages[place - 1]?.at ?? 0) > at) place--;
    this.#messages.splice(place, 0, { at, run });
  }

  #nextTime(): number {
    let next = this.#messages[0]?.at ?? Number.POSITIVE_INFINITY;
    for (const replica of this.replicas) {
      if (replica.state === "up") {
        next = Math.min(next, replica.nextTick, replica.nextBeat, replica.escrow.wakeAt ?? next);
      } else if (replica.state === "asleep") next = Math.min(next, replica.wakesAt);
      next = Math.min(next, Math.max(this.now, replica.beatAt + DEAD_MS));
    }
    return Math.max(next, this.now);
  }

  #runDue(): void {
    for (const replica of this.replicas) {
      if (replica.state === "asleep" && this.now >= replica.wakesAt) replica.state = "up";
    }
    for (let message = this.#messages[0]; message && message.at <= this.now; message = this.#messages[0]) {
      this.#messages.shift();
      message.run();
    }
    for (const replica of this.replicas) {
      if (replica.state === "up") this.#tick(replica);
      if (this.now >= replica.beatAt + DEAD_MS) this.#end(replica);
    }
  }

  #tick(replica: Replica): void {
    if (this.now >= replica.nextBeat) {
      replica.nextBeat = this.now + BEAT_MS;
      const sentAt = this.now;
      if (!this.#isLost(replica)) {
        replica.beatAt = this.now;
        this.#later(1, () => this.tell(replica, { type: "beat", sentAt, isDeaf: false }));
      }
    }
    const { wakeAt } = replica.escrow;
    if (this.now < replica.nextTick && (wakeAt === undefined || this.now < wakeAt)) return;
    replica.nextTick = this.now + TICK_MS;
    this.tell(replica, { type: "tick" });
  }

  /** Another replica ends its grants. It repeats that, because a late statement can open another grant. */
  #end(replica: Replica): void {
    this.checks.ending(replica);
    this.database.end(replica.id);
    this.calls?.push({ do: "end", replica: replica.id, at: this.clock });
    replica.beatAt = this.now;
  }
}
