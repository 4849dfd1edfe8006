import assert from "node:assert/strict";
import { isLocked } from "../../src/store/pool.ts";
import { copyOf } from "./account.ts";
import { Database } from "./database.ts";
import type { Differential } from "./differential.ts";
import type { Gates, Held } from "./gates.ts";
import { type Replies, type Statement, Statements } from "./race-statements.ts";
import { Random } from "./random.ts";

/** 2026-11-30T12:00Z, in milliseconds. */
const START = Date.UTC(2026, 10, 30, 12);

/** Where statements are held. An append writes only to the log. */
const TABLES = ["settlement_log", "settlement_log", "accounts", "grants", "generations", "ledger", "periods"] as const;

/** Longest jumps of the clock, in milliseconds: within minutes, days and months. */
const JUMPS = [70_000, 70_000, 2 * 86_400_000, 20 * 86_400_000] as const;

/** What one order of two statements leads to in the model. */
interface Outcome {
  database: Database;
  replies: readonly [Replies, Replies];
}

/**
 * Runs pairs of statements at the same time in two sessions, held at lock points, and requires the answers and the
 * books that the model reaches when it runs them one after the other, in one of the two orders.
 */
export class Races {
  readonly #both: Differential;
  readonly #gates: Gates;
  readonly #random: Random;
  readonly #statements: Statements;
  #database = new Database();
  #now = START;

  /** @param both of a prefix that nothing else uses */
  constructor(seed: number, both: Differential, gates: Gates) {
    this.#both = both;
    this.#gates = gates;
    this.#random = new Random(seed);
    this.#statements = new Statements(both, this.#random);
  }

  /** Runs pairs. @throws Error at the first whose outcome no order explains, and at a deadlock */
  async run(pairs: number): Promise<void> {
    for (const [workspace, account] of await this.#statements.open(START))
      this.#database.accounts.set(workspace, account);
    for (let i = 1; i <= pairs; i++) await this.#race(i);
    await this.#both.end(this.#database.accounts);
  }

  async #race(n: number): Promise<void> {
    const random = this.#random;
    this.#now += random.integer(0, 300) + (random.isLikely(0.08) ? random.integer(0, random.pick(JUMPS)) : 0);
    const first = this.#statements.next(this.#now);
    const second = this.#statements.beside(first, this.#now);
    const held = this.#held(first);
    const where = `pair ${n} of ${this.#both.prefix}: ${first.what}; ${second.what}; held at ${JSON.stringify(held)}`;
    const replies = await this.#together(first, second, held, where);
    const outcome = await this.#explain(replies, [this.#inOrder(first, second), this.#inOrder(second, first)], where);
    this.#database = outcome.database;
    for (const [i, { sent }] of (first === second ? [first] : [first, second]).entries()) {
      for (const [k, { workspace }] of (sent?.items ?? []).entries())
        sent?.replica.answer(workspace, outcome.replies[i]?.[k], this.#now);
    }
  }

  async #together(
    first: Statement,
    second: Statement,
    held: readonly Held[],
    where: string,
  ): Promise<[Replies, Replies]> {
    const results = await this.#gates.run([first, second], held);
    const replies: Replies[] = [];
    for (const [i, result] of results.entries()) {
      if (result.status === "fulfilled") replies[i] = result.value;
      // The machine was slow. Replicas send such a statement again.
      else if (isLocked(result.reason)) replies[i] = await (i === 0 ? first : second).run(this.#both.pool);
      else throw new Error(`${where}: ${result.reason}`, { cause: result.reason });
    }
    return replies as [Replies, Replies];
  }

  /** Up to two lock points: rows of an account or a grant, or the first write to a table. */
  #held({ workspaces, sent }: Statement): Held[] {
    const random = this.#random;
    const { prefix } = this.#both;
    const held = Array.from({ length: random.integer(0, 2) }, () => {
      const table = random.pick(TABLES);
      const workspace = prefix + random.pick(workspaces);
      if (table === "accounts" && random.isLikely(0.7)) return { table, row: { workspace } };
      if (table !== "grants" || random.isLikely(0.4)) return { table };
      const { id } = sent && random.isLikely(0.7) ? sent.replica : random.pick(this.#statements.replicas);
      return { table, row: { workspace, replica: prefix + id } };
    });
    // A gate is closed once.
    return [...new Map(held.map((at) => [JSON.stringify(at), at])).values()];
  }

  #inOrder(...[first, second]: [Statement, Statement]): Outcome {
    const database = new Database();
    database.grants = this.#database.grants;
    for (const [workspace, account] of this.#database.accounts) database.accounts.set(workspace, copyOf(account));
    return { database, replies: [first.apply(database), second.apply(database)] };
  }

  /** @returns the outcome that was reached, with the replies in the order in which the statements were started */
  async #explain(
    replies: readonly [Replies, Replies],
    orders: readonly [Outcome, Outcome],
    where: string,
  ): Promise<Outcome> {
    const [inOrder, { database, replies: swapped }] = orders;
    const reasons: string[] = [];
    for (const outcome of [inOrder, { database, replies: [swapped[1], swapped[0]] } satisfies Outcome]) {
      try {
        for (const i of [0, 1] as const) this.#both.compareReplies(replies[i], outcome.replies[i], "");
        for (const [workspace, account] of outcome.database.accounts) await this.#both.compare(workspace, account);
        for (const i of [0, 1] as const) this.#both.note(replies[i], outcome.replies[i]);
        return outcome;
      } catch (error) {
        if (!(error instanceof assert.AssertionError)) throw error;
        reasons.push(error.message);
      }
    }
    throw new Error(`No order explains ${where}:\n${reasons.join("\n\n")}`);
  }
}
