import { setTimeout as sleep } from "node:timers/promises";
import { TransientMap } from "../concurrency/transient.ts";
import type { Clock } from "../contract/clock.ts";
import { WAITING } from "../overload/bounds.ts";
import { isLocked, isUnavailable, overloaded, type Pool } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { Escrow } from "./escrow/escrow.ts";
import type { Command, Event } from "./escrow/events.ts";
import type { Ask, Item, Mode, Post, Reply } from "./escrow/exchange.ts";
import { execute, findRejected } from "./escrow/execute.ts";
import { refusalFailure } from "./escrow/refusal.ts";
import { MAX_ITEMS_BEHIND } from "./escrow/shares.ts";
import type { PostJournal } from "./post-journal.ts";
import { Poster } from "./poster.ts";
import { type RateLimit, rateLimits } from "./rate-limits.ts";

/** Channel of the workspaces whose unused headroom another replica needs, or whose limits have changed. */
export const CALL_BACK = "chorus_call_back";

/** Channel of subjects, as `WORKSPACE SUBJECT`, whose headroom is needed or whose caps have changed. */
export const CAP_CALL_BACK = "chorus_cap_call_back";

/** Time after which unused headroom is looked for, in milliseconds. */
const TICK_MS = 250;

/** Longest wait at shutdown for the return of the grants, in milliseconds. */
const RETURN_MS = 1_000;

export interface GrantsParts {
  pool: Pool;
  journal: PostJournal;
  /** Identifier of this process. */
  replica: string;
  log: Log;
  telemetry?: Telemetry | undefined;
  clock?: Clock | undefined;
  /** Longest wait for headroom of another replica, in milliseconds. Default: 100. */
  callBackMs?: number | undefined;
}

/** The promise of `admit` or `settle`, until the rules answer. */
interface Pending<T> {
  since: number;
  resolve(result: T): void;
  reject(error: unknown): void;
}

/** What an admitted request is told; undefined: nothing. */
interface Admitted {
  /** The response that was kept for the idempotency key, in base64. */
  readonly response?: string;
  /** Whether a cap allows only the effort `low`. */
  readonly isLow?: boolean;
}

/** A request that the rules have not answered. It needs no promise if they answer at once, as they nearly always do. */
class Waiting implements Pending<Admitted | undefined> {
  readonly since = performance.now();
  #isAdmitted = false;
  #answer: PromiseWithResolvers<Admitted | undefined> | undefined;

  /** Undefined: the request is admitted. */
  get answer(): Promise<Admitted | undefined> | undefined {
    return this.#isAdmitted ? undefined : this.#later().promise;
  }

  resolve(told: Admitted | undefined): void {
    if (told === undefined && !this.#answer) this.#isAdmitted = true;
    else this.#later().resolve(told);
  }

  reject(error: unknown): void {
    this.#later().reject(error);
  }

  #later(): PromiseWithResolvers<Admitted | undefined> {
    this.#answer ??= Promise.withResolvers();
    return this.#answer;
  }
}

/**
 * What this replica has reserved of the workspaces, and the requests that it has admitted: runs the rules of `Escrow`
 * over the database, the journal and the clock.
 */
export class Grants {
  readonly #parts: GrantsParts;
  readonly #escrow: Escrow;
  readonly #poster: Poster;
  readonly #asks = new TransientMap<string, Pending<Admitted | undefined>>();
  readonly #ends = new TransientMap<string, Pending<number>>();
  /** Requests that have ended in this turn of the event loop. */
  #settled: Post[] = [];
  #live = 1;
  #ticks: NodeJS.Timeout | undefined;
  /** Wakes the rules before the next tick, at `#wakesAt` on the clock of `performance.now()`. */
  #alarm: NodeJS.Timeout | undefined;
  #wakesAt: number | undefined;
  readonly #sending = new Map<Mode, Promise<void>>();
  #isClosed = false;

  constructor(parts: GrantsParts) {
    this.#parts = parts;
    this.#escrow = new Escrow(parts.replica, parts.callBackMs);
    this.#poster = new Poster(parts.pool, parts.log, parts.clock);
    parts.journal.onWritten = (requestIds, isWritten) => this.#tell({ type: "journaled", requestIds, isWritten });
  }

  /** Settles what earlier processes have left in the journal. Call it once, when the database accepts statements. */
  recover(): void {
    for (const { workspaceId, post } of this.#parts.journal.recovered()) {
      this.#tell({ type: "recover", workspace: workspaceId, post });
    }
  }

  /**
   * Admits a request, in memory where the replica has headroom, else by a statement.
   * @returns what the request is told, without a promise if it was admitted in memory
   * @throws Failure naming the limit, with the wait that helps; `overloaded` when the database is unavailable
   */
  admit(workspaceId: string, ask: Ask): Promise<Admitted | undefined> | undefined {
    this.#parts.journal.checkWritable();
    if (this.#asks.size >= WAITING.admissions) throw overloaded(new Error("too many requests wait for admission"));
    const waiting = new Waiting();
    this.#asks.set(ask.requestId, waiting);
    this.#tell({ type: "request", workspace: workspaceId, ...ask });
    return waiting.answer;
  }

  /**
   * Ends a request. Resolves when its settlement is on disk: in the database, or in the journal while the database is
   * unavailable.
   * @returns what is charged, in micro-credits
   * @throws Failure overloaded when nothing is charged, because the grant has ended or nothing takes the settlement;
   *   Error when the database refuses the settlement
   */
  settle(post: Post): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#ends.set(post.requestId, { since: performance.now(), resolve, reject });
      // Those of one turn share a statement. Else the first would go alone, and the others wait for it.
      if (this.#settled.length === 0) setImmediate(this.#settleAll);
      this.#settled.push(post);
    });
  }

  /**
   * Notes that a heartbeat was written.
   * @param sentAt `performance.now()` when it was sent
   * @param live number of replicas that run
   * @param hears whether each call-back arrives; if not, nothing is reserved in advance beside other replicas
   */
  beat(sentAt: number, live: number, hears: boolean): void {
    this.#live = live;
    this.#tell({ type: "beat", sentAt, isDeaf: !hears && live > 1 });
  }

  /** The rate limits of a workspace by the last answer of the database in this minute; undefined: none is known. */
  limits(workspace: string): RateLimit[] | undefined {
    const grant = this.#escrow.grants.get(workspace);
    const msLeft = grant?.free.msLeft(performance.now()) ?? 0;
    if (!grant?.left || msLeft <= 0) return undefined;
    const { left, free, returned } = grant;
    return rateLimits(left, [free, returned], free.minute, msLeft);
  }

  /** Returns a grant that this process does not know. */
  find(workspace: string, grant: number): void {
    this.#tell({ type: "find", workspace, grant });
  }

  /** Returns unused headroom, because another replica needs it or limits have changed. */
  callBack(workspace: string): void {
    this.#tell({ type: "callBack", workspace });
  }

  /** Returns unused headroom of a subject. @param of message of the channel */
  callBackSubject(of: string): void {
    const space = of.indexOf(" ");
    this.#tell({ type: "callBack", workspace: of.slice(0, space), subject: of.slice(space + 1) });
  }

  /** Tells the database what the requests of a workspace use. Resolves when it knows, or is unavailable. */
  async report(workspace: string): Promise<void> {
    this.#tell({ type: "report", workspace });
    // What is under way was sent before; with a statement of each mode, up to three follow each other.
    for (let i = 0; i < 3 + MAX_ITEMS_BEHIND && this.#escrow.isReporting(workspace); i++) await this.#sent();
  }

  /** Returns all grants. Settlements that still wait stay in the journal. */
  async close(): Promise<void> {
    this.#settleAll();
    this.#tell({ type: "stop" });
    const end = performance.now() + RETURN_MS;
    while (this.#escrow.isReturning && this.#parts.journal.size === 0 && performance.now() < end) {
      await Promise.race([this.#sent(), sleep(RETURN_MS, undefined, { ref: false })]);
      await sleep(1);
    }
    this.#isClosed = true;
    this.#schedule();
    await this.#sent();
    await this.#poster.close();
    await this.#parts.journal.close();
  }

  readonly #settleAll = (): void => {
    const posts = this.#settled;
    this.#settled = [];
    this.#tell({ type: "settle", posts });
  };

  #tell(event: Event): void {
    for (const command of this.#escrow.handle(event, performance.now())) this.#obey(command);
    this.#schedule();
  }

  /** Ticks while something is reserved. Most events change neither timer, because setting one takes a microsecond. */
  #schedule(): void {
    const isIdle = this.#isClosed || this.#escrow.grants.size === 0;
    if (isIdle) {
      clearInterval(this.#ticks);
      this.#ticks = undefined;
    } else this.#ticks ??= setInterval(() => this.#tell({ type: "tick" }), TICK_MS).unref();
    const at = isIdle ? undefined : this.#escrow.wakeAt;
    if (at === this.#wakesAt) return;
    clearTimeout(this.#alarm);
    this.#wakesAt = at;
    if (at !== undefined) this.#alarm = setTimeout(this.#wake, Math.max(1, at - performance.now())).unref();
  }

  readonly #wake = (): void => {
    this.#wakesAt = undefined;
    this.#tell({ type: "tick" });
  };

  #obey(command: Command): void {
    const { journal } = this.#parts;
    if (command.type === "send") this.#sending.set(command.mode, this.#send(command.mode, command.items));
    else if (command.type === "journal") journal.write(command.workspace, command.posts);
    else if (command.type === "unjournal") journal.remove(command.requestId);
    else if (command.type === "confirm") take(this.#ends, command.requestId)?.resolve(command.charge);
    else if (command.type === "deny") this.#deny(command);
    else if (command.type === "admit")
      take(this.#asks, command.requestId)?.resolve(command.isLow ? { isLow: true } : undefined);
    else if (command.type === "replay") take(this.#asks, command.requestId)?.resolve({ response: command.response });
    else {
      const { requestId, refusal } = command;
      const failure = refusal ? refusalFailure(refusal) : overloaded(new Error("the database is unavailable"));
      take(this.#asks, requestId)?.reject(failure);
    }
  }

  #deny({ requestId, isInvalid = false }: Extract<Command, { type: "deny" }>): void {
    this.#parts.journal.refuse(requestId);
    const cause = new Error(`nothing has recorded the request ${requestId}`);
    const error = isInvalid ? cause : overloaded(cause);
    take(this.#ends, requestId)?.reject(error);
    take(this.#asks, requestId)?.reject(error);
  }

  /** Resolves when the statements under way are answered. */
  async #sent(): Promise<void> {
    await Promise.all(this.#sending.values());
  }

  async #send(mode: Mode, items: readonly Item[]): Promise<void> {
    const { journal } = this.#parts;
    this.#count(items);
    try {
      const replies = await this.#execute(items);
      journal.available();
      for (const [i, { workspace, posts }] of items.entries()) {
        if (replies[i]?.state === "appended") this.#poster.appended(workspace, posts.length);
      }
      this.#tell({ type: "receive", mode, replies });
    } catch (error) {
      journal.unavailable(error);
      this.#tell({ type: "fail", mode });
    }
  }

  /**
   * Executes items together, or each alone when the database refuses that or one of them is locked.
   * @throws Error when the database is unavailable
   */
  async #execute(items: readonly Item[]): Promise<(Reply | undefined)[]> {
    const { pool, replica, log, clock } = this.#parts;
    try {
      return await execute(pool, replica, this.#live, items, clock?.());
    } catch (error) {
      if (isLocked(error)) {
        if (items.length === 1) return [{ state: "locked" }];
        return (await Promise.all(items.map((item) => this.#execute([item])))).flat();
      }
      if (isUnavailable(error)) throw error;
      const [item] = items;
      if (item && items.length === 1) {
        const requestIds = await findRejected(pool, replica, this.#live, item);
        log.error({ request_ids: requestIds, cause: errorFacts(error) }, "could not settle requests");
        return [{ state: "rejected", requestIds }];
      }
    }
    const replies: (Reply | undefined)[] = [];
    for (const item of items) replies.push(...(await this.#execute([item])));
    return replies;
  }

  #count(items: readonly Item[]): void {
    const { telemetry } = this.#parts;
    const now = performance.now();
    const asked = items.flatMap(({ asks }) => asks.map(({ requestId }) => this.#asks.get(requestId)?.since ?? now));
    const ended = items.flatMap(({ posts }) => posts.map(({ requestId }) => this.#ends.get(requestId)?.since ?? now));
    const waits = (times: readonly number[]) => times.map((since) => now - since);
    if (asked.length > 0) telemetry?.batch("admission", waits(asked));
    if (ended.length > 0) telemetry?.batch("settlement", waits(ended));
  }
}

function take<T>(waiting: TransientMap<string, Pending<T>>, requestId: string): Pending<T> | undefined {
  const found = waiting.get(requestId);
  waiting.delete(requestId);
  return found;
}
