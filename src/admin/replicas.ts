import { setTimeout as sleep } from "node:timers/promises";
import { repeat } from "../concurrency/repeat.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import { callsOf, type ReplicaReport, type ReportedState, Reporter } from "../telemetry/report.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { ModelHours } from "./model-hours.ts";

/** Time between two reports of a replica, in milliseconds. */
const REPORT_MS = 10_000;
/** Shortest time between two reports. */
const SOON_MS = 1_000;

/** Age from which a report is not shown any more, and from which it is deleted. */
const SHOWN = "35 s";
const KEPT = "1 hour";

/** What identifies the process of a replica to people. */
export interface ReplicaProcess {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
}

export interface Replica {
  readonly id: string;
  /** Time of the report. */
  readonly at: Date;
  readonly report: ReplicaReport & ReplicaProcess;
}

/**
 * Reports the state of this replica every ten seconds, and adds its calls of models to the hours. Without the database,
 * nothing is reported.
 * @param models what the models of this replica do
 * @returns a handle that stops it and removes the report
 */
export function startReports(
  pool: Pool,
  replica: string,
  process: ReplicaProcess,
  telemetry: Pick<Telemetry, "snapshot">,
  models: () => readonly ReportedState[],
  log: Log,
): {
  /** Reports now, or a second after the last time. */
  soon(): void;
  stop(): Promise<void>;
} {
  const reporter = new Reporter();
  const hours = new ModelHours(pool);
  const reports = repeat(async (signal) => {
    await send().catch((error: unknown) => {
      if (!isUnavailable(error)) log.warn({ cause: errorFacts(error) }, "could not report the state of this replica");
    });
    await sleep(SOON_MS, undefined, { signal }).catch(() => undefined);
  }, REPORT_MS - SOON_MS);

  async function send(): Promise<void> {
    const snapshot = await telemetry.snapshot();
    const report = reporter.report(snapshot, performance.now(), models());
    await pool.query(
      `with expired as (delete from replica_reports where at < clock_timestamp() - interval '${KEPT}' and replica <> $1)
       insert into replica_reports (replica, at, report) values ($1, clock_timestamp(), $2)
       on conflict (replica) do update set at = excluded.at, report = excluded.report`,
      [replica, JSON.stringify({ ...report, ...process })],
    );
    await addCalls();
  }

  async function addCalls(): Promise<void> {
    await hours.add(callsOf(await telemetry.snapshot()));
  }

  return {
    soon: reports.soon,
    async stop() {
      await reports.stop();
      await addCalls().catch(() => undefined);
      await pool.query("delete from replica_reports where replica = $1", [replica]).catch(() => undefined);
    },
  };
}

/** Whether more than one process reports, of one replica or several. */
export async function hasOtherReplicas({ query }: Pick<Pool, "query">): Promise<boolean> {
  const [row] = await query<{ several: boolean }>(
    `select count(*) > 1 as several from replica_reports where at > clock_timestamp() - interval '${SHOWN}'`,
  );
  return row?.several ?? false;
}

export function readReplicas(pool: Pool): Promise<Replica[]> {
  return pool.query<Replica>(
    `select replica as id, at, report from replica_reports
     where at > clock_timestamp() - interval '${SHOWN}' order by report ->> 'host', report ->> 'startedAt', replica`,
  );
}
