import { repeat } from "../concurrency/repeat.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import type { Attempt, AttemptEnd, Sender } from "./sender.ts";

/** Longest time between two looks for events to send, in milliseconds. */
const LOOK_MS = 2_000;
/** Most attempts of a replica at the same time: of all workspaces, of one, and to one host. */
const MOST = { all: 128, workspace: 4, host: 16 };
const KEPT = 200;
/** Attempts for an event. With the waits between them, the last is about two and a half hours after the first. */
const ATTEMPTS = 8;
/** Longest wait between two attempts, in milliseconds. */
const MAX_WAIT_MS = 3_600_000;

export interface AlertTimes {
  /** Time between two comparisons of figures with thresholds, in milliseconds. */
  compareMs: number;
  /** Wait after the first attempt that failed, in milliseconds; each later one is four times as long. */
  retryMs: number;
}

export interface AlertOptions extends AlertTimes {
  log: Log;
  /** Called with each look. @param seconds longest time for which a workspace with a due event has waited */
  onWait?: (seconds: number) => void;
}

interface Due extends Attempt {
  workspace_id: string;
  host: string;
  attempts: number;
}

/**
 * Raises and sends alerts. Of all replicas, one compares, and one sends each event: it takes the event for a minute, so
 * that another one sends it if this one dies. A receiver can therefore get an event twice, with the same identifier.
 * An attempt waits for no other one, and a workspace or host whose attempts are slow leaves room for others.
 * @returns a handle that stops it and closes the sender
 */
export function keepAlerts(pool: Pool, sender: Sender, options: AlertOptions): { stop(): Promise<void> } {
  const { compareMs, retryMs, log, onWait } = options;
  const underWay = new Map<Due, Promise<void>>();
  const looking = repeat(() => look().catch(report), LOOK_MS);

  async function look(): Promise<void> {
    await pool.query("select raise_alerts($1 * interval '1 ms')", [compareMs]);
    await sendDue();
    const [wait] = await pool.query<{ seconds: number }>("select alert_wait() as seconds");
    onWait?.(wait?.seconds ?? 0);
  }

  async function sendDue(): Promise<void> {
    const room = MOST.all - underWay.size;
    if (room === 0) return;
    const running = [...underWay.keys()];
    const due = await pool.query<Due>("select * from take_alerts($1, $2, $3, $4, $5)", [
      ...[room, MOST.workspace, MOST.host],
      ...[running.map((one) => one.workspace_id), running.map(({ host }) => host)],
    ]);
    if (due.length === 0) return;
    for (const one of due) underWay.set(one, attempt(one));
    await dropOld(pool, due);
  }

  /** Makes an attempt and writes its end, which makes room for another one. Never rejects. */
  async function attempt(one: Due): Promise<void> {
    try {
      const end = await sender.send(one);
      const { workspace_id, id: delivery } = one;
      if ((await writeEnd(pool, one, end, retryMs)) === "failed")
        log.warn({ workspace_id, delivery, reason: end.error }, "gave up the delivery of an alert");
    } catch (error) {
      report(error);
    }
    underWay.delete(one);
    looking.soon();
  }

  function report(error: unknown): void {
    if (!isUnavailable(error)) log.error({ cause: errorFacts(error) }, "could not raise or send alerts");
  }

  return {
    async stop() {
      const stopped = looking.stop();
      // Ends the attempts under way, so that a slow receiver does not delay the end of the service.
      await sender.close();
      await stopped;
      await Promise.all(underWay.values());
    },
  };
}

/** @returns the state of the event */
async function writeEnd(
  pool: Pool,
  { workspace_id, id, attempts }: Due,
  { status, error, isDelivered = error === undefined, isCut = false }: AttemptEnd,
  retryMs: number,
): Promise<"delivered" | "failed" | "waiting"> {
  if (isCut) {
    // Another replica, or the next start, makes the attempt in place of this one.
    await pool.query(
      `update alert_deliveries set attempts = attempts - 1, next_at = clock_timestamp()
       where workspace_id = $1 and id = $2`,
      [workspace_id, id],
    );
    return "waiting";
  }
  const state = isDelivered ? "delivered" : attempts >= ATTEMPTS ? "failed" : "waiting";
  const waitMs = Math.min(MAX_WAIT_MS, retryMs * 4 ** (attempts - 1)) * (0.75 + Math.random() / 2);
  await pool.query(
    `update alert_deliveries
     set state = $3, response_status = $4, error = $5, next_at = clock_timestamp() + $6 * interval '1 ms'
     where workspace_id = $1 and id = $2`,
    [workspace_id, id, state, status ?? null, error ?? null, waitMs],
  );
  return state;
}

/** Those that wait are kept, and of the others the newest. */
async function dropOld(pool: Pool, due: readonly Due[]): Promise<void> {
  await pool.query(
    `delete from alert_deliveries where (workspace_id, id) in (
       select workspace_id, id from (
         select workspace_id, id, state, row_number() over (
           partition by workspace_id order by state = 'waiting' desc, created_at desc, id) as place
         from alert_deliveries where workspace_id = any ($1)) ranked
       where place > ${KEPT} and state <> 'waiting')`,
    [[...new Set(due.map(({ workspace_id }) => workspace_id))]],
  );
}
