import assert from "node:assert/strict";
import { test } from "vitest";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import { Trace } from "../../src/engine/trace.ts";
import { RunKeeper } from "../../src/runs/keeper.ts";
import type { RunFacts } from "../../src/runs/record.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 20, 12);

function factsOf(): RunFacts {
  const trace = new Trace();
  trace.add({ id: 1, kind: "answer", role: "fast" });
  trace.add({ id: 1, kind: "answer", role: "fast", outcome: "ok" });
  return { trace, reasons: ["small talk"], calls: [], count: 0, notices: [] };
}

test("keeps runs of several workspaces with one statement, at most so many of a workspace on a day", async (t) => {
  const { pool } = await testDatabase(t);
  let statements = 0;
  const counting: typeof pool.query = (text, values) => {
    statements++;
    return pool.query(text, values);
  };
  const keeper = new RunKeeper({ query: counting }, { perDay: 3 });
  const kept = async (workspace: string) => {
    const [row] = await pool.query<{ n: bigint }>("select count(*) as n from runs where workspace_id = $1", [
      workspace,
    ]);
    return Number(row?.n);
  };
  for (let i = 0; i < 5; i++) keeper.keep("ws_1", newGenerationId(NOW + i), factsOf());
  keeper.keep("ws_2", newGenerationId(NOW), factsOf());
  await keeper.flush();
  assert.deepEqual([await kept("ws_1"), await kept("ws_2"), statements], [3, 1, 1]);

  keeper.keep("ws_1", newGenerationId(NOW + 9), factsOf());
  await keeper.flush();
  assert.deepEqual([await kept("ws_1"), statements], [3, 1], "a full workspace sends nothing");
  keeper.keep("ws_1", newGenerationId(NOW + DAY), factsOf());
  await keeper.flush();
  assert.equal(await kept("ws_1"), 4, "the next day counts anew");

  const other = new RunKeeper(pool, { perDay: 3 });
  other.keep("ws_1", newGenerationId(NOW + 10), factsOf());
  await other.flush();
  assert.equal(await kept("ws_1"), 4, "replicas count together");
  assert.deepEqual(other.counts, { kept: 1, over_cap: 0, lost: 0 });
  assert.deepEqual(keeper.counts, { kept: 7, over_cap: 1, lost: 0 });
});

test("deletes runs after their retention", async (t) => {
  const { pool } = await testDatabase(t);
  await arrangePartitions(pool, NOW, 400, 30);
  const keeper = new RunKeeper(pool, { perDay: 10 });
  const id = newGenerationId(NOW);
  keeper.keep("ws_1", id, factsOf());
  await keeper.flush();
  const rows = () => pool.query("select tableoid::regclass::text as place, id from runs");
  assert.deepEqual(await rows(), [{ place: "runs_2026_11_20", id }]);
  await arrangePartitions(pool, NOW + 30 * DAY, 400, 30);
  assert.equal((await rows()).length, 1);
  await arrangePartitions(pool, NOW + 31 * DAY, 400, 30);
  assert.deepEqual(await rows(), []);
  assert.deepEqual(await pool.query("select * from run_counts"), []);
});

test("loses runs while the database is away, without an error, and bounds those that wait", async () => {
  const away = openPool("postgres://nobody@127.0.0.1:1/none");
  const keeper = new RunKeeper(away, { perDay: 10 });
  for (let i = 0; i < 9_000; i++) keeper.keep("ws_1", newGenerationId(NOW), factsOf());
  await keeper.flush();
  await away.end();
  assert.deepEqual(keeper.counts, { kept: 0, over_cap: 0, lost: 9_000 });
});
