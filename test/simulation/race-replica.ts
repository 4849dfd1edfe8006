import type { Item, Mode, Post, Reply } from "../../src/admission/escrow/exchange.ts";
import { Grant } from "../../src/admission/escrow/grant.ts";
import type { Random } from "./random.ts";

/** Settlements that a dead replica has left in its journal, or that another process reads there. */
export type Late = { workspace: string; post: Post }[];

const DAY = 86_400_000;

let requests = 0;

/** When each request was admitted, by which a settlement is found again. */
const createdAt = new Map<string, Date>();

/** A replica that makes up requests, and sends items as the rules of `Grant` make them. */
export class RaceReplica {
  readonly id: string;
  readonly #random: Random;
  readonly #late: Late;
  readonly #grants = new Map<string, Grant>();
  #seq = 0;

  constructor(id: string, random: Random, late: Late) {
    this.id = id;
    this.#random = random;
    this.#late = late;
  }

  /** Admits and ends requests. @returns the items to send next, all of one mode; undefined: none can be sent */
  next(workspaces: readonly string[], now: number): Item[] | undefined {
    const grants = workspaces.map((workspace) => this.#grant(workspace)).filter(({ flight }) => !flight);
    for (const grant of grants) this.#work(grant, now);
    const modes = grants.map((grant) => this.#modeOf(grant, now));
    const sending = grants.filter((_, i) => modes[i] === modes[0]);
    if (sending.length === 0) return undefined;
    return sending.map((grant) => grant.send(modes[0] as Mode, ++this.#seq, now, false));
  }

  /** Takes the answer to an item. */
  answer(workspace: string, reply: Reply | undefined, now: number): void {
    const grant = this.#grant(workspace);
    if (reply?.state === "done") grant.receive(reply, now);
    else if (reply?.state === "appended") grant.appended();
    else {
      grant.takeBack();
      if (reply?.state !== "ended") return;
      this.#grants.delete(workspace);
      for (const post of grant.posts) this.#leave(workspace, post);
      for (const { requestId, hold } of grant.running.values())
        this.#leave(workspace, {
          requestId,
          charge: this.#random.integer(0, hold),
          output: 1,
          row: { created_at: createdAt.get(requestId) },
        });
    }
  }

  /** A settlement of this replica that another process can find in its journal, although it lives. */
  journaled(workspace: string): Post | undefined {
    const { flight, running } = this.#grant(workspace);
    const [{ requestId, hold } = {}] = running.values();
    if (requestId === undefined || hold === undefined) return flight?.item.posts[0];
    return {
      requestId,
      charge: this.#random.integer(0, hold),
      output: 1,
      row: { created_at: createdAt.get(requestId) },
    };
  }

  /** Sends a settlement of another replica with the next item of the workspace. */
  repost(workspace: string, post: Post): void {
    this.#grant(workspace).posts.push(post);
  }

  #leave(workspace: string, post: Post): void {
    if (this.#random.isLikely(0.5)) this.#late.push({ workspace, post: { admittedBy: this.id, ...post } });
  }

  #grant(workspace: string): Grant {
    const grant = this.#grants.get(workspace) ?? new Grant(workspace, undefined, { count: 0 });
    this.#grants.set(workspace, grant);
    return grant;
  }

  /** Appends more often than a replica does, which takes headroom in advance. */
  #modeOf({ number, posts, asks, mustReturn, free }: Grant, now: number): Mode {
    const canAppend =
      number !== 0 &&
      posts.length > 0 &&
      asks.length === 0 &&
      !mustReturn &&
      !free.isOver(now) &&
      posts.every(({ key, admittedBy }) => key === undefined && admittedBy === undefined);
    return canAppend && this.#random.isLikely(0.9) ? "append" : "exchange";
  }

  #work(grant: Grant, now: number): void {
    const random = this.#random;
    // Half of the time requests only end.
    const isCalm = random.isLikely(0.5);
    for (let i = isCalm ? 0 : random.integer(0, 4); i > 0; i--) this.#request(grant, now);
    const running = [...grant.running.values()];
    for (const of of running.slice(0, random.integer(isCalm ? 1 : 0, 3))) {
      const charge = random.integer(0, of.hold);
      const key = of.key === undefined ? {} : { key: of.key, body: of.body };
      const response = of.key !== undefined && charge > 0 ? { response: "cg==" } : {};
      const row = { created_at: createdAt.get(of.requestId), ...key, ...response };
      const post = { requestId: of.requestId, charge, output: random.integer(0, 20), row };
      grant.settle(post, now);
      // Another process has found it in the journal, too.
      if (random.isLikely(0.1)) this.#late.push({ workspace: grant.workspace, post: { admittedBy: this.id, ...post } });
    }
    if (isCalm) return;
    if (random.isLikely(0.1)) grant.callBack(now);
    const late = this.#late.findIndex(({ workspace }) => workspace === grant.workspace);
    if (late >= 0 && random.isLikely(0.5)) for (const { post } of this.#late.splice(late, 1)) grant.posts.push(post);
  }

  #request(grant: Grant, now: number): void {
    const random = this.#random;
    const requestId = `q${++requests}`;
    createdAt.set(requestId, new Date(now));
    // Keys of one day, because the model does not know that they expire.
    const key = (100 * Math.floor(now / DAY) + random.integer(0, 30)).toString(16).padStart(8, "0");
    const keyed = random.isLikely(0.1) ? { key, body: "0a" } : {};
    const ask = { requestId, hold: random.integer(1, 200), input: random.integer(0, 20), ...keyed };
    if (ask.key !== undefined || !grant.admit(ask, now)) grant.asks.push({ ...ask, retryAt: now });
  }
}
