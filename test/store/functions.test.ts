import assert from "node:assert/strict";
import { test } from "vitest";
import { NOTHING } from "../../src/admission/escrow/exchange.ts";
import { CAP_CALL_BACK } from "../../src/admission/grants.ts";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import { listen } from "../helpers/grants.ts";
import { until } from "../helpers/until.ts";
import { cap, check, holdOf, share } from "./cap-helpers.ts";
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

test("calls headroom of each subject back once that would let a request pass, also without a low effort", async (t) => {
  const { url, pool } = await testDatabase(t);
  const { query } = pool;
  const messages: string[] = [];
  const stop = await listen(url, (payload) => messages.push(payload), CAP_CALL_BACK);
  t.onTestFinished(stop);
  for (const [subject, action] of [
    ["user:u", "refuse"],
    ["user:low", "low"],
    ["user:empty", "refuse"],
  ] as const) {
    for (const period of ["day", "week"]) await cap(query, subject, "credits", period, 100, { action });
    await share(query, subject, 7, { credit: 60, isIdle: subject !== "user:empty" });
  }
  await holdOf(query, "q", "user:u", 0, 30);
  await holdOf(query, "q", "user:empty", 0, 30);
  const called: string[][] = [];
  for (const hold of [10, 69, 70, 71]) {
    await check(query, ["user:u", "user:low", "user:empty"], hold, 1);
    await query("select pg_notify($1, 'end')", [CAP_CALL_BACK]);
    await until(() => messages.includes("end"));
    called.push(messages.splice(0).sort());
  }
  assert.deepEqual(called, [
    ["end"],
    ["end", "w user:low", "w user:u"],
    ["end", "w user:low", "w user:u"],
    ["end", "w user:low"],
  ]);
});
