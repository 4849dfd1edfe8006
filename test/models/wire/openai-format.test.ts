import assert from "node:assert/strict";
import { afterAll, beforeAll, test } from "vitest";
import { createHttpClient } from "../../../src/models/http.ts";
import type { ModelEntry } from "../../../src/models/port/entry.ts";
import { complete, type ModelCall } from "../../../src/models/port/model.ts";
import type { ModelError } from "../../../src/models/port/model-error.ts";
import { createVendorModel } from "../../../src/models/vendor.ts";
import { Collector } from "../../../src/models/wire/collector.ts";
import { openai } from "../../../src/models/wire/openai.ts";
import { type Script, type ScriptedVendor, startVendor } from "../../helpers/vendors.ts";
import { call } from "../fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
let vendor: ScriptedVendor;
beforeAll(async () => {
  vendor = await startVendor("openai");
});
afterAll(async () => {
  await http.close();
  await vendor.close();
});

/** The bodies that a new model sends for one call, while the vendor answers with these replies first. */
async function sent(
  entry: Partial<ModelEntry>,
  more: Partial<ModelCall>,
  ...replies: Script[]
): Promise<Record<string, unknown>[]> {
  const before = vendor.calls.length;
  vendor.reply(...replies);
  const model = createVendorModel(vendor.entry(entry), http);
  await complete(model, call({ streamed: false, ...more }));
  return vendor.calls.slice(before).map(({ json }) => json);
}

const unsupported = (value: string) => ({
  status: 400,
  error: {
    message: `Unsupported value: 'reasoning_effort' does not support '${value}' with this model.`,
    type: "invalid_request_error",
    param: "reasoning_effort",
    code: "unsupported_value",
  },
});
const COMPATIBLE: Partial<ModelEntry> = { vendor: "openai-compatible", model: "qwen" };

test("asks for as little thinking as the model takes", async () => {
  const bodies = await sent({}, { reasoning: "none" }, unsupported("none"), unsupported("minimal"));
  assert.deepEqual(
    bodies.map(({ reasoning_effort }) => reasoning_effort),
    ["none", "minimal", "low"],
  );
});

test("leaves the effort out after one refusal where every form reads the same", async () => {
  const bodies = await sent({}, { reasoning: "high" }, unsupported("high"));
  assert.deepEqual(
    bodies.map(({ reasoning_effort }) => reasoning_effort),
    ["high", undefined],
  );
});

test("turns thinking off in chat templates, and without them where a server is strict", async () => {
  const strict = { status: 400, error: { message: "property 'chat_template_kwargs' is unsupported" } };
  const bodies = await sent(COMPATIBLE, { reasoning: "none" }, strict);
  assert.deepEqual(
    bodies.map(({ reasoning_effort, chat_template_kwargs }) => [reasoning_effort, chat_template_kwargs]),
    [
      ["none", { enable_thinking: false }],
      ["none", undefined],
    ],
  );
});

test("leaves the effort out for a model of Ollama that does not think", async () => {
  const reply = { status: 400, error: { message: '"gemma3:4b" does not support thinking', type: "api_error" } };
  const bodies = await sent(COMPATIBLE, { reasoning: "low" }, reply);
  assert.equal(bodies.length, 2);
  assert.equal(bodies[1]?.reasoning_effort, undefined);
});

test("finds the refused field in errors whose message is no text", async () => {
  const detail = [
    { type: "extra_forbidden", loc: ["body", "reasoning_effort"], msg: "Extra inputs are not permitted" },
  ];
  for (const raw of [{ object: "error", message: { detail } }, { detail }]) {
    const bodies = await sent(COMPATIBLE, { reasoning: "low" }, { status: 422, raw: JSON.stringify(raw) });
    assert.equal(bodies.length, 2);
    assert.equal(bodies[1]?.reasoning_effort, undefined);
  }
});

test("asks OpenRouter for reasoning in its own field", () => {
  const entry = vendor.entry({ ...COMPATIBLE, baseUrl: "https://openrouter.ai/api/v1" });
  const forms = {
    ...{ temperature: 0, stops: 0, maxTokens: 0, format: 0, reasoning: 0, cacheKey: 0, usage: 0 },
    ...{ strictTools: 0, toolChoice: 0, parallel: 0, toolReasoning: 0, toolFormat: 0, toolTurn: 0, system: 0 },
    ...{ thoughts: 0, signature: 0 },
  };
  const prompt = { system: "", messages: [] };
  const wanted = { model: "m", prompt, maxTokens: 5, temperature: undefined, stops: [], format: undefined };
  const { body } = openai.request(
    entry,
    { ...wanted, tools: undefined, reasoning: "medium", streamed: true, cacheKey: undefined },
    forms,
  );
  assert.deepEqual(JSON.parse(body).reasoning, { effort: "medium" });
  assert.equal(JSON.parse(body).reasoning_effort, undefined);
});

test("sends tools strictly up to 65,536 characters of their schemas", async () => {
  const closed = (description: string) =>
    JSON.stringify({ type: "object", properties: {}, required: [], additionalProperties: false, description });
  const list = ["", "x".repeat(65_000), "x".repeat(1_000), ""].map((description, i) => {
    return { name: `look_${i}`, description: "", parameters: closed(description) };
  });
  const [body] = await sent({}, { tools: { list, choice: "auto", parallel: true } });
  const tools = body?.tools as { function: { strict?: boolean } }[] | undefined;
  assert.deepEqual(
    tools?.map((tool) => tool.function.strict),
    [true, true, undefined, undefined],
  );
});

test("sends OpenAI a tool's schema with items, and no other server", async () => {
  const parameters = '{"type":"object","properties":{"a":{"type":"array"}}}';
  const itemised = '{"type":"object","properties":{"a":{"type":"array","items":{}}}}';
  const list = [{ name: "look", description: "", parameters, itemised }];
  for (const [entry, expected] of [
    [{}, itemised],
    [COMPATIBLE, parameters],
  ] as const) {
    const [body] = await sent(entry, { tools: { list, choice: "auto", parallel: true } });
    const definition = { name: "look", parameters: JSON.parse(expected) };
    assert.deepEqual(body?.tools, [{ type: "function", function: definition }]);
  }
});

test("fails after a bounded number of refusals", async () => {
  const before = vendor.calls.length;
  vendor.always(({ json }) => ({
    status: 400,
    error: { message: `max_completion_tokens: at most ${Number(json.max_completion_tokens) - 1}` },
  }));
  const model = createVendorModel(vendor.entry(), http);
  await assert.rejects(complete(model, call({ streamed: false, maxTokens: 30_000 })), { status: 400 });
  assert.ok(vendor.calls.length - before <= 13);
  vendor.always({});
});

test("reads refusals of the model and of a filter", () => {
  for (const body of [
    { error: { message: "flagged", type: "invalid_request_error", code: "invalid_prompt" } },
    { error: { message: "filtered", code: "content_filter" } },
    { error: { message: "no", code: "content_policy_violation" } },
  ]) {
    assert.equal(openai.readError(JSON.stringify(body)).kind, "refused");
  }
  // OpenRouter's words for a member that it does not take.
  const invalid = { error: { code: "invalid_prompt", message: "Invalid Responses API request" } };
  assert.equal(openai.readError(JSON.stringify(invalid)).kind, undefined);
  const into = new Collector();
  openai.readEvent('{"choices":[{"delta":{"content":null,"refusal":"I can\'t"},"finish_reason":null}]}', into);
  openai.readEvent('{"choices":[{"delta":{},"finish_reason":"stop"}]}', into);
  assert.equal(into.reason, "content_filter");
  assert.equal(into.take(), "");
});

test("reads the ways in which servers say that a prompt is too long", () => {
  for (const message of [
    "Your input exceeds the context window of this model.",
    "This model's maximum context length is 8192 tokens.",
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "the request exceeds the available context size, type exceed_context_size_error",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`",
    "`inputs` must have less than 1024 tokens. Given: 2000",
    "too many tokens: size limit exceeded by 12 tokens.",
    "The input token count (2000) exceeds the maximum number of tokens allowed (1000).",
    "Prompt exceeds max length",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Range of input length should be [1, 30720]",
    "Input is too long for requested model.",
  ]) {
    assert.equal(openai.readError(JSON.stringify({ error: { message } })).kind, "too_long", message);
  }
});

test("reads a usage chunk without choices, and DeepSeek's name for cached tokens", () => {
  for (const choices of [[], null, undefined]) {
    const into = new Collector();
    const usage = { prompt_tokens: 9, completion_tokens: 4, prompt_cache_hit_tokens: 6 };
    openai.readEvent(JSON.stringify({ choices: [{ delta: { content: "a" } }], usage: null }), into);
    openai.readEvent(JSON.stringify({ choices, usage }), into);
    assert.equal(into.isWhole, false);
    openai.readEvent("[DONE]", into);
    assert.equal(into.isWhole, true);
    assert.deepEqual(into.usage, { inputTokens: 9, cachedTokens: 6, outputTokens: 4, thinkingTokens: 0 });
  }
});

test("reads every spelling of the end reasons, and nothing into a word that every object has", () => {
  for (const [word, reason] of [
    ["STOP", "stop"],
    ["eos", "stop"],
    ["model_length", "length"],
    ["content_filter: PROHIBITED_CONTENT", "content_filter"],
    ["sensitive", "content_filter"],
    ["tool_calls", "unknown"],
    ["constructor", "unknown"],
    ["__proto__", "unknown"],
  ]) {
    const into = new Collector();
    openai.readEvent(JSON.stringify({ choices: [{ delta: {}, finish_reason: word }] }), into);
    assert.equal(into.reason, reason, word);
  }
  for (const word of ["error", "network_error", "abort"]) {
    const event = JSON.stringify({ choices: [{ delta: {}, finish_reason: word }] });
    assert.throws(() => openai.readEvent(event, new Collector()), { name: "ModelError", retryable: true });
  }
});

test("reads usage in the choice, Moonshot's cached tokens, and xAI's thinking beside the completion", () => {
  const into = new Collector();
  const usage = { prompt_tokens: 9, completion_tokens: 4, cached_tokens: 6 };
  openai.readEvent(JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop", usage }] }), into);
  assert.deepEqual(into.usage, { inputTokens: 9, cachedTokens: 6, outputTokens: 4, thinkingTokens: 0 });
  const beside = new Collector();
  const counts = { prompt_tokens: 9, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 30 } };
  openai.readEvent(JSON.stringify({ choices: [], usage: { ...counts, total_tokens: 43 } }), beside);
  assert.deepEqual([beside.usage?.outputTokens, beside.usage?.thinkingTokens], [34, 30]);
});

test("reads Gemini's thinking, which is in the total only, and no other difference", () => {
  const read = (usage: object, model = "gemini-2.5-flash") => {
    const into = new Collector();
    const choices = [{ message: { content: "a" }, finish_reason: "stop" }];
    openai.readWhole(JSON.stringify({ model, choices, usage }), into);
    return [into.usage?.outputTokens, into.usage?.thinkingTokens, into.thinks];
  };
  const counts = { prompt_tokens: 20, completion_tokens: 424 };
  assert.deepEqual(read({ ...counts, total_tokens: 1_016 }), [996, 572, true]);
  for (const total_tokens of [444, 424, 0, null, undefined]) {
    assert.deepEqual(read({ ...counts, total_tokens }), [424, 0, false], String(total_tokens));
  }
  // Anthropic's input without the cached part, as some proxies pass it on.
  const beside = { ...counts, prompt_tokens_details: { cached_tokens: 1_000 }, total_tokens: 1_444 };
  assert.deepEqual(read(beside), [424, 0, false]);
  // Input from the cache, as Portkey has passed it on from Bedrock.
  const bedrock = { prompt_tokens: 368, completion_tokens: 19, total_tokens: 10_923, cache_read_input_tokens: 10_536 };
  assert.deepEqual(read(bedrock, "anthropic.claude-sonnet-4"), [19, 0, false]);
});

test("fails on an error in a response with status 200, as its code says", () => {
  const cases: [error: unknown, status: number | undefined, kind: string | undefined, retryable: boolean][] = [
    [{ error: { message: "overloaded", code: 503 } }, 503, undefined, true],
    [{ error: { message: "no credit", code: 402 } }, 402, undefined, false],
    [{ error: { message: "odd", code: 20_015 } }, undefined, undefined, true],
    [{ error: { message: "filtered", code: "content_filter" } }, undefined, "refused", false],
    [{ error: "prompt is too long" }, undefined, "too_long", false],
    [{ error: true }, undefined, undefined, true],
    [{ object: "error", message: "out of memory", code: 50_002 }, undefined, undefined, true],
    [{ object: "error", message: "This model's maximum context length is 8.", code: 400 }, 400, "too_long", false],
  ];
  for (const [body, status, kind, retryable] of cases) {
    for (const read of [openai.readEvent, openai.readWhole]) {
      assert.throws(
        () => read(JSON.stringify(body), new Collector()),
        (error: ModelError) => {
          assert.deepEqual(
            [error.status, error.kind, error.retryable],
            [status, kind, retryable],
            JSON.stringify(body),
          );
          return true;
        },
      );
    }
  }
});

test("reads the words of servers that have no code for a refusal", () => {
  for (const body of [
    { error: { message: "Content Exists Risk", type: "invalid_request_error", code: "invalid_request_error" } },
    { error: { message: 'model requires moderation on Together. Your input was flagged for "x".', code: 403 } },
    { error: { message: "Input data may contain inappropriate content.", code: "data_inspection_failed" } },
  ]) {
    assert.equal(openai.readError(JSON.stringify(body)).kind, "refused", JSON.stringify(body));
  }
});

test("reads content of any type, and an end mark with rubbish behind it", () => {
  const into = new Collector();
  const parts = [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }, { type: "text", text: "b" }, null];
  for (const content of ["a", null, undefined, "", 7, parts, { text: "no" }]) {
    openai.readEvent(JSON.stringify({ choices: [{ delta: { content } }] }), into);
  }
  for (const event of ["{}", "[]", "null", '{"choices":[null]}', '{"choices":{}}', '{"choices":[{"delta":null}]}']) {
    openai.readEvent(event, into);
  }
  openai.readEvent("[DONE] ", into);
  assert.equal(into.take(), "ab");
  assert.ok(into.isWhole && into.thinks);
});

test("takes reasoning of any server for thinking, not for text", () => {
  for (const delta of [
    { reasoning_content: "hm" },
    { reasoning: "hm" },
    { reasoning_details: [{ type: "reasoning.encrypted" }] },
  ]) {
    const into = new Collector();
    openai.readEvent(JSON.stringify({ choices: [{ delta }] }), into);
    assert.equal(into.take(), "");
    assert.equal(into.thinks, true);
  }
});

/** The calls that parts of a stream make. */
function callsOf(...parts: object[]): Collector["calls"] {
  const into = new Collector(true);
  for (const part of parts) openai.readEvent(JSON.stringify({ choices: [{ delta: { tool_calls: [part] } }] }), into);
  return into.calls;
}

test("reads a call whose parts have different identifiers, and calls that have the same place", () => {
  const begin = (id: string, name: string) => ({ index: 0, id, type: "function", function: { name, arguments: "" } });
  const go = (id: string | undefined, text: string) => ({ index: 0, id, function: { arguments: text } });
  const one = [{ name: "look", arguments: '{"a":1}' }];
  assert.deepEqual(callsOf(begin("x", "look"), go("y", '{"a"'), go("z", ":1}")), one);
  const two = callsOf(begin("x", "look"), go("x", '{"a":1}'), begin("y", "find"), go(undefined, "{}"));
  assert.deepEqual(two, [...one, { name: "find", arguments: "{}" }]);
});

test("drops thinking whose first mark is in the prompt of a model that thinks", async () => {
  const text = ["Okay, ", "Paris.", "\n", "</think>", "\n\n", "Par", "is."];
  const answers = async (entry: Partial<ModelEntry>, ...calls: Partial<ModelCall>[]) => {
    const model = createVendorModel(vendor.entry({ ...COMPATIBLE, thinks: true, ...entry }), http);
    const texts: string[] = [];
    for (const each of calls) texts.push((await complete(model, call(each))).text);
    return texts;
  };
  const all = text.join("");
  const [whole, streamed] = [{ streamed: false }, { streamed: true }];
  vendor.always({ text, betweenMs: 5 });
  assert.deepEqual(await answers({}, streamed, whole, streamed), ["Paris.", "Paris.", "Paris."]);
  assert.deepEqual(await answers({}, { ...streamed, reasoning: "none" }, streamed), [all, "Paris."]);
  assert.deepEqual(await answers({ thinks: false }, streamed, whole), [all, all]);
  assert.deepEqual(await answers({ vendor: "openai" }, whole), [all]);
  vendor.always({ text: ["Paris."] });
  const model = createVendorModel(vendor.entry({ ...COMPATIBLE, thinks: true }), http);
  await complete(model, call({ streamed: true }));
  vendor.always({ text: ["Paris.", "\n</think>", "."] });
  assert.equal((await complete(model, call({ streamed: true }))).text, "Paris.\n</think>.");
  vendor.always({});
});

test("sends no stop sequences where a server would find them in thinking without its first mark", async () => {
  const model = createVendorModel(vendor.entry({ ...COMPATIBLE, thinks: true }), http);
  const asked = async (...text: string[]) => {
    vendor.always({ text });
    const before = vendor.calls.length;
    await complete(model, call({ stops: ["\n"] }));
    return vendor.calls.slice(before).map(({ body }) => JSON.parse(body).stop);
  };
  assert.deepEqual(await asked("Okay.\n", "</think>", "Paris."), [undefined]);
  assert.deepEqual(await asked("Okay.\n", "</think>", "Paris."), [undefined]);
  assert.deepEqual(await asked("Paris."), [undefined]);
  assert.deepEqual(await asked("Paris."), [["\n"]]);
  vendor.always({});
});

test("streams a model that thinks at once where the server sends its thinking apart", async () => {
  const model = createVendorModel(vendor.entry({ ...COMPATIBLE, thinks: true }), http);
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`;
  const pieces: string[] = [];
  vendor.reply({ raw: chunk({ reasoning_content: "hm" }) + chunk({ content: "Par" }), afterwards: "hang" });
  for await (const piece of model.ask(call())) {
    if (piece.type !== "text") continue;
    pieces.push(piece.text);
    break;
  }
  assert.deepEqual(pieces, ["Par"]);
});

test("repeats a completion that ended in thinking only once", async () => {
  vendor.always({ text: [], finish: "length", usage: { output: 20, thoughts: 20 } });
  const bodies = await sent({}, { maxTokens: 20 });
  vendor.always({});
  assert.deepEqual(
    bodies.map(({ max_completion_tokens }) => Number(max_completion_tokens) > 1_000),
    [false, true],
  );
});

test("sends a tool whose schema OpenAI would refuse in the form that it takes, without loss", async () => {
  const tool = (parameters: string) => ({ name: "look", description: "", parameters });
  const told = 'The input must also be valid against this JSON Schema: {"anyOf":[{"required":["a"]}]}';
  const either = '{"anyOf":[{"required":["a"]}],"properties":{"a":{"minimum":1.0}}}';
  const cases: [vendor: ModelEntry["vendor"], parameters: string, schema: string, description?: string][] = [
    ["openai", '{"properties":{}, "type":"object"}', '{"properties":{}, "type":"object"}'],
    ["openai", '{"type":"object"}', '{"type":"object","properties":{}}'],
    ["openai", "{}", '{"type":"object","properties":{}}'],
    ["openai", either, '{"type":"object","properties":{"a":{"minimum":1.0}}}', told],
    ["openai-compatible", '{"type":"object"}', '{"type":"object","properties":{}}'],
    [
      ...(["openai-compatible", either] as const),
      '{"type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{"minimum":1.0}}}',
    ],
  ];
  for (const [kind, parameters, schema, description] of cases) {
    const list = [tool(parameters)];
    const [body] = await sent({ vendor: kind }, { tools: { list, choice: "auto", parallel: true } });
    const definition = { name: "look", ...(description && { description }), parameters: JSON.parse(schema) };
    assert.deepEqual(body?.tools, [{ type: "function", function: definition }]);
    assert.ok(vendor.calls.at(-1)?.body.includes(`"parameters":${schema}`), schema);
  }
});
