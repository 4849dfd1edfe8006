import type { Pool } from "../store/pool.ts";
import { type Counts, NONE } from "../telemetry/report.ts";

/** Age at which hours are deleted. */
const KEPT = "400 days";

/** Adds what a process has called to the hours of the database, each call once. */
export class ModelHours {
  readonly #pool: Pick<Pool, "query">;
  /** What the database has. */
  #added: Counts = new Map();

  constructor(pool: Pick<Pool, "query">) {
    this.#pool = pool;
  }

  /**
   * Adds the calls since the last time.
   * @param counted calls since the start of the process
   * @throws an error of the pool; then the next time adds them
   */
  async add(counted: Counts): Promise<void> {
    const rows = [...counted].flatMap(([model, { calls, failed, usd }]) => {
      const before = this.#added.get(model) ?? NONE;
      const row = { model, calls: calls - before.calls, failed: failed - before.failed, usd: usd - before.usd };
      return row.calls > 0 || row.usd > 0 ? [row] : [];
    });
    if (rows.length === 0) return;
    // In the order of their names, because two processes that lock rows in different orders wait for each other.
    rows.sort((a, b) => (a.model < b.model ? -1 : 1));
    await this.#pool.query(
      `with expired as (delete from model_hours where start < clock_timestamp() - interval '${KEPT}')
       insert into model_hours as h (start, model, calls, failed_calls, cost_usd)
       select date_trunc('hour', clock_timestamp(), 'UTC'), model, calls, failed, usd
       from jsonb_to_recordset($1) as m (model text, calls bigint, failed bigint, usd double precision)
       on conflict (start, model) do update set calls = h.calls + excluded.calls,
         failed_calls = h.failed_calls + excluded.failed_calls, cost_usd = h.cost_usd + excluded.cost_usd`,
      [JSON.stringify(rows)],
    );
    this.#added = counted;
  }
}
