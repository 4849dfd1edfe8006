import assert from "node:assert/strict";
import { afterAll, beforeAll, beforeEach, test } from "vitest";
import { createHttpClient } from "../../../src/models/http.ts";
import { complete, type Message, type Model, type ModelCall } from "../../../src/models/port/model.ts";
import { createVendorModel } from "../../../src/models/vendor.ts";
import { anthropic } from "../../../src/models/wire/anthropic.ts";
import { Collector } from "../../../src/models/wire/collector.ts";
import { type ScriptedVendor, startVendor } from "../../helpers/vendors.ts";
import { call } from "../fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
let vendor: ScriptedVendor;
let model: Model;
beforeAll(async () => {
  vendor = await startVendor("anthropic");
});
beforeEach(() => {
  model = createVendorModel(vendor.entry(), http);
});
afterAll(async () => {
  await http.close();
  await vendor.close();
});

const refusal = (message: string) => ({ status: 400, error: { message, type: "invalid_request_error" } });

async function sent(more: Partial<ModelCall>): Promise<Record<string, unknown>[]> {
  const before = vendor.calls.length;
  await complete(model, call({ streamed: false, ...more }));
  return vendor.calls.slice(before).map(({ json }) => json);
}

test("asks for adaptive thinking with an effort", async () => {
  const [body] = await sent({ reasoning: "high" });
  assert.deepEqual(body?.thinking, { type: "adaptive" });
  assert.deepEqual(body?.output_config, { effort: "high" });
});

test("turns thinking off, because several models think by default", async () => {
  const [body] = await sent({ reasoning: "none" });
  assert.deepEqual(body?.thinking, { type: "disabled" });
});

test("asks for the lowest effort where thinking cannot be turned off, and keeps other efforts", async () => {
  vendor.reply(refusal("thinking.type.disabled is not supported for this model."));
  const bodies = await sent({ reasoning: "none" });
  assert.deepEqual(bodies.at(-1)?.output_config, { effort: "low" });
  assert.equal(bodies.at(-1)?.thinking, undefined);
  const [next] = await sent({ reasoning: "high" });
  assert.deepEqual(next?.thinking, { type: "adaptive" });
});

test("sends a budget to older models, after one refusal", async () => {
  vendor.reply(refusal("adaptive thinking is not supported on this model"));
  const bodies = await sent({ reasoning: "medium" });
  assert.equal(bodies.length, 2);
  assert.deepEqual(bodies[1]?.thinking, { type: "enabled", budget_tokens: 8_192 });
  const [next] = await sent({ reasoning: "low" });
  assert.deepEqual(next?.thinking, { type: "enabled", budget_tokens: 2_048 });
});

test("keeps the budget between 1,024 tokens and two thirds of the ceiling, and adds the caller's", async () => {
  const thinking = async (maxOutputTokens: number | undefined, more: Partial<ModelCall>) => {
    const entry = vendor.entry(maxOutputTokens === undefined ? {} : { maxOutputTokens });
    model = createVendorModel(entry, http);
    vendor.reply(refusal("adaptive thinking is not supported on this model"));
    const body = (await sent(more)).at(-1);
    return [body?.max_tokens, (body?.thinking as { budget_tokens?: number } | undefined)?.budget_tokens];
  };
  assert.deepEqual(await thinking(undefined, { reasoning: "low", maxTokens: 1 }), [4_097, 2_048]);
  assert.deepEqual(await thinking(undefined, { reasoning: "high", maxTokens: 100 }), [24_676, 16_384]);
  assert.deepEqual(await thinking(4_096, { reasoning: "medium", maxTokens: 100 }), [4_096, 2_730]);
  assert.deepEqual(await thinking(4_096, { reasoning: "high" }), [4_096, 2_730]);
  assert.deepEqual(await thinking(1_500, { reasoning: "low", maxTokens: 50 }), [1_500, undefined]);
});

test("leaves thinking out when its budget does not fit under the ceiling", async () => {
  vendor.reply(refusal("adaptive thinking is not supported on this model"));
  vendor.reply(refusal("`max_tokens` must be greater than `thinking.budget_tokens`."));
  const bodies = await sent({ reasoning: "low", maxTokens: 50 });
  assert.equal(bodies.at(-1)?.thinking, undefined);
  assert.equal(bodies.length, 3);
});

test("asks an older model, which demands its earlier thinking, for none between the steps of its tools", async () => {
  const list = [{ name: "look", description: "", parameters: '{"type":"object"}' }];
  const asked: Message = { role: "user", text: "What is there?" };
  const steps: Message[] = [
    asked,
    { role: "assistant", text: "", calls: [{ id: "c1", name: "look", arguments: "{}" }] },
    { role: "user", text: "", results: [{ id: "c1", name: "look", text: "A cat." }] },
  ];
  const later: Message[] = [...steps, { role: "assistant", text: "A cat." }, { role: "user", text: "Why?" }];
  const ask = async (messages: Message[]) => {
    const prompt = { system: "", messages };
    const tools = { list, choice: "auto" as const, parallel: true };
    const bodies = await sent({ tools, reasoning: "high", prompt, maxTokens: 100 });
    // Without thinking, the ceiling has no room for it.
    for (const { thinking, max_tokens } of bodies) assert.equal(max_tokens, thinking ? 24_676 : 100);
    return bodies.map(({ thinking }) => (thinking as { type?: string } | undefined)?.type);
  };
  assert.deepEqual(await ask(steps), ["adaptive"]);
  vendor.reply(refusal("adaptive thinking is not supported on this model"));
  assert.deepEqual(await ask([asked]), ["adaptive", "enabled"]);
  assert.deepEqual(await ask(steps), [undefined]);
  assert.deepEqual(await ask(later), ["enabled"]);
});

test("learns the largest ceiling also where the call sets none", async () => {
  vendor.reply(refusal("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens"));
  const bodies = await sent({});
  assert.deepEqual(
    bodies.map(({ max_tokens }) => max_tokens),
    [32_000, 8_192],
  );
});

test("puts the effort and the schema into one output_config", async () => {
  const schema = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}';
  const [body] = await sent({ reasoning: "low", format: { type: "schema", schema } });
  assert.deepEqual(body?.output_config, {
    effort: "low",
    format: { type: "json_schema", schema: JSON.parse(schema) },
  });
  const [plain] = await sent({ format: { type: "schema", schema } });
  assert.deepEqual(plain?.output_config, { format: { type: "json_schema", schema: JSON.parse(schema) } });
});

test("marks long instructions for the cache only when the call has a cache key", async () => {
  const prompt = { system: "s".repeat(5_000), messages: [{ role: "user" as const, text: "Hi" }] };
  const mark = { cache_control: { type: "ephemeral" } };
  const [marked] = await sent({ prompt, cacheKey: "k" });
  assert.deepEqual(marked?.system, [{ type: "text", text: prompt.system, ...mark }]);
  assert.deepEqual(marked?.messages, [{ role: "user", content: "Hi" }]);
  const [plain] = await sent({ prompt });
  assert.equal(plain?.system, prompt.system);
  assert.deepEqual(plain?.messages, [{ role: "user", content: "Hi" }]);
});

test("leaves the marks out where they are refused", async () => {
  const prompt = { system: "s".repeat(5_000), messages: [{ role: "user" as const, text: "Hi" }] };
  vendor.reply(refusal("system.0.cache_control: Extra inputs are not permitted"));
  const bodies = await sent({ prompt, cacheKey: "k" });
  assert.equal(bodies.length, 2);
  assert.equal(bodies[1]?.system, prompt.system);
});

test("reads every documented stop reason", () => {
  const reasons = {
    end_turn: "stop",
    stop_sequence: "stop",
    max_tokens: "length",
    model_context_window_exceeded: "length",
    refusal: "content_filter",
    tool_use: "unknown",
    pause_turn: "unknown",
  };
  for (const [word, reason] of Object.entries(reasons)) {
    const into = new Collector();
    anthropic.readEvent(JSON.stringify({ type: "message_delta", delta: { stop_reason: word } }), into);
    assert.equal(into.reason, reason, word);
    assert.equal(into.isWhole, false, "message_stop is the terminal frame");
  }
});

test("reads text deltas only, and sees thinking that is omitted or redacted", () => {
  const into = new Collector();
  const events = [
    { type: "ping" },
    { type: "content_block_start", content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", delta: { type: "signature_delta", signature: "abc" } },
    { type: "content_block_start", content_block: { type: "server_tool_use", name: "web_search", input: {} } },
    { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: "{}" } },
    { type: "content_block_delta", delta: { type: "citations_delta", citation: { cited_text: "no" } } },
    { type: "content_block_start", content_block: { type: "text", text: "" } },
    { type: "content_block_delta", delta: { type: "text_delta", text: "yes" } },
    { type: "content_block_stop" },
    { type: "something_new", text: "no" },
    { type: "message_stop" },
  ];
  for (const event of events) anthropic.readEvent(JSON.stringify(event), into);
  assert.equal(into.take(), "yes");
  assert.ok(into.thinks && into.isWhole);
});

test("keeps the cached part of the input when the last usage leaves it out, and takes input that comes late", () => {
  const usageOf = (first: object, last: object) => {
    const into = new Collector();
    anthropic.readEvent(JSON.stringify({ type: "message_start", message: { usage: first } }), into);
    anthropic.readEvent(JSON.stringify({ type: "message_delta", delta: {}, usage: last }), into);
    return into.usage;
  };
  const start = { input_tokens: 25, cache_read_input_tokens: 60, cache_creation_input_tokens: 15, output_tokens: 1 };
  const expected = { inputTokens: 100, cachedTokens: 60, outputTokens: 9, thinkingTokens: 0 };
  assert.deepEqual(usageOf(start, { input_tokens: 25, output_tokens: 9 }), expected);
  assert.deepEqual(usageOf(start, { ...start, output_tokens: 9 }), expected);
  assert.deepEqual(usageOf(start, { output_tokens: 9 }), expected);
  assert.deepEqual(usageOf({ input_tokens: 0 }, { ...start, output_tokens: 9 }), expected);
});

test("fails on an error in a response with status 200, as its type says", () => {
  for (const [type, status, retryable] of [
    ["overloaded_error", 529, true],
    ["rate_limit_error", 429, true],
    ["api_error", 500, true],
    ["timeout_error", 504, true],
    ["invalid_request_error", 400, false],
    ["permission_error", 403, false],
    ["constructor", undefined, true],
    [undefined, undefined, true],
  ] as const) {
    for (const body of [{ type: "error", error: { type, message: "m" } }, { error: { type, message: "m" } }]) {
      for (const read of [anthropic.readEvent, anthropic.readWhole]) {
        assert.throws(() => read(JSON.stringify(body), new Collector()), { status, retryable });
      }
    }
  }
});

test("takes a stop reason that every object has for an unknown one", () => {
  const into = new Collector();
  anthropic.readEvent('{"type":"message_delta","delta":{"stop_reason":"constructor"}}', into);
  assert.equal(into.reason, "unknown");
});

test("sends a tool whose schema Anthropic would refuse in the form that it takes, without loss", async () => {
  const branches = '[{"required":["a"]},{"required":["b"],"properties":{"b":{"minimum":1.0}}}]';
  const tool = (parameters: string, description = "") => ({ name: "look", description, parameters });
  const told = `The input must also be valid against this JSON Schema: {"anyOf":${branches}}`;
  const cases: [parameters: string, schema: string, description?: string][] = [
    ['{"type":"object","properties":{}}', '{"type":"object","properties":{}}'],
    ["{}", '{"type":"object"}'],
    [
      '{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[]}}}',
      '{"type":"object","$ref":"#/$defs/A","$defs":{"A":{"anyOf":[]}}}',
    ],
    [
      '{"properties":{"a":{"maximum":1.0}},"type":["object","null"]}',
      '{"type":"object","properties":{"a":{"maximum":1.0}}}',
    ],
    [`{"type":"object","anyOf":${branches}}`, '{"type":"object"}', told],
  ];
  for (const [parameters, schema, description] of cases) {
    const [body] = await sent({ tools: { list: [tool(parameters)], choice: "auto", parallel: true } });
    assert.deepEqual(body?.tools, [
      { name: "look", ...(description && { description }), input_schema: JSON.parse(schema) },
    ]);
    assert.ok(vendor.calls.at(-1)?.body.includes(`"input_schema":${schema}`), schema);
  }
  const list = [tool(`{"anyOf":${branches}}`, "Looks.")];
  const [body] = await sent({ tools: { list, choice: "auto", parallel: true } });
  assert.deepEqual(body?.tools, [{ name: "look", description: `Looks.\n\n${told}`, input_schema: { type: "object" } }]);
});
