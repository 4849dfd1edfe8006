import assert from "node:assert/strict";
import { test } from "vitest";
import { abortedCalls, Cost } from "../../src/generate/costs.ts";
import type { CallReport } from "../../src/models/port/model.ts";

const CALL: CallReport = {
  model: "a",
  vendor: "openai",
  tier: "fast",
  startedAt: 0,
  durationMs: 1,
  outcome: "ok",
  source: "reported",
  inputTokens: 10,
  cachedTokens: 0,
  outputTokens: 5,
  thinkingTokens: 0,
  usd: 0.5,
};

test("adds up calls, tokens, cost and the models that were called", () => {
  const cost = new Cost();
  assert.deepEqual(cost.sum(), { calls: 0, inputTokens: 0, outputTokens: 0, usd: undefined, models: 0 });
  cost.add(CALL);
  cost.add({ ...CALL, model: "b", outcome: "left", source: "estimated", usd: undefined });
  cost.add({ ...CALL, inputTokens: 1 });
  assert.deepEqual(cost.sum(), { calls: 3, inputTokens: 21, outputTokens: 15, usd: 1, models: 2 });
});

test("includes a call that is aborted in the same turn of the event loop", async () => {
  const cost = new Cost();
  const reported = abortedCalls();
  process.nextTick(() => Promise.resolve().then(() => cost.add(CALL)));
  await reported;
  assert.equal(cost.sum().calls, 1);
});
