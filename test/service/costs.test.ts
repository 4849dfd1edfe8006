import assert from "node:assert/strict";
import { test } from "vitest";
import { createCosts } from "../../src/service/costs.ts";
import type { ModelCall } from "../../src/telemetry.ts";

const CALL: ModelCall = {
  model: "a",
  tier: "fast",
  outcome: "ok",
  source: "reported",
  inputTokens: 10,
  cachedTokens: 0,
  outputTokens: 5,
  usd: 0.5,
};

test("each generation has a sum of its own, while it runs", async () => {
  const costs = createCosts();
  const first = costs.begin("gen_1");
  using second = costs.begin("gen_2");
  costs.add(CALL, "gen_1");
  costs.add({ ...CALL, model: "b", outcome: "left", source: "estimated", usd: undefined }, "gen_1");
  costs.add({ ...CALL, inputTokens: 1 }, "gen_1");
  costs.add(CALL, "gen_3");
  costs.add(CALL, undefined);
  assert.deepEqual(await first.sum(), { calls: 3, inputTokens: 21, outputTokens: 15, usd: 1, models: 2 });
  assert.deepEqual(await second.sum(), { calls: 0, inputTokens: 0, outputTokens: 0, usd: undefined, models: 0 });
  first[Symbol.dispose]();
  costs.add(CALL, "gen_1");
  using again = costs.begin("gen_1");
  assert.equal((await again.sum()).calls, 0);
});

test("a call that is given up just now is in the sum", async () => {
  const costs = createCosts();
  using cost = costs.begin("gen_1");
  const sum = cost.sum();
  process.nextTick(() => Promise.resolve().then(() => costs.add(CALL, "gen_1")));
  assert.equal((await sum).calls, 1);
});
