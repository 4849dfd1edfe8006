import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { openPool, type Pool, type Query } from "../../src/store/pool.ts";
import type { Lifetime } from "../../test/helpers/lifetime.ts";
import type { Account } from "../../test/simulation/account.ts";
import type { Call } from "../../test/simulation/actors.ts";
import { Differential } from "../../test/simulation/differential.ts";
import { type Gates, openGates } from "../../test/simulation/gates.ts";
import { Races } from "../../test/simulation/races.ts";
import { runSchedule } from "../../test/simulation/schedule.ts";
import { checkDefect, keepBooks } from "../../test/store/book-defects.ts";
import { CASES } from "../../test/store/function-cases.ts";
import { LEDGER_DEFECTS } from "../../test/store/ledger-defects.ts";
import { RESERVED_DEFECTS } from "../../test/store/reserved-defects.ts";
import { SUBJECT_DEFECTS } from "../../test/store/subject-defects.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** Seeds of the schedules that a mutant has to survive. Those after the third have many caps, also late charges. */
const SCHEDULES = [1, 2, 3, 55, 40, 21];
/** Runs of pairs of statements at the same time, and their pairs. Pairs have no subjects. */
const RACES = 2;
const PAIRS = 40;

/** Test files, those that kill most in least time first. */
const FILES = [
  ...["store/functions", "store/check-books", "admission/settle", "admission/lease", "admission/lease-idempotency"],
  ...["admission/clock", "admission/epochs", "admission/poster", "admin/credits", "admission/grants"],
  ...["admission/caps", "admission/reference-model"],
].map((name) => `test/${name}.test.ts`);

/** Longest run of the test files, in milliseconds. */
const FILES_MS = 240_000;

/** Why a mutant is dead. */
export interface Death {
  killer: string;
  reason: string;
  /** It never was a program: Postgres finds an error in its text or its types. */
  isInvalid: boolean;
}

type Run = (query: Query) => Promise<void>;

/** Runs the killers in one database, where functions are replaced. */
export class Killers {
  readonly #pool: Pool;
  /** On a database of its own, whose tables stay empty. */
  readonly #empty: Pool;
  readonly #gates: Gates;
  readonly #cases: Run[] = Object.values(CASES);
  readonly #defects: Run[] = [...LEDGER_DEFECTS, ...RESERVED_DEFECTS, ...SUBJECT_DEFECTS].map(
    (defect) => (query) => checkDefect(query, defect),
  );
  readonly #schedules: readonly { calls: Call[]; accounts: ReadonlyMap<string, Account> }[];
  #runs = 0;
  #isModelFirst = false;

  private constructor(pool: Pool, empty: Pool, gates: Gates) {
    this.#pool = pool;
    this.#empty = empty;
    this.#gates = gates;
    this.#schedules = SCHEDULES.map((seed) => {
      const calls: Call[] = [];
      const { database } = runSchedule(seed, { calls });
      return { calls, accounts: database.accounts };
    });
  }

  /** @param urls of two databases of its own */
  static async open(t: Lifetime, urls: readonly [string, string]): Promise<Killers> {
    const pools: Pool[] = [];
    for (const url of urls) {
      const pool = openPool(url, { max: 1 });
      t.onTestFinished(() => pool.end());
      // An endless loop ends.
      await pool.query(`alter database ${new URL(url).pathname.slice(1)} set statement_timeout = '5s'`);
      pools.push(pool);
    }
    const [pool, empty] = pools as [Pool, Pool];
    await keepBooks(pool.query);
    return new Killers(pool, empty, await openGates(t, urls[0]));
  }

  /** Replaces a function. @returns why it cannot be */
  async replace(sql: string): Promise<Death | undefined> {
    return deathBy("create", async () => {
      for (const pool of [this.#pool, this.#empty]) await pool.query(sql);
    });
  }

  /** The defects that `check_books` has to find. */
  checkBooks(): Promise<Death | undefined> {
    return this.#undone("books", this.#pool, this.#defects);
  }

  /** The cases and the model, first what has killed the last mutant. */
  async run({ hasRaces = true } = {}): Promise<Death | undefined> {
    const runs = [() => this.#checkCases(), () => this.#simulate(hasRaces)];
    for (const run of this.#isModelFirst ? runs.reverse() : runs) {
      const death = await run();
      if (death) this.#isModelFirst = death.killer !== "cases";
      if (death) return death;
    }
    return undefined;
  }

  /** The cases of each function. */
  #checkCases(): Promise<Death | undefined> {
    return this.#undone("cases", this.#empty, this.#cases);
  }

  async #undone(killer: string, pool: Pool, runs: Run[]): Promise<Death | undefined> {
    const undo = new Error("undone");
    for (const run of [...runs]) {
      const death = await deathBy(killer, () =>
        pool
          .tx(async (query) => {
            await run(query);
            throw undo;
          })
          .catch((error: unknown) => {
            if (error !== undo) throw error;
          }),
      );
      if (!death) continue;
      // What kills one mutant often kills the next one.
      runs.unshift(...runs.splice(runs.indexOf(run), 1));
      return death;
    }
    return undefined;
  }

  /** The model of the simulation: schedules one after the other, and pairs at the same time. */
  async #simulate(hasRaces: boolean): Promise<Death | undefined> {
    const run = ++this.#runs;
    for (const [i, { calls, accounts }] of this.#schedules.entries()) {
      const both = new Differential(this.#pool, `m${run}_s${i}_`);
      const death = await deathBy("schedules", async () => {
        await both.repeat(calls);
        await both.end(accounts);
      });
      if (death) return death;
    }
    for (let seed = 1; hasRaces && seed <= RACES; seed++) {
      const both = new Differential(this.#pool, `m${run}_r${seed}_`);
      const death = await deathBy("races", () => new Races(seed, both, this.#gates).run(PAIRS));
      if (death) return death;
    }
    return undefined;
  }
}

async function deathBy(killer: string, run: () => Promise<unknown>): Promise<Death | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    const cause = (error as Error).cause ?? error;
    const code = String((cause as { code?: unknown }).code ?? "");
    const [reason = ""] = String(error).split("\n");
    return { killer, reason, isInvalid: /^42/.test(code) };
  }
}

/**
 * Runs test files against a mutant.
 * @param url of the Postgres
 * @param mutant path of a file with the function
 */
export async function runFiles(
  url: string,
  mutant: string,
  files: readonly string[] = FILES,
): Promise<Death | undefined> {
  const parameters = [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--project",
    "integration",
    "--bail",
    "1",
    "--reporter",
    "json",
    ...files,
  ];
  const env = { ...process.env, TEST_DATABASE_URL: url, CHORUS_TEST_MUTANT: mutant };
  try {
    await promisify(execFile)(process.execPath, parameters, { cwd: ROOT, env, timeout: FILES_MS, maxBuffer: 2 ** 27 });
    return undefined;
  } catch (error) {
    const { stdout = "", killed } = error as { stdout?: string; killed?: boolean };
    const failed = /"status":"failed","title":"([^"]*)"/.exec(stdout)?.[1];
    return { killer: "tests", reason: failed ?? (killed ? "no end" : "the run failed"), isInvalid: false };
  }
}
