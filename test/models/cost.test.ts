import assert from "node:assert/strict";
import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { test } from "vitest";
import type { ModelEntry } from "../../src/config/config.ts";
import { modelCall } from "../../src/models/cost.ts";
import { call } from "./fake-model.ts";

const ENTRY: ModelEntry = {
  name: "large",
  vendor: "openai",
  model: "x",
  tier: "strong",
  images: false,
  jsonSchema: true,
  price: { input: 2, output: 10, cached: 0.5 },
};

function usage(total: unknown, cacheRead: unknown, output: unknown): LanguageModelV4Usage {
  return {
    inputTokens: { total, noCache: 0, cacheRead, cacheWrite: 0 },
    outputTokens: { total: output, text: 0, reasoning: 0 },
  } as LanguageModelV4Usage;
}

test("the vendor's own figures are priced by the catalogue, the cached part at its own rate", () => {
  assert.deepEqual(modelCall(ENTRY, { call: call(), outcome: "ok", usage: usage(1_000, 400, 200), received: 0 }), {
    model: "large",
    tier: "strong",
    outcome: "ok",
    source: "reported",
    inputTokens: 1_000,
    cachedTokens: 400,
    outputTokens: 200,
    usd: (600 * 2 + 400 * 0.5 + 200 * 10) / 1e6,
  });
  const { price: _, ...free } = ENTRY;
  assert.equal(modelCall(free, { call: call(), outcome: "ok", usage: usage(1, 0, 1), received: 0 }).usd, undefined);
});

test("figures that make no sense count as nothing, and the cached part never exceeds the whole", () => {
  for (const nonsense of [undefined, null, -5, Number.NaN, Number.POSITIVE_INFINITY, 1e300, "many"]) {
    const { inputTokens, cachedTokens, outputTokens, usd } = modelCall(ENTRY, {
      call: call(),
      outcome: "ok",
      usage: usage(nonsense, 7, nonsense),
      received: 0,
    });
    assert.deepEqual([inputTokens, cachedTokens, outputTokens, usd], [0, 0, 0, 0]);
  }
  assert.equal(modelCall(ENTRY, { call: call(), outcome: "ok", usage: usage(5, 9, 0), received: 0 }).cachedTokens, 5);
});

test("a call that ended before the figures came is estimated; one that the vendor refused cost nothing", () => {
  const sent = call({
    prompt: [
      { role: "system", content: "12345678" },
      { role: "user", content: [{ type: "text", text: "1234" }] },
    ],
    providerOptions: { chorus: { schema: "{}  " } },
  });
  for (const [outcome, received] of [
    ["left", 8],
    ["timed_out", 8],
    ["failed", 8],
  ] as const) {
    const { source, inputTokens, outputTokens } = modelCall(ENTRY, { call: sent, outcome, usage: undefined, received });
    assert.deepEqual([source, inputTokens, outputTokens], ["estimated", 4, 2], outcome);
  }
  const left = modelCall(ENTRY, { call: sent, outcome: "left", usage: undefined, received: 0 });
  assert.deepEqual([left.source, left.inputTokens, left.outputTokens], ["estimated", 4, 0]);
  const refused = modelCall(ENTRY, { call: sent, outcome: "failed", usage: undefined, received: 0 });
  assert.deepEqual([refused.inputTokens, refused.outputTokens, refused.usd], [0, 0, 0]);
});
