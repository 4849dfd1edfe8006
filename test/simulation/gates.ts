import pg from "pg";
import { openPool, type Pool } from "../../src/store/pool.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

/** A lock point: a row, or the first write to a table. */
export interface Held {
  table: string;
  row?: { workspace: string; replica?: string };
}

interface Run<T> {
  run(pool: Pool): Promise<T>;
}

/** Runs statements in sessions of their own, and holds them at lock points, so that they interleave there. */
export class Gates {
  readonly #sessions: readonly Pool[];
  readonly #holders: readonly pg.Client[];
  readonly #observer: pg.Client;

  /** @param sessions pools of one connection */
  constructor(sessions: readonly Pool[], holders: readonly pg.Client[], observer: pg.Client) {
    this.#sessions = sessions;
    this.#holders = holders;
    this.#observer = observer;
  }

  /**
   * Closes the gates, starts one statement after the other, each when those before wait or have ended, and then opens
   * one gate after the other in the same way.
   */
  async run<T>(runs: readonly Run<T>[], held: readonly Held[]): Promise<PromiseSettledResult<T>[]> {
    const running = new Set<number>();
    const results: Promise<T>[] = [];
    try {
      for (const [i, at] of held.entries()) await close(this.#holders[i] as pg.Client, at);
      for (const [i, run] of runs.entries()) {
        const session = this.#sessions[i] as Pool;
        // A pool replaces a connection that was idle.
        const [row] = await session.query<{ pid: number }>("select pg_backend_pid() as pid");
        const pid = row?.pid ?? 0;
        running.add(pid);
        const result = run.run(session).finally(() => running.delete(pid));
        result.catch(() => undefined);
        results.push(result);
        await this.#settled(running);
      }
      for (const i of held.keys()) {
        await this.#holders[i]?.query("rollback");
        await this.#settled(running);
      }
    } finally {
      for (const i of held.keys()) await this.#holders[i]?.query("rollback");
    }
    return Promise.allSettled(results);
  }

  /** Waits until each statement waits for a lock or has ended. */
  async #settled(running: ReadonlySet<number>): Promise<void> {
    while (running.size > 0) {
      const { rows } = await this.#observer.query(
        "select count(*)::int as free from unnest($1::int[]) as x (pid) where cardinality(pg_blocking_pids(pid)) = 0",
        [[...running]],
      );
      if (rows[0].free === 0) return;
    }
  }
}

async function close(holder: pg.Client, { table, row }: Held): Promise<void> {
  await holder.query("begin");
  if (!row) await holder.query(`lock table ${table} in share mode`);
  else if (row.replica === undefined)
    await holder.query(`select from ${table} where workspace_id = $1 for update`, [row.workspace]);
  else
    await holder.query(`select from ${table} where workspace_id = $1 and replica = $2 for update`, [
      row.workspace,
      row.replica,
    ]);
}

/** Opens two sessions. A deadlock is found after 20 ms. */
export async function openGates(t: Lifetime, url: string): Promise<Gates> {
  const address = new URL(url);
  address.searchParams.set("options", "-c deadlock_timeout=20ms");
  const sessions = [1, 2].map(() => openPool(address.href, { max: 1 }));
  for (const session of sessions) t.onTestFinished(() => session.end());
  const clients = Array.from({ length: 3 }, () => new pg.Client(url));
  for (const client of clients) {
    await client.connect();
    t.onTestFinished(() => client.end());
  }
  const [observer, ...holders] = clients as [pg.Client, pg.Client, pg.Client];
  return new Gates(sessions, holders, observer);
}
