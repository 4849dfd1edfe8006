import assert from "node:assert/strict";
import { test } from "vitest";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import { listen } from "../helpers/grants.ts";
import { until } from "../helpers/until.ts";
import { askOf, done, itemIn, openAccount } from "./case-helpers.ts";
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

test("calls headroom back once for the asks of an item that it would let pass, and for no other", async (t) => {
  const { url, pool } = await testDatabase(t);
  const { query } = pool;
  const messages: string[] = [];
  const stop = await listen(url, (workspace) => messages.push(workspace));
  t.onTestFinished(stop);
  await openAccount(query, "w", { granted: 100 });
  await done(query, "s", itemIn("w", { keep: { ...NOTHING, credit: 60 } }));
  for (const holds of [[40], [200], [50, 200], [50, 50]]) {
    const asks = holds.map((hold, i) => askOf(`${holds} ${i}`, hold));
    await done(query, "r", itemIn("w", { asks }));
    await query("select pg_notify('chorus_call_back', $1)", [`after ${holds}`]);
    await until(() => messages.includes(`after ${holds}`));
  }
  assert.deepEqual(messages, ["after 40", "after 200", "w", "after 50,200", "w", "after 50,50"]);
});
