import assert from "node:assert/strict";
import { afterAll, beforeAll, test } from "vitest";
import { createHttpClient } from "../../../src/models/http.ts";
import { complete, type ModelCall } from "../../../src/models/port/model.ts";
import { createVendorModel } from "../../../src/models/vendor.ts";
import { Collector } from "../../../src/models/wire/collector.ts";
import { google } from "../../../src/models/wire/google.ts";
import { type Script, type ScriptedVendor, startVendor } from "../../helpers/vendors.ts";
import { call } from "../fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
let vendor: ScriptedVendor;
beforeAll(async () => {
  vendor = await startVendor("google");
});
afterAll(async () => {
  await http.close();
  await vendor.close();
});

/** What a new model asks for in `thinkingConfig`, call by call, while the vendor answers with these replies first. */
async function thinking(name: string, reasoning: ModelCall["reasoning"], ...replies: Script[]): Promise<unknown[]> {
  const before = vendor.calls.length;
  vendor.reply(...replies);
  const model = createVendorModel(vendor.entry({ model: name }), http);
  await complete(model, call({ streamed: false, ...(reasoning ? { reasoning } : {}) }));
  return vendor.calls
    .slice(before)
    .map(({ json }) => (json.generationConfig as { thinkingConfig?: unknown })?.thinkingConfig);
}

const refusal = (message: string) => ({ status: 400, error: { message } });

test("asks for a level of thinking, and Gemini 2 for a budget", async () => {
  assert.deepEqual(await thinking("gemini-3.8-flash", "high"), [{ thinkingLevel: "high" }]);
  assert.deepEqual(await thinking("gemini-pro-latest", "low"), [{ thinkingLevel: "low" }]);
  assert.deepEqual(await thinking("gemini-3.8-flash", "none"), [{ thinkingLevel: "minimal" }]);
  assert.deepEqual(await thinking("gemini-2.5-flash", "medium"), [{ thinkingBudget: 8_192 }]);
  assert.deepEqual(await thinking("gemini-2.5-flash", "none"), [{ thinkingBudget: 0 }]);
  assert.deepEqual(await thinking("gemini-3.8-flash", undefined), [undefined]);
});

test("thinks a little where thinking cannot be turned off", async () => {
  assert.deepEqual(
    await thinking(
      "gemini-3.1-pro-preview",
      "none",
      refusal("Thinking level MINIMAL is not supported for this model."),
    ),
    [{ thinkingLevel: "minimal" }, { thinkingLevel: "low" }],
  );
  assert.deepEqual(
    await thinking("gemini-2.5-pro", "none", refusal("Budget 0 is invalid. This model only works in thinking mode.")),
    [{ thinkingBudget: 0 }, { thinkingBudget: 1_024 }],
  );
});

test("tries the other field for a model under another name, then none", async () => {
  const noLevel = refusal("Thinking level is not supported for this model.");
  const none = refusal("Thinking budget is not supported for this model.");
  assert.deepEqual(await thinking("my-model", "high", noLevel), [
    { thinkingLevel: "high" },
    { thinkingBudget: 24_576 },
  ]);
  assert.deepEqual(await thinking("my-model", "high", noLevel, none), [
    { thinkingLevel: "high" },
    { thinkingBudget: 24_576 },
    undefined,
  ]);
});

test("reads every documented reason", () => {
  const reasons = {
    STOP: "stop",
    MAX_TOKENS: "length",
    CONTINUATION: "length",
    SAFETY: "content_filter",
    RECITATION: "content_filter",
    BLOCKLIST: "content_filter",
    PROHIBITED_CONTENT: "content_filter",
    SPII: "content_filter",
    MODEL_ARMOR: "content_filter",
    LANGUAGE: "unknown",
    OTHER: "unknown",
  };
  for (const [finishReason, reason] of Object.entries(reasons)) {
    const into = new Collector();
    google.readEvent(JSON.stringify({ candidates: [{ finishReason }] }), into);
    assert.equal(into.reason, reason, finishReason);
    assert.deepEqual([into.isFinished, into.isWhole], [true, false], "usage may follow");
    google.readEvent(JSON.stringify({ usageMetadata: { promptTokenCount: 4 } }), into);
    assert.deepEqual([into.usage?.inputTokens, into.isWhole], [4, true]);
    const whole = new Collector();
    google.readEvent(JSON.stringify({ candidates: [{ finishReason }], usageMetadata: {} }), whole);
    assert.equal(whole.isWhole, true);
  }
  for (const finishReason of ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"]) {
    const event = JSON.stringify({ candidates: [{ finishReason }] });
    assert.throws(() => google.readEvent(event, new Collector()), { name: "ModelError", retryable: true });
  }
});

test("reads a list of responses, as of a stream without events", () => {
  const into = new Collector();
  const responses = [{ text: "a" }, { text: "b" }].map((part) => ({ candidates: [{ content: { parts: [part] } }] }));
  google.readWhole(JSON.stringify([...responses, { candidates: [{ finishReason: "STOP" }] }]), into);
  assert.deepEqual([into.take(), into.reason, into.isWhole], ["ab", "stop", true]);
  assert.throws(() => google.readWhole(JSON.stringify(responses), new Collector()), { name: "ModelError" });
});

test("goes on after an event without a reason", () => {
  for (const finishReason of [undefined, null, "", "FINISH_REASON_UNSPECIFIED"]) {
    const into = new Collector();
    google.readEvent(JSON.stringify({ candidates: [{ content: { parts: [{ text: "a" }] }, finishReason }] }), into);
    assert.equal(into.isWhole, false);
    assert.equal(into.take(), "a");
  }
});

test("takes a blocked prompt for a refusal", () => {
  const into = new Collector();
  google.readWhole(
    '{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}',
    into,
  );
  assert.equal(into.reason, "content_filter");
  assert.equal(into.usage?.inputTokens, 4);
});

test("fails on an error in a response with status 200, as its code says", () => {
  for (const [error, status, kind, retryable] of [
    [{ code: 503, message: "m", status: "UNAVAILABLE" }, 503, undefined, true],
    [{ code: 403, message: "m" }, 403, undefined, false],
    [{ code: 1e300, message: "m" }, undefined, undefined, true],
    [{ message: "The input token count (9) exceeds the maximum number of tokens" }, undefined, "too_long", false],
  ] as const) {
    const event = JSON.stringify({ error });
    for (const read of [google.readEvent, google.readWhole]) {
      assert.throws(() => read(event, new Collector()), { status, kind, retryable });
    }
  }
});

test("takes a reason that every object has for an unknown one", () => {
  const into = new Collector();
  google.readEvent('{"candidates":[{"finishReason":"constructor"}]}', into);
  assert.equal(into.reason, "unknown");
});
