import assert from "node:assert/strict";
import { test } from "vitest";
import { startLearning } from "../../src/learning/knowledge.ts";
import type { Member } from "../../src/models/catalogue.ts";
import { rank } from "../../src/models/order.ts";
import { openPool } from "../../src/store/pool.ts";
import { createInternalErrors } from "../../src/telemetry/internal-errors.ts";
import { testDatabase } from "../helpers/database.ts";
import { startPanel } from "../helpers/panel.ts";
import { until } from "../helpers/until.ts";
import { firstAsked, grade, graded, scriptAnthropicRight } from "./grading.ts";

test("learns the order of models from outcomes, on every replica and after a restart, and not before", async (t) => {
  const panel = await startPanel(t);
  scriptAnthropicRight(panel);
  await grade(panel);
  const few = await graded(panel);
  assert.ok(few > 0 && few < 10, `${few}`);
  const learns = { CHORUS_LEARNING: "outcomes" };
  const running = await panel.start(learns);
  assert.equal((await firstAsked(panel, running)).vendor, "openai");

  while ((await graded(panel)) < 30) await grade(panel);
  const sentence = new RegExp(`learned from ${await graded(panel)} graded disagreements`);
  const other = await panel.start(learns);
  // The running replica reads the sums without a restart.
  await until(async () => sentence.test((await firstAsked(panel, running)).trace));
  for (const on of [running, other]) {
    const { vendor, trace } = await firstAsked(panel, on);
    assert.equal(vendor, "anthropic");
    assert.match(trace, sentence);
  }
  const off = await firstAsked(panel);
  assert.equal(off.vendor, "openai");
  assert.doesNotMatch(off.trace, /learned/);
  const rows = await panel.pool.query<{ row: string }>("select d::text as row from model_duels d");
  for (const { row } of rows) assert.doesNotMatch(row, /paris|lyon|capital/i);
});

const member = (name: string, tier: Member["tier"], fingerprint = `f-${name}`) =>
  ({ name, tier, fingerprint, vendor: name, images: false, model: undefined as never }) satisfies Member;

test("keeps the order of tiers until the wins prove another one, and forgets a changed entry", async (t) => {
  const { pool } = await testDatabase(t);
  // The fast one is first in the catalogue; its tier puts it behind.
  let models = [member("quick", "fast"), member("slow", "strong"), member("spare", "strong")];
  const errors = createInternalErrors();
  const learning = startLearning(pool, () => models, { errors, readMs: 5 });
  t.onTestFinished(() => learning.stop());
  const set = async (wins: number, losses: number) => {
    await pool.query(
      `insert into model_duels values ('quick', 'f-quick', 'slow', 'f-slow', 'maths', $1, $2)
       on conflict (one, one_fingerprint, other, other_fingerprint, ability) do update set wins = $1, losses = $2`,
      [wins, losses],
    );
    await learning.refresh();
  };
  const order = () => rank(models, "maths", learning.knowledge).members.map(({ name }) => name);
  await set(9, 0);
  assert.equal(learning.knowledge("quick", "maths"), undefined);
  // z = 7 / √21 = 1.5 and 12 / √24 = 2.4.
  await set(14, 7);
  assert.match(learning.knowledge("quick", "maths")?.sentence ?? "", /^learned from 21 graded disagreements$/);
  assert.ok(order().indexOf("slow") < order().indexOf("quick"), order().join());
  const before = rank(models, "maths", learning.knowledge);
  assert.equal(rank(models, "maths", learning.knowledge), before, "ranked once until more is learned");
  await set(18, 6);
  assert.ok(order().indexOf("quick") < order().indexOf("slow"), order().join());
  assert.equal(learning.knowledge("quick", "code"), undefined);

  models = [member("quick", "fast", "new"), ...models.slice(1)];
  await until(() => learning.knowledge("quick", "maths") === undefined);
  assert.deepEqual(errors.counts.learning, 0);
});

test("keeps what was learned while the database fails, and counts the errors", async (t) => {
  const { url, pool: own } = await testDatabase(t);
  await own.query("insert into model_duels values ('a', 'f-a', 'b', 'f-b', 'prose', 0, 30)");
  const pool = openPool(url, { max: 1 });
  const errors = createInternalErrors();
  const learning = startLearning(pool, () => [member("a", "fast"), member("b", "fast")], { errors, readMs: 60_000 });
  await learning.refresh();
  const before = learning.knowledge("b", "prose");
  assert.ok(before && before.accuracy > 0.5);
  await pool.end();
  await learning.refresh();
  assert.equal(errors.counts.learning, 1);
  assert.equal(learning.knowledge("b", "prose"), before);
  await learning.stop();
});
