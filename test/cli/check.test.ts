import assert from "node:assert/strict";
import { test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { startService } from "../helpers/service.ts";

test("chorus check prints inconsistencies and exits with code 1", async (t) => {
  const { pool, url } = await testDatabase(t);
  const service = await startService(t, { databaseUrl: url });
  const env = { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken };
  const check = (...args: string[]) => runCli(args, env);
  for (const args of [["check"], ["check", "default"]]) {
    const agree = { code: 0, stdout: "Ledger, balances, holds and usage agree.\n", stderr: "" };
    assert.deepEqual(await check(...args), agree);
  }
  assert.deepEqual(JSON.parse((await check("--json", "check")).stdout), { differences: [], set_aside: [] });

  await pool.query("update accounts set granted_micro = granted_micro + 500000");
  const table = await check("check");
  assert.equal(table.code, 1);
  assert.match(
    table.stdout,
    /^WORKSPACE +CHECK +SUBJECT +EXPECTED +FOUND\ndefault +granted = ledger +- +1001000 +1001000\.5\n$/,
  );
  assert.match(table.stderr, /^chorus: Differences found: 1\. .*report it\.\n$/);
  const document = await check("--json", "check", "default");
  assert.equal(document.code, 1);
  assert.deepEqual(JSON.parse(document.stdout).differences, [
    { check: "granted = ledger", workspace: "default", subject: "", expected: "1001000", found: "1001000.5" },
  ]);
  assert.match((await check("check", "nobody")).stderr, /^chorus: There is no workspace "nobody"/);
});
