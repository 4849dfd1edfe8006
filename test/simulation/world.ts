import type { Command, Event } from "../../src/admission/escrow/events.ts";
import type { Ask, Post } from "../../src/admission/escrow/exchange.ts";
import type { Limits } from "./account.ts";
import { type Call, isOpen, type Mutation, newReplica, type Replica, type Request } from "./actors.ts";
import type { Cap } from "./caps.ts";
import { Checks } from "./checks.ts";
import type { Database } from "./database.ts";
import { Network } from "./network.ts";
import { Random } from "./random.ts";
import { Server } from "./server.ts";
import { Subjects } from "./subjects.ts";
import { Timeline } from "./timeline.ts";

/** A heartbeat is due this often, and a replica without one for this long is dead; see src/admission/epochs.ts. */
const BEAT_MS = 2_000;
const DEAD_MS = 10_000;
const TICK_MS = 500;
/** Replicas, a database, a network between them, and a clock. Everything follows a seed. */
export class World {
  readonly random: Random;
  /** Of keys and crashes, so that a schedule without them does not change. */
  readonly more: Random;
  /** Of disturbances; see `disturb`. */
  readonly odd: Random;
  readonly subjects: Subjects;
  readonly server: Server;
  readonly database: Database;
  readonly network: Network;
  readonly replicas: Replica[] = [];
  readonly requests = new Map<string, Request>();
  readonly checks: Checks;
  now = 0;
  /** The clock of the database, in ms since 1970, when `now` is 0. */
  epoch: number;
  /** Probability that a message is lost, that it is late, and that it is repeated. */
  faults = 0;
  /** Factor of the highest values of limits and credit. Where it is more than 1, replicas reserve in advance. */
  room = 1;
  /** Whether there are no faults from the start to the end. */
  isCalm = false;
  /** Whether the server of the database can crash. */
  crashes = false;
  /** Whether requests have idempotency keys. */
  hasKeys = false;
  readonly #mutation: Mutation;
  readonly #timeline = new Timeline();
  #count = 0;

  constructor(seed: number, mutation: Mutation = {}, calls?: Call[]) {
    this.random = new Random(seed);
    this.more = new Random(~seed);
    this.odd = new Random(Math.imul(seed, 0x9e3779b1));
    this.subjects = new Subjects(this, new Random(Math.imul(~seed, 0x85ebca6b)));
    this.epoch = Date.UTC(2026, 10, 30, 23, 58, this.random.integer(0, 59));
    this.#mutation = mutation;
    this.server = new Server(mutation, calls);
    this.database = this.server.database;
    this.network = new Network(this);
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
    replica.awaited = { append: 0, exchange: 0 };
    for (const request of this.requests.values()) {
      if (request.replica === replica && isOpen(request)) request.state = "lost";
    }
  }

  request(replica: Replica, workspace: string, size: Omit<Ask, "requestId">): void {
    const requestId = `q${this.#count++}`;
    const { row, subjects } = this.subjects.of(workspace, size.input);
    const ask = { requestId, ...size, ...(subjects ? { subjects } : {}) };
    const isNew = { charge: 0, isOrphan: false, isLate: false, isUnknown: false, hasResponse: false, failedAt: 0, row };
    this.requests.set(requestId, { ...ask, ...isNew, state: "asked", since: this.now, workspace, replica });
    this.checks.isLocal = true;
    this.tell(replica, { type: "request", workspace, ...ask });
    this.checks.isLocal = false;
  }

  /** An operator changes the limits of a workspace. */
  limit(workspace: string, limits: Limits): void {
    if (this.network.isDown) return;
    const before = this.database.accounts.get(workspace)?.limits ?? {};
    this.server.limit(workspace, limits, this.clock);
    this.checks.limited(workspace, before);
    for (const id of this.database.accounts.get(workspace)?.grants.keys() ?? []) this.network.callBack(id, workspace);
  }

  /** An operator sets a cap. */
  setCap(workspace: string, cap: Cap): void {
    if (this.network.isDown) return;
    this.server.setCap(workspace, cap, this.clock);
    this.#capChanged(workspace, cap, false);
  }

  /** An operator removes a cap. */
  clearCap(workspace: string, cap: Cap): void {
    if (this.network.isDown) return;
    this.server.clearCap(workspace, cap, this.clock);
    this.#capChanged(workspace, cap, true);
  }

  #capChanged(workspace: string, cap: Cap, isRemoved: boolean): void {
    this.checks.caps.changed(workspace, cap, isRemoved);
    this.subjects.changed(workspace);
    for (const { id } of this.live) this.network.callBack(id, workspace, cap.subject);
  }

  /** An operator grants credit. */
  grant(workspace: string, amount: number): void {
    if (!this.network.isDown) this.server.grant(workspace, amount, this.clock);
  }

  /** A replica posts what waits in the log of a workspace. */
  post(workspace: string): void {
    if (this.network.isDown) return;
    this.server.post(workspace, this.clock);
    this.checks.posted(workspace);
  }

  settle(request: Request, charge: number, output: number): void {
    const { requestId, replica, key, body } = request;
    request.state = "settled";
    request.since = this.now;
    request.charge = charge;
    // What is left by its reader is charged, and has no response.
    request.hasResponse = key !== undefined && charge > 0 && this.more.isLikely(0.9);
    const response = request.hasResponse ? btoa(requestId) : undefined;
    const row = { ...request.row, ...(key === undefined ? {} : { key, body, ...(response && { response }) }) };
    if (this.#mutation.opensGate) this.#delivered(request);
    this.tell(replica, { type: "settle", posts: [{ requestId, charge, output, row }] });
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
      if (replica.state === "asleep") this.later(replica.wakesAt - this.now, () => this.tell(replica, event));
      return;
    }
    for (const command of replica.escrow.handle(event, this.now)) this.#obey(replica, command);
  }

  #obey(replica: Replica, command: Command): void {
    switch (command.type) {
      case "send":
        this.network.send(replica, command.mode, command.items);
        return;
      case "journal":
        this.#journal(replica, command.workspace, command.posts);
        return;
      case "unjournal":
        if (!replica.journal.delete(command.requestId)) replica.unjournaled.add(command.requestId);
        return;
      case "replay":
        this.#replayed(command.requestId, atob(command.response));
        return;
    }
    const request = this.requests.get(command.requestId);
    if (!request) throw new Error(`${command.type} for the unknown request ${command.requestId}`);
    if (command.type === "confirm") this.#delivered(request);
    else if (command.type === "deny") this.#denied(request);
    else if (command.type === "refuse") this.#refused(request);
    else if (command.type === "admit") this.#admitted(replica, request);
    else throw new Error(`there is no command ${(command as Command).type}`);
  }

  #replayed(requestId: string, of: string): void {
    const request = this.requests.get(requestId);
    if (!request) return;
    request.state = "replayed";
    this.checks.replayed(request, of);
  }

  #refused(request: Request): void {
    request.state = "refused";
    request.failedAt = this.now;
  }

  #denied(request: Request): void {
    request.state = "denied";
    request.failedAt = this.now;
    this.checks.denied(request);
  }

  #admitted(replica: Replica, request: Request): void {
    request.state = "running";
    const grant = replica.escrow.grants.get(request.workspace);
    if (grant && this.#mutation.forgetsHolds) grant.free.credit += request.hold;
    if (grant && this.checks.isLocal && this.#mutation.forgetsShares)
      for (const subject of request.subjects ?? []) {
        const { free } = grant.shares.get(subject) ?? {};
        if (free) Object.assign(free, { credit: free.credit + request.hold, requests: free.requests + 1 });
      }
    this.checks.admitted(request);
  }

  #delivered(request: Request): void {
    request.state = "delivered";
    this.checks.delivered(request);
  }

  #journal(replica: Replica, workspace: string, posts: readonly Post[]): void {
    const isWritten = !this.random.isLikely(this.faults / 4);
    const requestIds = posts.map(({ requestId }) => requestId);
    this.later(this.random.integer(0, 2), () => {
      if (replica.state === "dead") return;
      for (const post of posts) {
        const { requestId, admittedBy = replica.id } = post;
        const isPosted = replica.unjournaled.delete(requestId);
        if (!isWritten) (this.requests.get(requestId) as Request).isUnknown = true;
        else if (!isPosted) replica.journal.set(requestId, { workspace, post: { ...post, admittedBy } });
      }
      this.tell(replica, { type: "journaled", requestIds, isWritten });
    });
  }

  /** Runs something after `ms`. */
  later(ms: number, run: () => void): void {
    this.#timeline.add(this.now + Math.max(0, ms), run);
  }

  #nextTime(): number {
    let { next } = this.#timeline;
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
    this.#timeline.runUntil(this.now);
    for (const replica of this.replicas) {
      if (replica.state === "up") this.#tick(replica);
      if (this.now >= replica.beatAt + DEAD_MS) this.#end(replica);
    }
  }

  #tick(replica: Replica): void {
    if (this.now >= replica.nextBeat) {
      replica.nextBeat = this.now + BEAT_MS;
      const sentAt = this.now;
      if (!this.network.isLost(replica)) {
        replica.beatAt = this.now;
        this.server.beat();
        this.later(1, () => {
          const isDeaf = this.live.length > 1 && this.now >= replica.deaf.known && this.now < replica.deaf.until;
          replica.isToldDeaf = isDeaf;
          this.tell(replica, { type: "beat", sentAt, isDeaf });
        });
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
    this.server.end(replica.id, this.clock);
    replica.beatAt = this.now;
  }
}
