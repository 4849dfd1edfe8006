import { arrangePartitions } from "../../src/store/partitions.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf, type BackOffice } from "./admin.ts";
import { testDatabase } from "./database.ts";
import type { Lifetime } from "./lifetime.ts";

/** Time of the first request. */
export const START = Date.UTC(2026, 9, 31, 23);

/** Writes requests of two workspaces, three in each second, across the end of a month. */
export async function openWithGenerations(t: Lifetime, count = 3_000): Promise<BackOffice & { pool: Pool }> {
  const { pool } = await testDatabase(t);
  for (const time of [START, START + 2 * 3_600_000]) await arrangePartitions(pool, time, 36_500, 30);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one'), ('ws_2', 'two')");
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes)
     select 'ws_1', 'key_' || i, convert_to('k' || i, 'UTF8'), 'ck_' || i, 'name ' || i, '{}'
     from generate_series(0, 9) i`,
  );
  await pool.query(
    `insert into generations
     select case when i % 7 = 6 then 'ws_2' else 'ws_1' end, to_timestamp(${START / 1_000} + i / 3),
       'gen_' || i, 'req_' || i, 'key_' || i % 10, i % 2 = 0, 'text', 'auto',
       case when i = 5 then 'high' else 'low' end, 10, 20, 5, 1500000,
       case when i % 50 = 0 then 'upstream_failed' when i % 75 = 1 then 'caller_gone' else 'ok' end,
       case when i % 50 <> 0 then 'stop' end, i % 1000, 'secret-model', nullif(i % 5, 0)
     from generate_series(0, ${count - 1}) i`,
  );
  await pool.query("analyze");
  return { pool, ...adminOf(pool) };
}

export const NOW = Date.UTC(2026, 10, 20, 12, 34, 56);

/** Adds use of some keys, as at `NOW`. */
export async function addUse(pool: Pool): Promise<void> {
  const add = (unit: string, start: string, key: string, credits: number) =>
    pool.query("insert into usage values ('ws_1', $1, $2, $3, 2, 1, 10, 20, 5, $4)", [unit, start, key, credits]);
  await add("day", "2026-11-20T00:00:00Z", "key_1", 3_000_000);
  await add("hour", "2026-11-20T12:00:00Z", "key_1", 3_000_000);
  await add("minute", "2026-11-20T12:30:00Z", "key_1", 3_000_000);
  await add("day", "2026-10-22T00:00:00Z", "key_1", 1_000_000);
  await add("day", "2026-10-21T00:00:00Z", "key_1", 8_000_000);
  await add("day", "2025-01-01T00:00:00Z", "key_2", 7_000_000);
  await add("day", "2026-11-01T00:00:00Z", "key_3", 9_000_000);
  await pool.query("insert into usage values ('ws_2', 'day', '2026-11-20', 'key_4', 2, 1, 10, 20, 5, 99000000)");
}
