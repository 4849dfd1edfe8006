import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "vitest";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import { Trace } from "../../src/engine/trace.ts";
import { RunKeeper } from "../../src/runs/keeper.ts";
import type { RunFacts } from "../../src/runs/record.ts";
import { writeText } from "../../src/runs/text.ts";
import { TextKeys } from "../../src/runs/text-keys.ts";
import { createTextStore, type WaitingText } from "../../src/runs/text-store.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import { openPool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import { until } from "../helpers/until.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 20, 12);

const NO_TEXTS = { text_kept: 0, text_over_cap: 0, text_lost: 0 };

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
  assert.deepEqual(other.counts, { ...NO_TEXTS, kept: 1, over_cap: 0, lost: 0 });
  assert.deepEqual(keeper.counts, { ...NO_TEXTS, kept: 7, over_cap: 1, lost: 0 });
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
  assert.deepEqual(keeper.counts, { ...NO_TEXTS, kept: 0, over_cap: 0, lost: 9_000 });
});

test("sends few bytes of text at once, and loses texts but no runs when too many wait", async (t) => {
  const { pool } = await testDatabase(t);
  const sizes: number[] = [];
  const write = async (texts: readonly WaitingText[]) => {
    sizes.push(texts.reduce((sum, { text }) => sum + text.length, 0));
    return texts.length - 1;
  };
  const keeper = new RunKeeper(pool, { perDay: 1_000, storeTexts: write });
  assert.equal(keeper.keepsText, true);
  const text = new Uint8Array(1_000_000);
  for (let i = 0; i < 40; i++) keeper.keep("ws_1", newGenerationId(NOW + i), factsOf(), { keyId: "key_1", text });
  await keeper.flush();
  assert.deepEqual(
    sizes,
    Array.from({ length: 8 }, () => 4_000_000),
  );
  assert.deepEqual(keeper.counts, { kept: 40, over_cap: 0, lost: 0, text_kept: 24, text_over_cap: 8, text_lost: 8 });
  keeper.keep("ws_1", newGenerationId(NOW + 50), factsOf(), { keyId: "key_1", text });
  await keeper.flush();
  assert.equal(keeper.counts.text_kept, 24, "there is room again");

  const failing = new RunKeeper(pool, { perDay: 1_000, storeTexts: () => Promise.reject(new Error("away")) });
  failing.keep("ws_1", newGenerationId(NOW + 60), factsOf(), { keyId: "key_1", text });
  await failing.flush();
  assert.deepEqual([failing.counts.kept, failing.counts.text_lost], [1, 1]);
});

test("keeps text of a workspace up to so many bytes on a day, and none where it may not be kept now", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name, run_text_days) values ('ws_1', 'one', 1), ('ws_2', 'two', null)");
  const texts = new TextKeys([randomBytes(32)]);
  const text = writeText({
    conversation: {
      system: [],
      messages: [{ role: "user", text: randomBytes(600).toString("hex") }],
      continues: false,
    },
    ...{ files: [], drafts: [], answer: "", calls: [] },
  });
  const store = createTextStore(pool, texts, 2_000);
  const at = (workspaceId: string, ms: number) => ({
    workspaceId,
    id: newGenerationId(NOW + ms),
    keyId: "key_1",
    text,
  });
  assert.equal(await store([at("ws_1", 1), at("ws_1", 2), at("ws_1", 3), at("ws_1", 4)]), 2);
  assert.equal(await store([at("ws_1", 5)]), 0);
  assert.equal(await store([at("ws_1", DAY), at("ws_2", 1)]), 1, "the next day counts anew");
});

test("keeps no text beside a change that ends it and deletes all", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name, run_text_days) values ('ws_1', 'one', 1)");
  const store = createTextStore(pool, new TextKeys([randomBytes(32)]), 1_000_000);
  const text = new Uint8Array(10);
  const writing = await pool.tx(async (query) => {
    await query("update workspaces set run_text_days = null where id = 'ws_1'");
    await query("delete from run_texts where workspace_id = 'ws_1'");
    const write = store([{ workspaceId: "ws_1", id: newGenerationId(), keyId: "key_1", text }]);
    await until(async () => {
      const waiting = await pool.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%keep_run_texts%'`,
      );
      return waiting.length > 0;
    });
    return { write };
  });
  assert.equal(await writing.write, 0);
  assert.deepEqual(await pool.query("select from run_texts"), []);
});
