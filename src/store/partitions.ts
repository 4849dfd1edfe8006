import { errorFacts, type Log } from "../telemetry/log.ts";
import type { Pool, Query } from "./pool.ts";

/**
 * A table that is partitioned by month. The partition of a month is named `generations_2026_11`, and `generations_rest`
 * holds the rows whose month has no partition.
 */
interface PartitionedTable {
  table: string;
  /** Beginning of the names of the partitions. */
  prefix: string;
  /** The column with the time. */
  column: string;
  /** The values of the columns before the time in the bounds of a partition, as SQL. */
  boundPrefix: string;
  /** Whether old partitions are dropped. */
  expires: boolean;
}

const TABLES: readonly PartitionedTable[] = [
  { table: "generations", prefix: "generations", column: "created_at", boundPrefix: "", expires: true },
  { table: "usage", prefix: "usage_minute", column: "start", boundPrefix: "'minute', ", expires: true },
  { table: "ledger", prefix: "ledger", column: "at", boundPrefix: "", expires: false },
];

/** Months after the current one whose partitions are created in advance, before anything is written to them. */
const MONTHS_AHEAD = 2;

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
  /** Age in days from which generations and usage by minute are dropped, a month at a time. The ledger is kept. */
  retentionDays: number;
  log: Log;
  /**
   * The time in milliseconds since 1970, for tests. Default: the earlier of the clocks of this process and the
   * database, because one that is ahead would drop rows that are not old.
   */
  clock?: () => number;
}

/**
 * Creates the partitions of the current month and the next two, and drops those older than `retentionDays`: at once,
 * and then every hour until it is stopped. Safe with several replicas. A failure is logged and loses nothing: rows
 * without a partition go to the `…_rest` partition and are moved when their own is created.
 */
export async function keepPartitions(pool: Pool, options: PartitionsOptions): Promise<{ stop(): Promise<void> }> {
  const { retentionDays, log, clock } = options;
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
      await arrangePartitions(pool, clock ? clock() : await earlierClock(pool), retentionDays);
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
export async function arrangePartitions(pool: Pool, now: number, retentionDays: number): Promise<void> {
  const oldest = new Date(now - retentionDays * 86_400_000);
  const end = monthAfter(startOfMonth(new Date(now)), MONTHS_AHEAD + 1);
  for (const source of TABLES) {
    const isOld = (month: Date) => source.expires && monthAfter(month, 1) <= oldest;
    const partitions = await partitionsOf(pool.query, source);
    for (const name of partitions) {
      if (isOld(monthOf(name))) await change(pool, (query) => query(`drop table if exists ${name}`));
    }
    for (const month of await monthsInRest(pool.query, source, end)) {
      await change(pool, (query) =>
        isOld(month)
          ? query(`delete from ${rowsInRest(source, month, monthAfter(month, 1))}`)
          : createPartition(query, source, month, now),
      );
    }
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) {
      const month = monthAfter(startOfMonth(new Date(now)), ahead);
      if (!partitions.includes(nameOf(source, month))) {
        await change(pool, (query) => createPartition(query, source, month, now));
      }
    }
  }
}

/** Names of the partitions of single months. */
async function partitionsOf(query: Query, { table, prefix }: PartitionedTable): Promise<string[]> {
  const rows = await query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = $1::regclass and c.relname ~ $2`,
    [table, `^${prefix}_\\d{4}_\\d{2}$`],
  );
  return rows.map(({ name }) => name);
}

/** Months of the rows in the `…_rest` partition. Rows after `end` were written with a wrong clock and stay there. */
async function monthsInRest(query: Query, { prefix, column }: PartitionedTable, end: Date): Promise<Date[]> {
  const rows = await query<{ month: Date }>(
    `select distinct date_trunc('month', ${column}, 'UTC') as month from ${prefix}_rest where ${column} < $1`,
    [end],
  );
  return rows.map(({ month }) => month);
}

/**
 * Creates the partition of a month and moves the month's rows from the `…_rest` partition to it. Moves old rows
 * before it locks the table, so that requests wait only while the last rows are moved. Locks the whole table, because
 * attaching the partition would fail if a row of the month were written to the `…_rest` partition in the meantime.
 */
async function createPartition(query: Query, source: PartitionedTable, month: Date, now: number): Promise<void> {
  const { table, boundPrefix } = source;
  const name = nameOf(source, month);
  // Another replica may have created it since the list was read.
  if ((await partitionsOf(query, source)).includes(name)) return;
  const end = monthAfter(month, 1);
  const move = (until: Date) =>
    query(
      `with moved as (delete from ${rowsInRest(source, month, until)} returning *)
       insert into ${name} select * from moved`,
    );
  await query(`create table ${name} (like ${table} including all)`);
  await move(new Date(Math.min(end.getTime(), now - SETTLED_MS)));
  await query(`lock table only ${table} in access exclusive mode`);
  await move(end);
  const [from, to] = [month, end].map((time) => `${boundPrefix}'${time.toISOString()}'`);
  await query(`alter table ${table} attach partition ${name} for values from (${from}) to (${to})`);
}

/** SQL of the rows of a period in the `…_rest` partition. */
function rowsInRest({ prefix, column }: PartitionedTable, from: Date, until: Date): string {
  return `${prefix}_rest where ${column} >= '${from.toISOString()}' and ${column} < '${until.toISOString()}'`;
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

function nameOf({ prefix }: PartitionedTable, month: Date): string {
  return `${prefix}_${month.toISOString().slice(0, 7).replace("-", "_")}`;
}

function monthOf(name: string): Date {
  return new Date(`${name.slice(-7).replace("_", "-")}-01T00:00:00Z`);
}

function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth()));
}

function monthAfter(month: Date, count: number): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + count));
}
