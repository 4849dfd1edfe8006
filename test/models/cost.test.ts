import assert from "node:assert/strict";
import { test } from "vitest";
import { callRecord } from "../../src/models/cost.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import type { TokenUsage } from "../../src/models/port/model.ts";
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
const USAGE: TokenUsage = { inputTokens: 1_000, cachedTokens: 400, outputTokens: 200, thinkingTokens: 150 };

const recordOf = (end: Partial<Parameters<typeof callRecord>[1]>, entry = ENTRY) =>
  callRecord(
    entry,
    {
      call: call(),
      outcome: "ok",
      usage: undefined,
      received: 0,
      startedAt: 0,
      firstTextMs: 1,
      version: undefined,
      ...end,
    },
    entry.price,
  );

test("prices the vendor's figures by the catalogue, cached input at its own price", () => {
  const { durationMs, ...record } = recordOf({ usage: USAGE, received: 9 });
  assert.ok(durationMs >= 0);
  assert.deepEqual(record, {
    model: "large",
    vendor: "openai",
    startedAt: 0,
    tier: "strong",
    outcome: "ok",
    source: "reported",
    inputTokens: 1_000,
    cachedTokens: 400,
    outputTokens: 200,
    thinkingTokens: 150,
    usd: (600 * 2 + 400 * 0.5 + 200 * 10) / 1e6,
  });
});

test("gives no cost without a price", () => {
  const { price: _, ...free } = ENTRY;
  assert.equal(recordOf({ usage: USAGE }, free).usd, undefined);
});

test("estimates a call without the vendor's figures from its texts", () => {
  const prompt = { system: "12345678", messages: [{ role: "user" as const, text: "1234" }] };
  const sent = call({ prompt, format: { type: "schema", schema: "{}  " } });
  for (const outcome of ["ok", "left", "timed_out", "failed"] as const) {
    const { source, inputTokens, cachedTokens, outputTokens, usd } = recordOf({ call: sent, outcome, received: 8 });
    assert.deepEqual([source, inputTokens, cachedTokens, outputTokens], ["estimated", 4, 0, 2], outcome);
    assert.equal(usd, (4 * 2 + 2 * 10) / 1e6);
  }
  const left = recordOf({ call: sent, outcome: "left" });
  assert.deepEqual([left.source, left.inputTokens, left.outputTokens], ["estimated", 4, 0]);
});

test("estimates tools, their calls and results as well", () => {
  const asked = { id: "a", name: "look", arguments: '{"q":"12"}' };
  const messages = [
    { role: "user" as const, text: "1234" },
    { role: "assistant" as const, text: "", calls: [asked] },
    { role: "user" as const, text: "", results: [{ id: "a", name: "look", text: "x".repeat(4_000) }] },
  ];
  const list = [{ name: "look", description: "d".repeat(1_000), parameters: `{"type":"object"}${" ".repeat(979)}` }];
  const sent = call({ prompt: { system: "12", messages }, tools: { list, choice: "auto", parallel: true } });
  assert.equal(recordOf({ call: sent, outcome: "left" }).inputTokens, (2 + 4 + 10 + 4_000 + 4 + 1_000 + 996) / 4);
});

test("counts nothing for a call that failed without text", () => {
  const { source, inputTokens, outputTokens, usd } = recordOf({ outcome: "failed" });
  assert.deepEqual([source, inputTokens, outputTokens, usd], ["reported", 0, 0, 0]);
});
