import type { Item, Reply } from "../../src/admission/escrow/exchange.ts";
import type { Pool } from "../../src/store/pool.ts";
import { type Account, type Counts, type Limits, newAccount } from "./account.ts";
import { Database } from "./database.ts";
import type { Differential } from "./differential.ts";
import { RaceReplica } from "./race-replica.ts";
import type { Random } from "./random.ts";
import { UNITS } from "./windows.ts";

export type Replies = (Reply | undefined)[];

/** A statement of one session, in SQL and in the model. */
export interface Statement {
  readonly what: string;
  readonly workspaces: readonly string[];
  /** Whose answers are awaited, and the items. */
  readonly sent?: { replica: RaceReplica; items: readonly Item[] };
  run(pool: Pool): Promise<Replies>;
  apply(database: Database): Replies;
}

const WORKSPACES = ["ws_1", "ws_2"] as const;

/** Makes up statements of three replicas and of an operator on two workspaces. */
export class Statements {
  readonly replicas: readonly RaceReplica[];
  readonly #both: Differential;
  readonly #random: Random;
  /** Which limits a workspace has. Their values change. */
  readonly #limited = new Map<string, readonly string[]>();
  #booked = 0;

  constructor(both: Differential, random: Random) {
    this.#both = both;
    this.#random = random;
    const late: ConstructorParameters<typeof RaceReplica>[2] = [];
    this.replicas = ["r1", "r2", "r3"].map((id) => new RaceReplica(id, random, late));
  }

  /** Opens the accounts. @returns them as they are in the model */
  async open(at: number): Promise<Map<string, Account>> {
    const random = this.#random;
    const accounts = new Map<string, Account>();
    for (const workspace of WORKSPACES) {
      const credit = { granted: random.integer(1_000, 4_000), purchased: random.integer(0, 4_000) };
      const limits = this.#limits(workspace);
      accounts.set(workspace, newAccount(at, { ...credit, limits }));
      await this.#both.execute({ do: "open", workspace, ...credit, limits, at }, "");
    }
    return accounts;
  }

  /** A statement that often meets another one: a copy of it, as after a late answer, or about the same grant. */
  beside(other: Statement, at: number): Statement {
    const random = this.#random;
    const [workspace = ""] = other.workspaces;
    const chance = random.next();
    if (chance < 0.1 && other.sent) return other;
    const ends = other.sent?.items[0]?.mode === "append" ? 0.5 : 0.25;
    if (chance < ends && other.sent) return this.#end(workspace, other.sent.replica.id, at);
    if (chance < ends + 0.1) return this.#post(other.workspaces, at);
    const late = chance < ends + 0.25 ? other.sent?.replica.journaled(workspace) : undefined;
    if (!late || !other.sent) return this.next(at);
    const { id } = other.sent.replica;
    const replica = this.#random.pick(this.replicas.filter((each) => each.id !== id));
    replica.repost(workspace, { ...late, admittedBy: id });
    return this.#items(replica, [workspace], at) ?? this.next(at);
  }

  next(at: number): Statement {
    const random = this.#random;
    const chance = random.next();
    const workspace = random.pick(WORKSPACES);
    // In any order.
    const workspaces = random.isLikely(0.3) ? [workspace, ...WORKSPACES.filter((id) => id !== workspace)] : [workspace];
    if (chance < 0.05) return this.#end(workspace, random.pick(this.replicas).id, at);
    if (chance < 0.15) return this.#book(workspace, random.integer(1, 500), at);
    if (chance < 0.18) return this.#limit(workspace, this.#limits(workspace), at);
    const items = chance < 0.28 ? undefined : this.#items(random.pick(this.replicas), workspaces, at);
    return items ?? this.#post(workspaces, at);
  }

  #items(replica: RaceReplica, workspaces: readonly string[], at: number): Statement | undefined {
    const items = replica.next(workspaces, at);
    if (!items) return undefined;
    const call = { do: "exchange" as const, replica: replica.id, items, at, live: 3, replies: [] };
    const isAppend = items[0]?.mode === "append";
    return {
      what: `${isAppend ? "append" : "exchange"} of ${replica.id} in ${items.map((item) => item.workspace)}`,
      workspaces: items.map((item) => item.workspace),
      sent: { replica, items },
      run: (pool) => this.#both.execute(call, "", pool),
      apply: (database) =>
        items.map(
          (item) => (isAppend ? database.append(replica.id, item) : database.exchange(replica.id, item, at, 3))?.reply,
        ),
    };
  }

  #end(workspace: string, replica: string, at: number): Statement {
    const { prefix } = this.#both;
    return {
      what: `end of ${replica} in ${workspace}`,
      workspaces: [workspace],
      run: async (pool) => {
        await pool.query("select end_grants($1, $2, $3)", [prefix + workspace, prefix + replica, new Date(at)]);
        return [];
      },
      apply(database) {
        const one = new Database();
        one.accounts.set(workspace, accountOf(database, workspace));
        one.post(workspace, at);
        one.end(replica, at);
        return [];
      },
    };
  }

  #post(workspaces: readonly string[], at: number): Statement {
    const ids = workspaces.map((workspace) => this.#both.prefix + workspace);
    return {
      what: `post of ${workspaces}`,
      workspaces,
      run: async (pool) => {
        await pool.query("select post_settlements($1, $2)", [ids.toReversed(), new Date(at)]);
        return [];
      },
      apply(database) {
        for (const workspace of workspaces) database.post(workspace, at);
        return [];
      },
    };
  }

  #book(workspace: string, amount: number, at: number): Statement {
    const call = { do: "grant" as const, workspace, amount, at };
    const reference = `booking ${++this.#booked}`;
    return {
      what: `booking in ${workspace}`,
      workspaces: [workspace],
      run: (pool) => this.#both.execute(call, reference, pool),
      apply(database) {
        accountOf(database, workspace).granted += amount;
        return [];
      },
    };
  }

  #limit(workspace: string, limits: Limits, at: number): Statement {
    return {
      what: `limits of ${workspace}`,
      workspaces: [workspace],
      run: (pool) => this.#both.execute({ do: "limits", workspace, limits, at }, "", pool),
      apply(database) {
        accountOf(database, workspace).limits = limits;
        return [];
      },
    };
  }

  /** Limits that often refuse. */
  #limits(workspace: string): Limits {
    const random = this.#random;
    const within = (least: number, most: number): Partial<Counts> => {
      const units = UNITS.filter((unit) => unit !== "week" && random.isLikely(0.5));
      return Object.fromEntries(
        (units.length > 0 ? units : ["day"]).map((unit) => [unit, random.integer(least, most)]),
      );
    };
    const all: Required<Limits> = {
      running: random.integer(3, 12),
      requests: within(15, 80),
      input: within(100, 900),
      output: within(40, 600),
      spend: { [random.pick(["day", "week", "month"])]: random.integer(500, 3_000) },
    };
    const names = this.#limited.get(workspace) ?? Object.keys(all).filter(() => random.isLikely(0.5));
    this.#limited.set(workspace, names);
    return Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)));
  }
}

function accountOf({ accounts }: Database, workspace: string): Account {
  const account = accounts.get(workspace);
  if (!account) throw new Error(`there is no account ${workspace}`);
  return account;
}
