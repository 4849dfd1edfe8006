import { setTimeout as sleep } from "node:timers/promises";
import { errorFacts, type Log } from "../log.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import type { Attempt, AttemptEnd, Webhooks } from "./webhook.ts";

/** Time between two looks for events to send, in milliseconds. */
const LOOK_MS = 2_000;
/** Most events that are sent at the same time. */
const BATCH = 16;
/** Events of each rule that are kept. */
const KEPT = 200;
/** Attempts for an event. With the waits between them, the last is about two hours after the first. */
const ATTEMPTS = 8;
/** Longest wait between two attempts, in milliseconds. */
const MAX_WAIT_MS = 3_600_000;

export interface AlertTimes {
  /** Time between two comparisons of figures with thresholds, in milliseconds. */
  compareMs: number;
  /** Wait after the first attempt that failed, in milliseconds; each later one is four times as long. */
  retryMs: number;
}

interface Due extends Attempt {
  workspace_id: string;
  attempts: number;
}

/**
 * Raises and sends alerts. Of all replicas, one compares, and one sends each event: it takes the event for a minute, so
 * that another one sends it if this one dies. A receiver can therefore get an event twice, with the same identifier.
 * @returns a handle that stops it and closes the webhooks
 */
export function keepAlerts(
  pool: Pool,
  webhooks: Webhooks,
  { compareMs, retryMs }: AlertTimes,
  log: Log,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async () => {
    while (!signal.aborted) {
      try {
        await pool.query("select raise_alerts($1 * interval '1 ms')", [compareMs]);
        await sendDue();
      } catch (error) {
        if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not raise or send alerts");
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  };

  async function sendDue(): Promise<void> {
    const due = await pool.query<Due>(
      `update alert_deliveries d set attempts = attempts + 1, next_at = clock_timestamp() + interval '1 minute'
       from alert_rules r
       where r.workspace_id = d.workspace_id and (d.workspace_id, d.id) in (
         select workspace_id, id from alert_deliveries where state = 'waiting' and next_at <= clock_timestamp()
         order by next_at limit ${BATCH} for update skip locked)
       returning d.workspace_id, d.id, d.event as body, d.attempts, r.url, r.secret`,
    );
    if (due.length === 0) return;
    await Promise.all(due.map(async (one) => note(one, await webhooks.send(one))));
    await pool.query(
      `delete from alert_deliveries where (workspace_id, id) in (
         select workspace_id, id from (
           select workspace_id, id, row_number() over (partition by workspace_id order by created_at desc, id) as place
           from alert_deliveries where workspace_id = any ($1)) ranked
         where place > ${KEPT})`,
      [[...new Set(due.map(({ workspace_id }) => workspace_id))]],
    );
  }

  async function note({ workspace_id, id, attempts }: Due, { status, error }: AttemptEnd): Promise<void> {
    const state = error === undefined ? "delivered" : attempts >= ATTEMPTS ? "failed" : "waiting";
    const waitMs = Math.min(MAX_WAIT_MS, retryMs * 4 ** (attempts - 1)) * (0.75 + Math.random() / 2);
    await pool.query(
      `update alert_deliveries
       set state = $3, response_status = $4, error = $5, next_at = clock_timestamp() + $6 * interval '1 ms'
       where workspace_id = $1 and id = $2`,
      [workspace_id, id, state, status ?? null, error ?? null, waitMs],
    );
    if (state === "failed") log.warn({ workspace_id, delivery: id, reason: error }, "gave up the delivery of an alert");
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      // Ends the attempts under way, so that a slow receiver does not delay the end of the service.
      await webhooks.close();
      await running;
    },
  };
}
