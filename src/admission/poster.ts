import type { Clock } from "../contract/clock.ts";
import { frequent, isLocked, isUnavailable, orOverloaded, type Pool } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";

/** Longest wait of a settlement in the log, in ms, and number of settlements from which all are posted at once. */
const WAIT_MS = 100;
const MAX_ROWS = 512;

/** Wait after a workspace could not be posted, in milliseconds. */
const RETRY_MS = 2_000;

/** Largest number of workspaces of one transaction, which locks their accounts. */
const MAX_WORKSPACES = 64;

/** Largest number of workspaces that are posted for one read of all. */
const MAX_READ = 1_000;

const POST = "select set_config('synchronous_commit', 'off', true), post_settlements($1, $2)";
frequent(POST);

/** Workspaces that could not be posted, each with the reason. */
type Failed = Map<string, unknown>;

/**
 * Posts what waits in the log of workspaces. Posting moves rows within one transaction, so it does not wait for the
 * disk: a crash of the server that loses the transaction restores the log. If that fails for some, it posts each alone.
 * @throws Error when the database is unavailable
 */
async function post(pool: Pool, workspaces: readonly string[], clock?: Clock): Promise<Failed> {
  const failed: Failed = new Map();
  for (let i = 0; i < workspaces.length; i += MAX_WORKSPACES) {
    const some = workspaces.slice(i, i + MAX_WORKSPACES);
    try {
      await pool.query(POST, [some, clock ? new Date(clock()) : null]);
    } catch (error) {
      if (isUnavailable(error) && !isLocked(error)) throw error;
      if (some.length > 1)
        for (const one of some) for (const entry of await post(pool, [one], clock)) failed.set(...entry);
      else failed.set(some.join(), error);
    }
  }
  return failed;
}

/**
 * Posts what waits in the log, before figures are read that must include it. Leaves it while another transaction locks
 * a workspace for long.
 * @param workspace undefined: all workspaces, at most 1,000. Leaves what the database refuses, because an operator must
 *   be able to act then. The replica that has appended it reports that.
 * @throws Failure `overloaded` when the database is unavailable; Error when it refuses what waits in `workspace`
 */
export async function postLog(pool: Pool, workspace: string | undefined, clock?: Clock): Promise<void> {
  const waiting =
    workspace === undefined
      ? pool.query<{ id: string }>("select distinct workspace_id as id from settlement_log limit $1", [MAX_READ])
      : pool.query<{ id: string }>(
          "select $1 as id where exists (select from settlement_log where workspace_id = $1)",
          [workspace],
        );
  const ids = (await orOverloaded(waiting)).map(({ id }) => id);
  const failed = await orOverloaded(post(pool, ids, clock));
  if (workspace === undefined) return;
  for (const error of failed.values()) if (!isLocked(error)) throw error;
}

/** Posts in the background what this replica has appended to the log. */
export class Poster {
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #clock: Clock | undefined;
  #waiting = new Set<string>();
  #rows = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(pool: Pool, log: Log, clock: Clock | undefined) {
    this.#pool = pool;
    this.#log = log;
    this.#clock = clock;
  }

  /** Notes that settlements of a workspace are in the log. */
  appended(workspace: string, count: number): void {
    this.#waiting.add(workspace);
    this.#rows += count;
    if (this.#running) return;
    if (this.#rows >= MAX_ROWS) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), WAIT_MS).unref();
  }

  /** Posts what waits, if the database accepts it. What is left is posted when its grant ends. */
  async close(): Promise<void> {
    await this.#running;
    clearTimeout(this.#timer);
    await this.#run();
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running = this.#run().then((isDone) => {
      this.#running = undefined;
      const wait = !isDone ? RETRY_MS : this.#rows >= MAX_ROWS ? 0 : WAIT_MS;
      if (this.#waiting.size > 0) this.#timer = setTimeout(() => this.#start(), wait).unref();
    });
  }

  /** @returns whether all was posted. The rest waits for the next time. */
  async #run(): Promise<boolean> {
    const workspaces = [...this.#waiting];
    this.#waiting = new Set();
    this.#rows = 0;
    let left = workspaces;
    try {
      const failed = await post(this.#pool, workspaces, this.#clock);
      left = [...failed.keys()];
      for (const [workspace, error] of failed) {
        if (!isLocked(error)) this.#log.error({ workspace, cause: errorFacts(error) }, "could not post settlements");
      }
    } catch {
      // The database is unavailable, which exchanges report.
    }
    for (const workspace of left) this.#waiting.add(workspace);
    return left.length === 0;
  }
}
