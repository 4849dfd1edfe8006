import type { Item, Reply } from "../../src/admission/escrow/exchange.ts";
import { type Account, copyOf, type Limits } from "./account.ts";
import type { Call, Mutation } from "./actors.ts";
import type { Cap } from "./caps.ts";
import { Database, type Result } from "./database.ts";
import type { Random } from "./random.ts";

/** An item that was executed. */
export interface Executed {
  replica: string;
  item: Item;
  reply: Reply;
}

/** A transaction that a crash can undo. */
interface Transaction {
  /** The accounts that it has changed, as they were before. */
  before: Map<string, Account>;
  executed: Executed[];
  /** Number of grants and of calls before it. */
  grants: number;
  calls: number;
}

/**
 * The server of the database: executes transactions, and loses the last ones in a crash. So does a failover to a
 * synchronous standby: what it has is a prefix of what the primary has executed. A transaction that posts settlements
 * is answered when it and all earlier ones are flushed, another one at once.
 */
export class Server {
  readonly database: Database;
  readonly calls: Call[] | undefined;
  /** Number of crashes. A statement and an answer do not survive one. */
  crashes = 0;
  readonly #mutation: Mutation;
  /** Transactions that are not flushed, in their order. */
  #log: Transaction[] = [];
  /** Workspaces of transactions that wait for the flush. */
  readonly #locked = new Set<string>();

  constructor(mutation: Mutation, calls: Call[] | undefined) {
    this.#mutation = mutation;
    this.database = new Database(mutation);
    this.calls = calls;
  }

  open(workspace: string, account: Account): void {
    this.database.accounts.set(workspace, account);
    const { granted, purchased, limits, clock: at } = account;
    this.calls?.push({ do: "open", workspace, granted, purchased, limits, at });
  }

  limit(workspace: string, limits: Limits, at: number): void {
    this.#log = [];
    const account = this.database.accounts.get(workspace);
    if (account) account.limits = limits;
    this.calls?.push({ do: "limits", workspace, limits, at });
  }

  setCap(workspace: string, cap: Cap, at: number): void {
    this.#log = [];
    const account = this.database.accounts.get(workspace);
    if (account) this.database.caps.set(account, cap, at);
    this.calls?.push({ do: "set cap", workspace, cap, at });
  }

  clearCap(workspace: string, cap: Cap, at: number): void {
    this.#log = [];
    const account = this.database.accounts.get(workspace);
    if (account) account.caps = account.caps.filter((other) => other !== cap);
    this.calls?.push({ do: "clear cap", workspace, cap, at });
  }

  grant(workspace: string, amount: number, at: number): void {
    this.#log = [];
    const account = this.database.accounts.get(workspace);
    if (account) account.granted += amount;
    this.calls?.push({ do: "grant", workspace, amount, at });
  }

  /** Ends the grants of a replica. */
  end(replica: string, at: number): void {
    this.#log = [];
    this.database.end(replica, at);
    this.calls?.push({ do: "end", replica, at });
  }

  /** Posts what waits in the log of a workspace, unless it is locked. A crash can undo it. */
  post(workspace: string, at: number): void {
    if (this.#locked.has(workspace)) return;
    const before = this.#copy([workspace]);
    this.#log.push({ before, executed: [], grants: this.database.grants, calls: this.calls?.length ?? 0 });
    const account = this.database.post(workspace, at);
    this.calls?.push({ do: "post", workspace, at, after: copyOf(account) });
  }

  /** Writes a heartbeat, which flushes what was executed before it. */
  beat(): void {
    this.#log = [];
  }

  /** Whether a transaction that waits for its flush has locked a workspace of the items. */
  isLocked(items: readonly Item[]): boolean {
    return items.some(({ workspace }) => this.#locked.has(workspace));
  }

  /**
   * Executes items in one transaction: all of them are appended, or none is.
   * @param live number of replicas that run
   * @returns a result for each item; the accounts as they were before; and `flush`, which the answer waits for:
   *   undefined if it does not
   */
  exchange(
    replica: string,
    items: readonly Item[],
    at: number,
    live: number,
  ): { results: (Result | undefined)[]; before: Map<string, Account>; flush: (() => void) | undefined } {
    const before = this.#copy(items.map(({ workspace }) => workspace));
    const { grants } = this.database;
    const results = items.map((item) =>
      item.mode === "append" ? this.database.append(replica, item) : this.database.exchange(replica, item, at, live),
    );
    const executed = results.flatMap((result, i) =>
      result && !result.isRepeat ? [{ replica, item: items[i] as Item, reply: result.reply }] : [],
    );
    this.#log.push({ before, executed, grants, calls: this.calls?.length ?? 0 });
    const replies = results.map((result) => result?.reply);
    this.calls?.push({ do: "exchange", replica, items, at, live, replies });
    const isDurable = items.some(({ posts }) => posts.length > 0) && !this.#mutation.neverFlushes;
    return { results, before, flush: isDurable ? this.#flushTo(this.#log.at(-1) as Transaction) : undefined };
  }

  /** Undoes some of the last transactions that are not flushed. @returns their items, the last one first */
  crash(random: Random): Executed[] {
    this.crashes += 1;
    const kept = random.integer(0, this.#log.length);
    const undone = this.#log.splice(kept).reverse();
    this.#log = [];
    this.#locked.clear();
    for (const { before, grants, calls } of undone) {
      for (const [workspace, account] of before) this.database.accounts.set(workspace, account);
      this.database.grants = grants;
      this.calls?.splice(calls);
    }
    return undone.flatMap(({ executed }) => executed);
  }

  #copy(workspaces: readonly string[]): Map<string, Account> {
    const { accounts } = this.database;
    return new Map(workspaces.map((workspace) => [workspace, copyOf(accounts.get(workspace) as Account)]));
  }

  #flushTo(last: Transaction): () => void {
    for (const workspace of last.before.keys()) this.#locked.add(workspace);
    return () => {
      this.#log.splice(0, this.#log.indexOf(last) + 1);
      for (const workspace of last.before.keys()) this.#locked.delete(workspace);
    };
  }
}
