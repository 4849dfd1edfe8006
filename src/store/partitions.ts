import { errorFacts, type Log } from "../telemetry/log.ts";
import type { Pool, Query } from "./pool.ts";

/**
 * A table that is partitioned by month or day. The partition of a month is named `generations_2026_11`, that of a day
 * `outcomes_2026_11_30`, and `generations_rest` holds the rows whose month has no partition.
 */
interface PartitionedTable {
  table: string;
  /** What one partition holds. */
  unit: Unit;
  /** The time by which rows are parted. */
  column: string;
  /** Only its rows of minutes are partitioned, as `usage_minute_2026_11`. */
  ofMinutes?: true;
  /** Age in days from which partitions are dropped, or which of the configured ones it is; false: they are kept. */
  expires: keyof Retention | number | false;
}

type Unit = "month" | "day";

/** Configured ages in days from which partitions are dropped. */
interface Retention {
  /** Of generations and usage by minute. */
  readonly usage: number;
  readonly runs: number;
}

/** Days in which the outcome of an answer can be recorded; see `record_outcome.sql`. */
const OUTCOME_DAYS = 7;

/** Most days for which the text of runs is kept. */
export const MAX_TEXT_DAYS = 30;

const TABLES: readonly PartitionedTable[] = [
  { table: "generations", unit: "month", column: "created_at", expires: "usage" },
  { table: "usage", unit: "month", column: "start", ofMinutes: true, expires: "usage" },
  { table: "usage_subjects", unit: "month", column: "start", ofMinutes: true, expires: "usage" },
  { table: "ledger", unit: "month", column: "at", expires: false },
  { table: "outcomes", unit: "day", column: "created_at", expires: OUTCOME_DAYS },
  { table: "runs", unit: "day", column: "began_at", expires: "runs" },
  { table: "run_texts", unit: "day", column: "began_at", expires: MAX_TEXT_DAYS },
];

/** Age of the counters of a capped subject from which they are dropped, in days. The longest period has 31. */
const IDLE_DAYS = 40;

const DAY_MS = 86_400_000;

/** Months or days after the current one whose partitions are created in advance, before anything is written to them. */
const AHEAD = 2;

/** Time between two rounds of maintenance, and after a failed one, in milliseconds. */
const ROUND_MS = 3_600_000;
const RETRY_MS = 60_000;

/**
 * Longest wait for a lock, in milliseconds. Requests queue behind a statement that waits for a lock on a whole table,
 * so this bounds their delay. With the lock, creating or dropping an empty partition takes at most 10 ms.
 */
const LOCK_MS = 200;

/** Timeout of one change in milliseconds. It may move many rows, which does not delay requests. */
const TIMEOUT_MS = 600_000;

/** Age from which rows are no longer written, in milliseconds. */
const SETTLED_MS = 3_600_000;

/** The advisory lock under which one replica at a time changes partitions. Any number that no other lock uses. */
const PARTITIONS_LOCK = 4_207_849_485n;

export interface PartitionsOptions {
  /**
   * Age in days from which generations and usage by minute are dropped, a month at a time. The ledger is kept, outcomes
   * for seven days.
   */
  retentionDays: number;
  /** Age in days from which runs are dropped, a day at a time. */
  runDays: number;
  log: Log;
  /**
   * The time in milliseconds since 1970, for tests. Default: the earlier of the clocks of this process and the
   * database, because one that is ahead would drop rows that are not old.
   */
  clock?: () => number;
}

/**
 * Creates the partitions of the current month or day and the next two, and drops old ones: at once, and then every hour
 * until it is stopped. Safe with several replicas. A failure is logged and loses nothing: rows without a partition go
 * to the `…_rest` partition and are moved when their own is created.
 */
export async function keepPartitions(pool: Pool, options: PartitionsOptions): Promise<{ stop(): Promise<void> }> {
  const { retentionDays, runDays, log, clock } = options;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let running = round();
  await running;
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };

  async function round(): Promise<void> {
    let next = ROUND_MS;
    try {
      await arrangePartitions(pool, clock ? clock() : await earlierClock(pool), retentionDays, runDays);
    } catch (error) {
      next = RETRY_MS;
      log.warn({ cause: errorFacts(error) }, "could not maintain the partitions; trying again in a minute");
    }
    if (stopped) return;
    timer = setTimeout(() => {
      running = round();
    }, next);
  }
}

async function earlierClock(pool: Pool): Promise<number> {
  const [row] = await pool.query<{ now: Date }>("select clock_timestamp() as now");
  return Math.min(Date.now(), row?.now.getTime() ?? 0);
}

/**
 * Runs one round of `keepPartitions`.
 * @param now milliseconds since 1970
 * @throws Error when the database is unavailable, or a lock was not free within 200 ms
 */
export async function arrangePartitions(
  pool: Pool,
  now: number,
  retentionDays: number,
  runDays: number,
): Promise<void> {
  const retention: Retention = { usage: retentionDays, runs: runDays };
  for (const source of TABLES) {
    const { unit, expires } = source;
    const days = typeof expires === "string" ? retention[expires] : expires || Number.POSITIVE_INFINITY;
    const oldest = now - days * DAY_MS;
    const isOld = (start: Date) => after(unit, start, 1).getTime() <= oldest;
    const current = startOf(unit, new Date(now));
    const partitions = await partitionsOf(pool.query, source);
    for (const name of partitions) {
      if (isOld(startOfNamed(source, name))) await change(pool, (query) => query(`drop table if exists ${name}`));
    }
    for (const start of await startsInRest(pool.query, source, after(unit, current, AHEAD + 1))) {
      await change(pool, (query) =>
        isOld(start)
          ? query(`delete from ${rowsInRest(source, start, after(unit, start, 1))}`)
          : createPartition(query, source, start, now),
      );
    }
    for (let ahead = 0; ahead <= AHEAD; ahead++) {
      const start = after(unit, current, ahead);
      if (!partitions.includes(nameOf(source, start))) {
        await change(pool, (query) => createPartition(query, source, start, now));
      }
    }
  }
  await change(pool, (query) => query("delete from run_counts where day < $1", [new Date(now - DAY_MS)]));
  // Without its workspace, a text has no retention either.
  await change(pool, (query) =>
    query(
      `delete from run_texts t where not exists (
         select from workspaces w
         where w.id = t.workspace_id and t.began_at > $1::timestamptz - make_interval(hours => 24 * w.run_text_days))`,
      [new Date(now)],
    ),
  );
  // Counters that no request has touched for longer than a period are found again in the tables of usage.
  await change(pool, (query) =>
    query("delete from subject_periods where at < $1", [new Date(now - IDLE_DAYS * DAY_MS)]),
  );
  // What a request holds does not count without its grant. A settlement that nothing could record leaves its row.
  await change(pool, (query) =>
    query(
      `delete from subject_holds h where not exists (
         select from grants g where g.workspace_id = h.workspace_id and g.id = h.grant_id)`,
      [],
    ),
  );
}

/** Names of the partitions of single months or days. */
async function partitionsOf(query: Query, source: PartitionedTable): Promise<string[]> {
  const rows = await query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = $1::regclass and c.relname ~ $2`,
    [source.table, `^${prefixOf(source)}_\\d{4}(_\\d{2}){${source.unit === "month" ? 1 : 2}}$`],
  );
  return rows.map(({ name }) => name);
}

/** Months or days of the rows in the `…_rest` partition. Rows after `end` have a wrong time and stay there. */
async function startsInRest(query: Query, source: PartitionedTable, end: Date): Promise<Date[]> {
  const { column, unit } = source;
  const rows = await query<{ start: Date }>(
    `select distinct date_trunc('${unit}', ${column}, 'UTC') as start
     from ${prefixOf(source)}_rest where ${column} < $1`,
    [end],
  );
  return rows.map(({ start }) => start);
}

/**
 * Creates the partition of a month or day and moves its rows from the `…_rest` partition to it. Moves old rows before
 * it locks the table, so that requests wait only while the last rows are moved. Locks the whole table: attaching the
 * partition would fail if one of its rows were written to the `…_rest` partition in the meantime.
 */
async function createPartition(query: Query, source: PartitionedTable, start: Date, now: number): Promise<void> {
  const { table, unit, ofMinutes } = source;
  const name = nameOf(source, start);
  // Another replica may have created it since the list was read.
  if ((await partitionsOf(query, source)).includes(name)) return;
  const end = after(unit, start, 1);
  const move = (until: Date) =>
    query(
      `with moved as (delete from ${rowsInRest(source, start, until)} returning *)
       insert into ${name} select * from moved`,
    );
  await query(`create table ${name} (like ${table} including all)`);
  await move(new Date(Math.min(end.getTime(), now - SETTLED_MS)));
  await query(`lock table only ${table} in access exclusive mode`);
  await move(end);
  const [from, to] = [start, end].map((time) => `${ofMinutes ? "'minute', " : ""}'${time.toISOString()}'`);
  await query(`alter table ${table} attach partition ${name} for values from (${from}) to (${to})`);
}

function rowsInRest(source: PartitionedTable, from: Date, until: Date): string {
  const { column } = source;
  return `${prefixOf(source)}_rest where ${column} >= '${from.toISOString()}' and ${column} < '${until.toISOString()}'`;
}

/** Runs a change of partitions in a transaction; does nothing while another replica changes them. */
async function change(pool: Pool, run: (query: Query) => Promise<unknown>): Promise<void> {
  await pool.tx(
    async (query) => {
      const [lock] = await query<{ taken: boolean }>("select pg_try_advisory_xact_lock($1) as taken", [
        PARTITIONS_LOCK,
      ]);
      if (!lock?.taken) return;
      await query(`set local lock_timeout = ${LOCK_MS}`);
      await run(query);
    },
    { timeoutMs: TIMEOUT_MS },
  );
}

/** Beginning of the names of the partitions. */
function prefixOf({ table, ofMinutes }: PartitionedTable): string {
  return ofMinutes ? `${table}_minute` : table;
}

function nameOf(source: PartitionedTable, start: Date): string {
  const digits = source.unit === "month" ? "2026-11".length : "2026-11-30".length;
  return `${prefixOf(source)}_${start.toISOString().slice(0, digits).replaceAll("-", "_")}`;
}

function startOfNamed(source: PartitionedTable, name: string): Date {
  // Without a day, it is the first of the month.
  return new Date(name.slice(prefixOf(source).length + 1).replaceAll("_", "-"));
}

function startOf(unit: Unit, at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), unit === "month" ? 1 : at.getUTCDate()));
}

function after(unit: Unit, start: Date, count: number): Date {
  const [months, days] = unit === "month" ? [count, 0] : [0, count];
  return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + months, start.getUTCDate() + days));
}
