import type { Item, Mode, Reply } from "../../src/admission/escrow/exchange.ts";
import type { Account } from "./account.ts";
import type { Replica } from "./actors.ts";
import type { World } from "./world.ts";

const TIMEOUT_MS = 3_000;

const MODES = ["append", "exchange"] as const;

const LOCKED: Reply = { state: "locked" };

/** What a transaction has answered, and how it is flushed to disk. */
interface Transacted {
  replies: Map<Item, Reply | undefined>;
  flush?: (() => void) | undefined;
}

const NOTHING_DONE: Transacted = { replies: new Map() };

/** Connects replicas with the server of the database: loses, delays and repeats messages, and breaks in a crash. */
export class Network {
  readonly #world: World;
  /** Until then the server is unavailable. */
  #downUntil = 0;
  /** Number of statements that were sent. */
  #sent = 0;

  constructor(world: World) {
    this.#world = world;
  }

  get isDown(): boolean {
    return this.#world.now < this.#downUntil;
  }

  /** The server of the database crashes and restarts, or a standby takes over. */
  crash(): void {
    const { server, replicas, checks, now, more } = this.#world;
    checks.crashed(server.crash(more));
    this.#downUntil = now + more.integer(5, 12_000);
    for (const replica of replicas) {
      // Who is dead is observed from the start again.
      replica.beatAt = Math.max(replica.beatAt, this.#downUntil);
      for (const mode of MODES) if (replica.awaited[mode] > 0) this.#failAt(more.integer(0, 20), replica, mode);
    }
  }

  send(replica: Replica, mode: Mode, items: readonly Item[]): void {
    const { server, random, more, faults } = this.#world;
    const exchange = ++this.#sent;
    replica.awaited[mode] = exchange;
    if (this.isDown) {
      this.#failAt(more.integer(0, 3), replica, mode);
      return;
    }
    // Copies, because a settlement that nothing could record is dropped from an item.
    const copy = items.map((item) => ({ ...item, posts: [...item.posts] }));
    const copies = random.isLikely(faults / 4) ? 2 : 1;
    const { crashes } = server;
    for (let i = 0; i < copies; i++) {
      if (this.isLost(replica)) continue;
      const execute = () => {
        // A crash breaks the connection.
        if (server.crashes !== crashes) return;
        if (server.isLocked(items)) this.#world.later(5, execute);
        else this.#execute(replica, mode, copy, exchange);
      };
      this.#world.later(this.#delay(), execute);
    }
    this.#failAt(TIMEOUT_MS, replica, mode);
  }

  callBack(id: string, workspace: string, subject?: string): void {
    const world = this.#world;
    const other = world.replicas.find((replica) => replica.id === id);
    if (!other || this.isLost(other)) return;
    if (world.now < other.deaf.from || world.now >= other.deaf.until)
      world.later(this.#delay(), () =>
        world.tell(other, { type: "callBack", workspace, ...(subject === undefined ? {} : { subject }) }),
      );
  }

  isLost(replica: Replica): boolean {
    const { now, random, faults } = this.#world;
    return now < replica.cutOffUntil || this.isDown || random.isLikely(faults / 2);
  }

  /** One transaction. It is not answered for a copy that is older than what the database has seen. */
  #execute(replica: Replica, mode: Mode, items: readonly Item[], exchange: number): void {
    const world = this.#world;
    const locked = items.filter(() => world.random.isLikely(world.faults / 4));
    const open = items.filter((item) => !locked.includes(item));
    const { replies: answers, flush } = open.length > 0 ? this.#transact(replica, open) : NOTHING_DONE;
    const replies = items.map((item) => (locked.includes(item) ? LOCKED : answers.get(item)));
    const { crashes } = world.server;
    const answer = () => {
      if (world.server.crashes !== crashes) return;
      flush?.();
      if (replies.some((reply) => reply === undefined) || this.isLost(replica)) return;
      world.later(this.#delay(), () => this.#answer(replica, mode, exchange, replies as Reply[]));
    };
    const isSlow = flush && world.crashes && world.more.isLikely(world.faults);
    if (isSlow) world.later(world.more.integer(1, 300), answer);
    else answer();
  }

  #transact(replica: Replica, items: readonly Item[]): Transacted {
    const { server, checks, clock, live } = this.#world;
    const { results, before, flush } = server.exchange(replica.id, items, clock, live.length);
    const replies = new Map(items.map((item, i) => [item, results[i]?.reply]));
    for (const [i, item] of items.entries()) {
      const result = results[i];
      if (!result) continue;
      checks.exchanged(replica, item, result, before.get(item.workspace) as Account);
      for (const id of result.callBack) this.callBack(id, item.workspace);
      for (const subject of result.subjects ?? [])
        for (const { id } of this.#world.live) this.callBack(id, item.workspace, subject);
    }
    return { replies, flush };
  }

  #answer(replica: Replica, mode: Mode, exchange: number, replies: Reply[]): void {
    if (replica.awaited[mode] !== exchange || replica.state === "dead") return;
    replica.awaited[mode] = 0;
    this.#world.tell(replica, { type: "receive", mode, replies });
  }

  /** The answer to the statement that a replica awaits does not come within a time. */
  #failAt(ms: number, replica: Replica, mode: Mode): void {
    const awaited = replica.awaited[mode];
    this.#world.later(ms, () => {
      if (replica.awaited[mode] !== awaited) return;
      replica.awaited[mode] = 0;
      this.#world.tell(replica, { type: "fail", mode });
    });
  }

  #delay(): number {
    const { random, faults } = this.#world;
    return random.isLikely(faults) ? random.integer(5, 6_000) : random.integer(0, 3);
  }
}
