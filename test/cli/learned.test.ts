import assert from "node:assert/strict";
import { test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { startPanel } from "../helpers/panel.ts";
import { until } from "../helpers/until.ts";
import { firstAsked, grade, graded, scriptAnthropicRight } from "../learning/grading.ts";

test("lists what has been learned of the models, and forgets it", async (t) => {
  const panel = await startPanel(t, { CHORUS_LEARNING: "outcomes" });
  const { service } = panel;
  const env = { DATA_DIR: service.dataDir };
  const chorus = async (...args: string[]) => (await runCli(args, env)).stdout;
  assert.equal(await chorus("models", "--learned"), "No disagreement of models is graded yet.\n");

  scriptAnthropicRight(panel);
  await grade(panel);
  // Counts once the versions that the vendors serve are noted, which no answer waits for.
  let few = "";
  await until(async () => {
    few = await chorus("models", "--learned");
    return few.includes("knowledge");
  });
  assert.match(few, /^ABILITY +MODEL +ACCURACY +95 % INTERVAL +WINS +LOSSES +STATE$/m);
  assert.match(few, /^knowledge +member-anthropic-fast +50 % .*too few$/m);
  await panel.pool.query("update model_duels set wins = wins * 20, losses = losses * 20");
  const other = await panel.start();
  const listed = (await runCli(["models", "--learned"], { DATA_DIR: other.dataDir })).stdout;
  const n = await graded(panel);
  const [, accuracy, low, high] =
    /^knowledge +member-anthropic-fast +([\d.]+) % +([\d.]+) to ([\d.]+) % +\d+ +0 +order held$/m.exec(listed) ?? [];
  assert.ok(Number(low) < Number(accuracy) && Number(accuracy) < Number(high), listed);
  assert.ok(Number(accuracy) > 60, listed);
  const { on, abilities } = JSON.parse(await chorus("models", "--learned", "--json"));
  assert.equal(on, true);
  assert.deepEqual([abilities.length, abilities[0].ability, Number(abilities[0].graded)], [1, "knowledge", n]);
  const fast = abilities[0].models.filter(({ name }: { name: string }) => name.endsWith("-fast"));
  assert.equal(fast[0].name, "member-anthropic-fast");
  assert.equal((await firstAsked(panel, other)).vendor, "anthropic");

  const wrong = await runCli(["models", "reset-learned", "--ability", "luck"], env);
  assert.match(wrong.stderr, /ability must be one of knowledge, maths/);
  assert.match((await runCli(["models", "reset-learned", "--model", "nobody"], env)).stderr, /no model with this name/);
  assert.match(await chorus("models", "reset-learned", "--ability", "maths"), /forgot 0 /);
  const again = await runCli(["models", "reset-learned", "--model", "member-anthropic-fast"], {
    DATA_DIR: other.dataDir,
  });
  assert.equal(again.stdout, `forgot ${n} graded disagreements\n`);
  assert.equal((await firstAsked(panel, other)).vendor, "openai");
  assert.match(await chorus("audit"), /models\.reset_learned/);

  // An outcome that is replaced after that takes nothing back.
  const [row] = await panel.pool.query<{ id: string }>("select id from outcomes where score is not null");
  const corrected = await service.post(`/v1/generations/${row?.id}/outcome`, { expected: "a" });
  assert.equal(corrected.status, 200);
  const [least] = await panel.pool.query<{ least: bigint }>(
    "select min(least(wins, losses)) as least from model_duels",
  );
  assert.equal(least?.least, 0n);
});

test("says that what was learned is not used where the catalogue states the accuracy of every model", async (t) => {
  const stated = { accuracy: { knowledge: 0.7 } };
  const env = { CHORUS_LEARNING: "outcomes" };
  const panel = await startPanel(t, env, { openai: stated, anthropic: stated, google: stated });
  const { service, pool } = panel;
  scriptAnthropicRight(panel);
  await grade(panel);
  await until(async () => (await pool.query("select from served_versions")).length >= 3);
  await pool.query("update model_duels set wins = wins * 20, losses = losses * 20");
  await pool.query(
    `insert into model_duels
       select one, one_fingerprint, other, other_fingerprint, 'maths', wins, losses from model_duels`,
  );
  const listed = async (...args: string[]) =>
    (await runCli(["models", "--learned", ...args], { DATA_DIR: service.dataDir })).stdout;
  assert.match(await listed(), /^knowledge +member-anthropic-fast .* not used$/m);
  assert.match(await listed(), /^maths +member-anthropic-fast .* (learned|order held)$/m);
  const { abilities } = JSON.parse(await listed("--json"));
  assert.deepEqual(
    abilities.map(({ ability, stated }: { ability: string; stated: boolean }) => [ability, stated]),
    [
      ["knowledge", true],
      ["maths", false],
    ],
  );
  const { trace } = await firstAsked(panel);
  assert.match(trace, /stated in the catalogue/);
});
