import { arrangePartitions } from "../../../src/store/partitions.ts";
import type { Pool } from "../../../src/store/pool.ts";

const DAY = 86_400_000;

/** Requests that are posted in one statement. */
const BATCH = 10_000;

/** A year that ends with the present day. */
export const YEAR_MS = 365 * DAY;

/**
 * Settles requests of a workspace over the last year, one of each of as many users, through the function that posts
 * the settlements of the service. Forty teams share them; one in fifty fails and costs nothing.
 */
export async function fillYear(pool: Pool, workspaceId: string, requests: number): Promise<void> {
  const end = Date.now();
  const start = end - YEAR_MS;
  for (let at = start; at < end; at += 28 * DAY) await arrangePartitions(pool, at, 36_500, 30);
  for (let first = 1; first <= requests; first += BATCH) {
    const last = Math.min(requests, first + BATCH - 1);
    await pool.query(
      `insert into settlement_log
       select $1, '', 0, 0, 0, 0, 0, 0, 0, json_agg(json_build_object(
         'id', 'gen_' || i, 'request_id', 'req_' || i, 'key_id', 'key_' || i % 7, 'streamed', false, 'shape', 'text',
         'created_at', to_timestamp($2::float8 + ($3::float8 - $2) * i / $4), 'effort', 'auto', 'level', 'low',
         'input_tokens', 200 + i % 801, 'output_tokens', 50 + i % 307, 'cached_tokens', i % 101,
         'credits_micro', case when i % 50 = 0 then 0 else 900 + i * 7919 % 20011 end,
         'outcome', case when i % 50 = 0 then 'upstream_failed' else 'ok' end, 'finish_reason', 'stop',
         'latency_ms', 900, 'end_user', 'u-' || i, 'tags', json_build_object('team', 't-' || i % 40)))
       from generate_series($5::bigint, $6::bigint) as i`,
      [workspaceId, start / 1_000, end / 1_000, requests, first, last],
    );
    await pool.query("select post_settlements(array[$1])", [workspaceId]);
  }
  await pool.query("vacuum analyze");
}
