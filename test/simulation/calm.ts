import type { Ask } from "../../src/admission/escrow/exchange.ts";
import { type Account, overruns } from "./account.ts";
import { isAwaiting } from "./actors.ts";
import { isIdle } from "./database.ts";
import { Usage } from "./usage.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/**
 * Longest times without faults, in milliseconds: until a request is answered, which may wait for headroom of others;
 * until its end leaves; until others have returned what a lowered limit does not allow; and for which they reserve
 * nothing in advance then.
 */
const LONGEST_MS = { asked: 150, settled: 40, over: 50, quiet: 900 };

/** Checks what holds in addition while there are no faults. Every method throws Violation. */
export class Calm {
  readonly #world: World;
  readonly #usage = new Usage();
  /** When the limits of a workspace were changed, which were exceeded then, and which grants there were. */
  readonly #lowered = new Map<string, { at: number; names: ReadonlySet<string>; grants: ReadonlySet<number> }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The limits of a workspace are new. */
  limited(workspace: string): void {
    const { now, database } = this.#world;
    const account = database.accounts.get(workspace) as Account;
    this.#usage.limited(workspace, account);
    const names = new Set(overruns(account).map(([name]) => name));
    const grants = new Set([...account.grants.values()].map(({ id }) => id));
    this.#lowered.set(workspace, { at: now, names, grants });
  }

  /** A request that is admitted by a statement, or by a replica alone. */
  admitted(workspace: string, ask: Pick<Ask, "input">): void {
    const { clock, isCalm } = this.#world;
    const exceeded = this.#usage.admitted(workspace, ask, clock);
    if (exceeded && isCalm) throw new Violation(1, `${workspace} has more ${exceeded} than its limit`);
  }

  /** Without faults, what happens is bounded. */
  holds(): void {
    const { now, requests, database, live } = this.#world;
    for (const { state, since, requestId } of requests.values()) {
      if (state === "asked" && now - since > LONGEST_MS.asked)
        throw new Violation(6, `${requestId} is not answered after ${now - since} ms`);
      if (state === "settled" && now - since > LONGEST_MS.settled)
        throw new Violation(4, `the end of ${requestId} has not left after ${now - since} ms`);
    }
    for (const [workspace, account] of database.accounts) {
      if (this.#usage.isCrowded(workspace, requests.values()))
        throw new Violation(1, `more requests of ${workspace} run than its limit`);
      const lowered = this.#lowered.get(workspace);
      const ms = now - (lowered?.at ?? now);
      if (!lowered || ms < LONGEST_MS.over || ms > LONGEST_MS.quiet) continue;
      // Output tokens exceed a limit by what is posted.
      const isOver = overruns(account).some(([name]) => lowered.names.has(name) && !name.startsWith("output"));
      for (const replica of isOver ? live : []) {
        const grant = account.grants.get(replica.id);
        const { flight, posts = [] } = replica.escrow.grants.get(workspace) ?? {};
        const { from, until } = replica.deaf;
        // A call-back that was sent meanwhile is lost.
        const isUnaware = now < until || (lowered.at >= from && lowered.at < until);
        const isBusy = flight || posts.length > 0 || isAwaiting(replica) || isUnaware;
        if (grant && lowered.grants.has(grant.id) && isIdle(grant) && !isBusy)
          throw new Violation(1, `${replica.id} keeps what a lower limit of ${workspace} does not allow`);
      }
    }
  }

  /** The database has counted what was admitted. */
  ended(): void {
    const { epoch, clock, database } = this.#world;
    for (const [workspace, account] of database.accounts) {
      const difference = this.#usage.difference(workspace, account, epoch, clock);
      if (difference) throw new Violation(1, `${workspace} has counted ${difference}`);
    }
  }
}
