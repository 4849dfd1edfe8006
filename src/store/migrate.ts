import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isUnavailable, type Pool } from "./pool.ts";

const FOLDER = join(import.meta.dirname, "migrations");

/** First line of a migration after which programs that do not know it must not run. */
const BREAKING = "--! breaking-change";

/** Any number that no one else uses: the one advisory lock under which the schema, and then the first rows, are made. */
export const SETUP_LOCK = 4_207_849_484n;

/** Patience with one migration, in milliseconds; also with other replicas that migrate at the same time. */
const TIMEOUT_MS = 600_000;

/**
 * Brings the database to the newest schema: applies the files `migrations/000001.sql`, … that it has not seen, in order, each in a
 * transaction of its own. Safe when several replicas start at once: one applies, the others wait for it.
 * @throws Error when the database cannot be reached, or has seen a breaking migration that this program does not know: then the program
 * is older than the schema.
 */
export async function migrate(pool: Pool, folder: string = FOLDER): Promise<void> {
  const files = readdirSync(folder)
    .filter((name) => /^\d{6}\.sql$/.test(name))
    .sort();
  const newest = files.length === 0 ? 0 : number(files.at(-1) ?? "");
  await prepare(pool);
  const [row] = await pool.query<{ id: number | null }>("select max(id) as id from chorus_migrations where breaking");
  if (row?.id && row.id > newest) {
    throw new Error(
      `The database was brought to schema ${row.id}, and this version of Chorus knows schemas up to ${newest}. Run a newer version.`,
    );
  }
  for (const file of files) await apply(pool, number(file), readFileSync(join(folder, file), "utf8"));
}

async function prepare(pool: Pool): Promise<void> {
  try {
    await pool.tx(
      async (query) => {
        await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
        await query(`create table if not exists chorus_migrations (
          id integer primary key, breaking boolean not null, applied_at timestamptz not null default now())`);
      },
      { timeoutMs: TIMEOUT_MS },
    );
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    throw new Error(
      `The database cannot be reached: ${message || code}. Check DATABASE_URL, and that the server runs.`,
      {
        cause: error,
      },
    );
  }
}

async function apply(pool: Pool, id: number, sql: string): Promise<void> {
  await pool.tx(
    async (query) => {
      await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
      const seen = await query("select from chorus_migrations where id = $1", [id]);
      if (seen.length > 0) return;
      await query(sql);
      await query("insert into chorus_migrations (id, breaking) values ($1, $2)", [id, sql.startsWith(BREAKING)]);
    },
    { timeoutMs: TIMEOUT_MS },
  );
}

function number(file: string): number {
  return Number(file.slice(0, 6));
}
