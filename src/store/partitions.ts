import { errorFacts, type Log } from "../log.ts";
import type { Pool, Query } from "./pool.ts";

/** A table that is split by month. Its parts are named `minutes_2026_11`, and what finds no part of its month is in `minutes_rest`. */
interface Split {
  table: string;
  /** What the names of the parts begin with. */
  part: string;
  /** The time by which it is split. */
  column: string;
  /** What stands before the time in the bounds of a part. */
  before: string;
  /** Whether its parts are dropped when they are old. */
  expires: boolean;
}

const SPLITS: readonly Split[] = [
  { table: "generations", part: "generations", column: "created_at", before: "", expires: true },
  { table: "usage", part: "usage_minute", column: "start", before: "'minute', ", expires: true },
  { table: "ledger", part: "ledger", column: "at", before: "", expires: false },
];

/** Months after the current one whose parts are there beforehand, so that a part is made while nothing is written to it yet. */
const MONTHS_AHEAD = 2;

/** How often parts are looked after, in milliseconds; and how soon again where that failed. */
const ROUND_MS = 3_600_000;
const RETRY_MS = 60_000;

/**
 * Longest wait for a lock, in milliseconds. Requests queue behind whoever waits for a lock on a whole table, so this bounds what they feel.
 * Making an empty part then takes 10 ms, dropping one 5 ms.
 */
const LOCK_MS = 200;

/** Patience with one change, in milliseconds: it may have to move many rows, which bothers nobody. */
const TIMEOUT_MS = 600_000;

/** Age from which rows are not written to any more, in milliseconds. */
const SETTLED_MS = 3_600_000;

/** Any number that no one else uses: one replica at a time changes parts. */
const PARTITIONS_LOCK = 4_207_849_485n;

export interface PartitionsOptions {
  /** Age in days from which generations and use by minute are dropped, a month at a time. The ledger is never dropped. */
  retentionDays: number;
  log: Log;
  /** The time in milliseconds since 1970. Default `Date.now`. */
  clock?: () => number;
}

/**
 * Keeps the parts of the current month and the next two in being, and drops those that are older than `retentionDays`: now, and then every
 * hour until it is stopped. Safe with several replicas. A failure is logged and nothing is lost by it: rows without a part wait in the
 * rest, from which they are moved when their part is made.
 */
export async function keepPartitions(pool: Pool, options: PartitionsOptions): Promise<{ stop(): Promise<void> }> {
  const { retentionDays, log, clock = Date.now } = options;
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
      await arrangePartitions(pool, clock(), retentionDays);
    } catch (error) {
      next = RETRY_MS;
      log.warn({ cause: errorFacts(error) }, "could not look after the partitions; trying again in a minute");
    }
    if (stopped) return;
    timer = setTimeout(() => {
      running = round();
    }, next);
  }
}

/**
 * One round of `keepPartitions`.
 * @param now milliseconds since 1970
 * @throws Error when the database is away, or a lock was not to be had in 200 ms.
 */
export async function arrangePartitions(pool: Pool, now: number, retentionDays: number): Promise<void> {
  const oldest = new Date(now - retentionDays * 86_400_000);
  const end = monthAfter(startOfMonth(new Date(now)), MONTHS_AHEAD + 1);
  for (const split of SPLITS) {
    const isOld = (month: Date) => split.expires && monthAfter(month, 1) <= oldest;
    const parts = await partsOf(pool.query, split);
    for (const part of parts) {
      if (isOld(monthOf(part))) await change(pool, (query) => query(`drop table if exists ${part}`));
    }
    for (const month of await monthsInRest(pool.query, split, end)) {
      await change(pool, (query) =>
        isOld(month) ? query(deletion(split, month, monthAfter(month, 1))) : makePart(query, split, month, now),
      );
    }
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) {
      const month = monthAfter(startOfMonth(new Date(now)), ahead);
      if (!parts.includes(nameOf(split, month))) await change(pool, (query) => makePart(query, split, month, now));
    }
  }
}

async function partsOf(query: Query, { table, part }: Split): Promise<string[]> {
  const rows = await query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = $1::regclass and c.relname ~ $2`,
    [table, `^${part}_\\d{4}_\\d{2}$`],
  );
  return rows.map(({ name }) => name);
}

/** Months of rows that wait in the rest. What lies after `end` comes from a clock that is wrong, and stays there. */
async function monthsInRest(query: Query, { part, column }: Split, end: Date): Promise<Date[]> {
  const rows = await query<{ month: Date }>(
    `select distinct date_trunc('month', ${column}, 'UTC') as month from ${part}_rest where ${column} < $1`,
    [end],
  );
  return rows.map(({ month }) => month);
}

/**
 * Makes the part of a month, with what waits for it in the rest. Old rows are moved before the table is locked, so that only the last ones
 * are moved while requests wait. The whole table is locked because a row that is on its way into the rest would be refused there.
 */
async function makePart(query: Query, split: Split, month: Date, now: number): Promise<void> {
  const { table, before } = split;
  const name = nameOf(split, month);
  // Another replica may have been quicker.
  if ((await partsOf(query, split)).includes(name)) return;
  const end = monthAfter(month, 1);
  const move = (until: Date) =>
    query(`with moved as (${deletion(split, month, until)} returning *) insert into ${name} select * from moved`);
  await query(`create table ${name} (like ${table} including all)`);
  await move(new Date(Math.min(end.getTime(), now - SETTLED_MS)));
  await query(`lock table only ${table} in access exclusive mode`);
  await move(end);
  const [from, to] = [month, end].map((time) => `${before}'${time.toISOString()}'`);
  await query(`alter table ${table} attach partition ${name} for values from (${from}) to (${to})`);
}

function deletion({ part, column }: Split, from: Date, until: Date): string {
  return `delete from ${part}_rest where ${column} >= '${from.toISOString()}' and ${column} < '${until.toISOString()}'`;
}

/** Runs a change of parts in a transaction, unless another replica is at it. */
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

function nameOf({ part }: Split, month: Date): string {
  return `${part}_${month.toISOString().slice(0, 7).replace("-", "_")}`;
}

function monthOf(part: string): Date {
  return new Date(`${part.slice(-7).replace("_", "-")}-01T00:00:00Z`);
}

function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth()));
}

function monthAfter(month: Date, count: number): Date {
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + count));
}
