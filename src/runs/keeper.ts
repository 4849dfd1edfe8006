import { timeOfGeneration } from "../contract/generation-id.ts";
import type { Pool } from "../store/pool.ts";
import { type RunFacts, recordText } from "./record.ts";
import type { Look } from "./running.ts";

/** Longest wait of a run before it is sent, in milliseconds, and number of runs that are sent at once. */
const WAIT_MS = 200;
const MAX_BATCH = 256;

/** Most runs that wait. Further ones are lost. */
const MAX_WAITING = 8_192;

const DAY_MS = 86_400_000;

/** What has become of runs. `over_cap`: their workspace had too many that day. `lost`: the database was too slow. */
export type RunCounts = Record<"kept" | "over_cap" | "lost", number>;

interface Waiting {
  readonly workspaceId: string;
  readonly id: string;
  readonly facts: RunFacts;
}

export interface RunsOptions {
  /** Most runs of one workspace on one day (UTC). */
  readonly perDay: number;
}

/**
 * Knows the requests that run, and keeps how they were answered in the database, many at a time. No request waits for
 * it, and a run that cannot be kept is lost.
 */
export class RunKeeper {
  readonly counts: RunCounts = { kept: 0, over_cap: 0, lost: 0 };
  /** The requests that run, by the identifiers of their generations. */
  readonly running = new Map<string, Look>();
  readonly #pool: Pick<Pool, "query">;
  readonly #perDay: number;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Workspaces that have their number of runs of the day. */
  readonly #filled = new Set<string>();
  #day = 0;

  constructor(pool: Pick<Pool, "query">, { perDay }: RunsOptions) {
    this.#pool = pool;
    this.#perDay = perDay;
  }

  /** Shows a request until it is kept, or has ended. */
  begin(id: string, look: Look): void {
    this.running.set(id, look);
  }

  /** Ends what was begun, also if nothing is kept. @param id undefined: nothing was begun */
  end(id: string | undefined): void {
    if (id !== undefined) this.running.delete(id);
  }

  /** Keeps what a request of a workspace leaves. It never waits and never throws. */
  keep(workspaceId: string, id: string, facts: RunFacts): void {
    this.running.delete(id);
    if (this.#filled.has(workspaceId) && !this.#isNextDay(id)) this.counts.over_cap += 1;
    else if (this.#waiting.length >= MAX_WAITING) this.counts.lost += 1;
    else {
      this.#waiting.push({ workspaceId, id, facts });
      if (this.#running) return;
      if (this.#waiting.length >= MAX_BATCH) this.#start();
      else this.#timer ??= setTimeout(() => this.#start(), WAIT_MS).unref();
    }
  }

  /** Resolves when the runs that wait now are in the database, or lost. */
  async flush(): Promise<void> {
    await this.#running;
    for (let left = this.#waiting.length; left > 0; left -= MAX_BATCH) {
      this.#start();
      await this.#running;
    }
  }

  #isNextDay(id: string): boolean {
    const day = Math.floor((timeOfGeneration(id) ?? 0) / DAY_MS);
    if (day <= this.#day) return false;
    this.#day = day;
    this.#filled.clear();
    return true;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running ??= this.#send().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length >= MAX_BATCH) this.#start();
      else if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#start(), WAIT_MS).unref();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, MAX_BATCH);
    const last = batch.at(-1);
    try {
      const text = `[${batch.map(rowText).join()}]`;
      const [row] = await this.#pool.query<{ filled: string[] }>("select keep_runs($1, $2) as filled", [
        text,
        this.#perDay,
      ]);
      this.counts.kept += batch.length;
      if (last) this.#isNextDay(last.id);
      for (const workspaceId of row?.filled ?? []) this.#filled.add(workspaceId);
    } catch {
      // The database is unavailable, which settlements report.
      this.counts.lost += batch.length;
    }
  }
}

/** A row of `runs` as JSON text. */
function rowText({ workspaceId, id, facts }: Waiting): string {
  const place = { workspace_id: workspaceId, began_at: new Date(timeOfGeneration(id) ?? 0), id };
  return `${JSON.stringify(place).slice(0, -1)},"record":${recordText(facts)}}`;
}
