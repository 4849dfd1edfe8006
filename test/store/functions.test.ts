import { test } from "vitest";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import { CASES } from "./function-cases.ts";

for (const [what, run] of Object.entries(CASES)) {
  test(what, async (t) => {
    const { url } = await testDatabase(t);
    const pool = openPool(url, { max: 1 });
    t.onTestFinished(() => pool.end());
    const undo = new Error("undone");
    await pool
      .tx(async (query) => {
        await run(query);
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
  });
}
