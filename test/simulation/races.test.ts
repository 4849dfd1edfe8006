import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { Differential } from "./differential.ts";
import { openGates } from "./gates.ts";
import { Races } from "./races.ts";

/** Runs of 40 pairs; set CHORUS_TEST_RUNS for a longer search. */
const RUNS = Number(process.env.CHORUS_TEST_RUNS ?? 4);
const PAIRS = 40;

/** Runs in which each defect is found, with room to spare. */
const MOST = 40;

const FUNCTIONS = join(import.meta.dirname, "../../src/store/functions");

async function setUp(t: Lifetime) {
  const { url } = await testDatabase(t);
  const pool = openPool(url);
  t.onTestFinished(() => pool.end());
  const gates = await openGates(t, url);
  return { pool, race: (seed: number) => new Races(seed, new Differential(pool, `s${seed}_`), gates).run(PAIRS) };
}

test("two statements at the same time do what they would do one after the other, in one of both orders", async (t) => {
  const { race } = await setUp(t);
  for (let seed = 1; seed <= RUNS; seed++) await race(seed);
});

const LOCK_ACCOUNT = "  perform from accounts where workspace_id = w for update;\n";
const LOCK_GRANT = "  perform from grants where workspace_id = w and replica = of_replica for update;\n";

/** A change of a function, and the error in which it shows. */
const DEFECTS: [what: string, name: string, change: (sql: string) => string, error: RegExp][] = [
  [
    "locks the grant that it ends before the account",
    "end_grants",
    (sql) => sql.replace(LOCK_GRANT, "").replace(LOCK_ACCOUNT, LOCK_GRANT + LOCK_ACCOUNT),
    /deadlock detected/,
  ],
  ["ends a grant that it has not locked", "end_grants", (sql) => sql.replace(LOCK_GRANT, ""), /No order explains/],
  [
    "appends under a grant that it has not locked",
    "append_settlement",
    (sql) => sql.replace("for key share", ""),
    /No order explains/,
  ],
  [
    "changes a grant under an account that it has not locked",
    "exchange",
    (sql) => sql.replace("order by workspace_id for update", ""),
    /No order explains|deadlock detected|duplicate key/,
  ],
];

for (const [what, name, change, error] of DEFECTS) {
  test(`finds a function that ${what}`, async (t) => {
    const { pool, race } = await setUp(t);
    const sql = await readFile(join(FUNCTIONS, `${name}.sql`), "utf8");
    assert.notEqual(change(sql), sql);
    await pool.query(change(sql));
    await assert.rejects(async () => {
      for (let seed = 1; seed <= MOST; seed++) await race(seed);
    }, error);
  });
}
