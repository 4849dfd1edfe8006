import type { Pool } from "../store/pool.ts";

/** Spends at most an amount a day (UTC) over all replicas. Amounts are in USD, kept in whole billionths. */
export class DailyBudget {
  readonly #pool: Pick<Pool, "query">;
  readonly #usdPerDay: number;

  constructor(pool: Pick<Pool, "query">, usdPerDay: number) {
    this.#pool = pool;
    this.#usdPerDay = usdPerDay;
  }

  /**
   * Reserves what something costs at most.
   * @returns the day, for `correct`; undefined if the rest of the day's budget is smaller
   */
  async reserve(usd: number): Promise<string | undefined> {
    const [row] = await this.#pool.query<{ day: string }>(
      `insert into referee_days as d (day, nano_usd)
       select (clock_timestamp() at time zone 'utc')::date, $1::bigint where $1::bigint <= $2::bigint
       on conflict (day) do update set nano_usd = d.nano_usd + excluded.nano_usd
         where d.nano_usd + excluded.nano_usd <= $2::bigint
       returning day::text as day`,
      [nano(usd), Math.floor(this.#usdPerDay * 1e9)],
    );
    return row?.day;
  }

  /** Replaces what was reserved on a day by what was spent. */
  async correct(day: string, reserved: number, spent: number): Promise<void> {
    await this.#pool.query("update referee_days set nano_usd = nano_usd + $2::bigint where day = $1::date", [
      day,
      nano(spent) - nano(reserved),
    ]);
  }
}

function nano(usd: number): number {
  return Math.ceil(usd * 1e9 - 1e-6);
}
