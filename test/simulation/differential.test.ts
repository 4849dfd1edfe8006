import { test } from "vitest";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Call } from "./actors.ts";
import { Differential } from "./differential.ts";
import { runSchedule } from "./schedule.ts";

/** Schedules of a run; set CHORUS_TEST_RUNS for a longer search. */
const SCHEDULES = Number(process.env.CHORUS_TEST_RUNS ?? 15);

test("the SQL functions answer as the model of the simulation does, and reach the same books", async (t) => {
  const { url } = await testDatabase(t);
  // The pool of testDatabase() would post the log of all workspaces when one is compared.
  const pool = openPool(url);
  t.onTestFinished(() => pool.end());
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const calls: Call[] = [];
    const { database } = runSchedule(seed, { calls });
    const both = new Differential(pool, `s${seed}_`);
    await both.repeat(calls);
    await both.end(database.accounts);
  }
});
