import assert from "node:assert/strict";
import fc from "fast-check";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createHttpClient } from "../../../src/models/http.ts";
import type { ModelEntry } from "../../../src/models/port/entry.ts";
import { complete, type ModelCall } from "../../../src/models/port/model.ts";
import type { ModelError } from "../../../src/models/port/model-error.ts";
import { createVendorModel } from "../../../src/models/vendor.ts";
import { Collector } from "../../../src/models/wire/collector.ts";
import { responses } from "../../../src/models/wire/responses.ts";
import { type Script, type ScriptedVendor, startVendor } from "../../helpers/vendors.ts";
import { call } from "../fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
let vendor: ScriptedVendor;
beforeAll(async () => {
  vendor = await startVendor("responses");
});
afterAll(async () => {
  await http.close();
  await vendor.close();
});

type Json = Record<string, unknown>;

/** The bodies that a new model sends for one call, while the vendor answers with these replies first. */
async function sent(entry: Partial<ModelEntry>, more: Partial<ModelCall>, ...replies: Script[]): Promise<Json[]> {
  const before = vendor.calls.length;
  vendor.reply(...replies);
  const model = createVendorModel(vendor.entry(entry), http);
  await complete(model, call({ streamed: false, ...more }));
  return vendor.calls.slice(before).map(({ json }) => json);
}

const ROLES = ["user", "assistant"] as const;
const toolsOf = (body: Json | undefined) => (body?.tools ?? []) as Json[];
const COMPATIBLE: Partial<ModelEntry> = { vendor: "openai-compatible", model: "qwen" };
const LOOSE = '{"type":"object","properties":{"city":{"type":"string"}}}';
const CLOSED = '{"type":"object","properties":{},"required":[],"additionalProperties":false}';
const tool = (name: string, parameters = LOOSE) => ({ name, description: "", parameters });
const TOOLS = { list: [tool("look")], choice: "auto" as const, parallel: true };

describe("a request", () => {
  test("has the instructions and the messages as items, and keeps nothing at the vendor", async () => {
    const images = [{ mediaType: "image/png", data: new Uint8Array([1, 2]) }];
    const calls = [
      { id: "c1", name: "look", arguments: '{"city":"Oslo","n":1.0}' },
      { id: "c2", name: "look", arguments: "{}" },
    ];
    const prompt: ModelCall["prompt"] = {
      system: "Be brief.",
      messages: [
        { role: "user", text: "Weather?", images },
        { role: "assistant", text: "I look.", calls },
        {
          role: "user",
          text: "Well?",
          results: calls.map(({ id, name }) => ({ id, name, text: `rain ${id}` })),
        },
        { role: "assistant", text: "It rains." },
        { role: "user", text: "", images },
      ],
    };
    const [body] = await sent({}, { prompt, tools: TOOLS });
    const message = (role: string, ...content: object[]) => ({ type: "message", role, content });
    const answer = (content: string) => ({ type: "message", role: "assistant", content });
    const image = { type: "input_image", image_url: "data:image/png;base64,AQI=", detail: "auto" };
    assert.deepEqual(body?.input, [
      message("system", { type: "input_text", text: "Be brief." }),
      message("user", image, { type: "input_text", text: "Weather?" }),
      answer("I look."),
      ...calls.map(({ id, ...called }) => ({ type: "function_call", call_id: id, ...called })),
      ...calls.map(({ id }) => ({ type: "function_call_output", call_id: id, output: `rain ${id}` })),
      message("user", { type: "input_text", text: "Well?" }),
      answer("It rains."),
      message("user", image),
    ]);
    assert.deepEqual([body?.store, body?.stream, body?.instructions], [false, undefined, undefined]);
  });

  test("has messages of the assistant as outputs for other servers than OpenAI's", async () => {
    const messages = ["Hi", "Hello.", "Bye"].map((text, i) => ({ role: ROLES[i % 2] ?? "user", text }));
    const [body] = await sent(COMPATIBLE, { prompt: { system: "", messages } });
    const [, second] = (body?.input ?? []) as Json[];
    assert.deepEqual(second, {
      ...{ type: "message", id: "msg_1", status: "completed", role: "assistant" },
      content: [{ type: "output_text", text: "Hello.", annotations: [] }],
    });
  });

  test("has reasoning and tools together, at OpenAI and at other servers", async () => {
    for (const entry of [{}, COMPATIBLE, { ...COMPATIBLE, baseUrl: `${vendor.url}/openrouter.ai/v1` }]) {
      const [body] = await sent(entry, { reasoning: "high", tools: TOOLS });
      assert.deepEqual(body?.reasoning, { effort: "high" });
      const [first] = toolsOf(body);
      assert.deepEqual([first?.type, first?.name], ["function", "look"]);
    }
  });

  test("says of each tool whether it is strict, because a tool that does not becomes strict", async () => {
    const list = [tool("loose"), tool("closed", CLOSED)];
    for (const [entry, closed] of [
      [{}, true],
      [COMPATIBLE, false],
    ] as const) {
      const [body] = await sent(entry, { tools: { ...TOOLS, list } });
      assert.deepEqual(
        body?.tools,
        [
          { name: "loose", strict: false, parameters: JSON.parse(LOOSE) },
          { name: "closed", strict: closed, parameters: JSON.parse(CLOSED) },
        ].map((each) => ({ type: "function", ...each })),
      );
    }
  });

  test("sends a tool's schema to OpenAI as it takes it", async () => {
    const itemised = '{"type":"object","properties":{"a":{"type":"array","items":{}}}}';
    const array = { ...tool("array", '{"type":"object","properties":{"a":{"type":"array"}}}'), itemised };
    const [body] = await sent({}, { tools: { ...TOOLS, list: [array, tool("either", '{"anyOf":[{}]}')] } });
    const [first, second] = toolsOf(body);
    assert.deepEqual(first?.parameters, JSON.parse(itemised));
    assert.deepEqual(second?.parameters, { type: "object", properties: {} });
    assert.match(String(second?.description), /"anyOf":\[\{\}\]/);
  });

  test("names the tool that must be called, and asks for it in words where that is refused", async () => {
    const choice = { name: "look" };
    const refused = { status: 400, error: { message: "Unknown parameter: 'tool_choice'.", param: "tool_choice" } };
    const [first, second] = await sent({}, { tools: { ...TOOLS, choice, parallel: false } }, refused);
    assert.deepEqual(first?.tool_choice, { type: "function", name: "look" });
    assert.deepEqual([first?.parallel_tool_calls, second?.tool_choice], [false, undefined]);
    assert.match(JSON.stringify(second?.input), /Call the tool look\./);
  });

  test("has a ceiling of at least 16 tokens", async () => {
    for (const [maxTokens, ceiling] of [
      [1, 16],
      [17, 17],
    ] as const) {
      const [body] = await sent({}, { maxTokens });
      assert.equal(body?.max_output_tokens, ceiling);
    }
  });

  test("has the key of the cache at OpenAI only", async () => {
    assert.equal((await sent({}, { cacheKey: "k" }))[0]?.prompt_cache_key, "k");
    assert.equal((await sent(COMPATIBLE, { cacheKey: "k" }))[0]?.prompt_cache_key, undefined);
  });
});

describe("a refused option", () => {
  const refused = (param: string, message: string) => ({
    status: 400,
    error: { message, type: "invalid_request_error", param, code: "unsupported_value" },
  });

  test("asks for as little thinking as the model takes", async () => {
    const replies = ["none", "minimal"].map((value) =>
      refused("reasoning.effort", `Unsupported value: '${value}' is not supported with the 'gpt-6-astra' model.`),
    );
    const bodies = await sent({}, { reasoning: "none", tools: TOOLS }, ...replies);
    assert.deepEqual(
      bodies.map(({ reasoning }) => reasoning),
      ["none", "minimal", "low"].map((effort) => ({ effort })),
    );
  });

  test("is left out, and no other one", async () => {
    const more: Partial<ModelCall> = { temperature: 0.5, reasoning: "low", maxTokens: 50, cacheKey: "k", tools: TOOLS };
    for (const [param, member] of [
      ["temperature", "temperature"],
      ["reasoning.effort", "reasoning"],
      ["max_output_tokens", "max_output_tokens"],
      ["prompt_cache_key", "prompt_cache_key"],
    ] as const) {
      const message = `Unsupported parameter: '${param}' is not supported with this model.`;
      const [first = {}, second = {}, ...others] = await sent({}, more, refused(param, message));
      const { [member]: left, ...rest } = first;
      assert.deepEqual([second, others, left === undefined], [rest, [], false], param);
    }
  });

  test("is the strict mode of the tool whose schema is refused", async () => {
    const message = "Invalid schema for function 'look': In context=(), 'required' is required to be supplied.";
    const tools = { ...TOOLS, list: [tool("look", CLOSED)] };
    const bodies = await sent({}, { tools }, refused("tools[0].parameters", message));
    assert.deepEqual(
      bodies.map((body) => toolsOf(body)[0]?.strict),
      [true, false],
    );
  });

  test("is the schema in its strict mode, then in any, then in the format", async () => {
    const message = "Invalid schema for response_format 'answer': In context=(), 'additionalProperties' is required.";
    const reply = refused("text.format.schema", message);
    const format = { type: "schema" as const, schema: CLOSED };
    const bodies = await sent({}, { format }, reply, reply, refused("text.format", "Unknown parameter."));
    assert.deepEqual(
      bodies.map(({ text }) => {
        const { type, strict } = (text as { format: Json } | undefined)?.format ?? {};
        return [type, strict];
      }),
      [
        ["json_schema", true],
        ["json_schema", false],
        ["json_object", undefined],
        [undefined, undefined],
      ],
    );
    assert.ok(JSON.stringify(bodies[2]?.input).includes(JSON.stringify(CLOSED).slice(1, -1)));
  });
});

/** What a collector has after these events; a text is one event. */
function read(events: readonly (object | string)[], takesCalls = true) {
  const into = new Collector(takesCalls);
  let text = "";
  for (const event of events) {
    if (!into.isWhole) responses.readEvent(typeof event === "string" ? event : JSON.stringify(event), into);
    text += into.take();
  }
  const { calls, reason, usage, thinks, version, isWhole } = into;
  return { text, calls, reason, usage, thinks, version, isWhole };
}

const completed = (more: object = {}) => ({ type: "response.completed", response: { status: "completed", ...more } });
const textPart = (text: string) => ({ type: "output_text", text, annotations: [] });
const messageItem = (...texts: string[]) => ({ type: "message", role: "assistant", content: texts.map(textPart) });
const callItem = (id: string, name: string, given: string) => ({
  ...{ type: "function_call", id: `fc_${id}`, call_id: `call_${id}` },
  ...{ name, arguments: given },
});

const CALLED = callItem("a", "look", "{}");

describe("a stream", () => {
  test("has calls in parallel, whose parts are told apart by their place", () => {
    const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item });
    const part = (output_index: number, delta: string) => ({
      ...{ type: "response.function_call_arguments.delta", output_index, item_id: `other_${delta}`, delta },
    });
    const { calls, text, reason } = read([
      added(1, callItem("a", "look", "")),
      added(2, callItem("b", "find", "")),
      part(2, '{"b"'),
      part(1, '{"a":'),
      part(2, ":2}"),
      part(1, "1.0}"),
      completed(),
    ]);
    assert.deepEqual(calls, [
      { name: "look", arguments: '{"a":1.0}' },
      { name: "find", arguments: '{"b":2}' },
    ]);
    assert.deepEqual([text, reason], ["", "stop"]);
  });

  const item = fc.oneof(
    fc.record({ texts: fc.array(fc.string(), { minLength: 1, maxLength: 3 }) }),
    fc.record({ name: fc.constantFrom("look", "find"), given: fc.json() }),
    fc.record({ summary: fc.string({ minLength: 1 }) }),
  );
  type Item = { texts: string[] } | { name: string; given: string } | { summary: string };
  const halves = (text: string) => [text.slice(0, text.length / 2), text.slice(text.length / 2)];

  /** An item of the output, and the events that bring it, by their kind. */
  function eventsOf(
    each: Item,
    output_index: number,
  ): Record<"deltas" | "dones" | "parts", object[]> & { item: object } {
    if ("summary" in each) {
      const reasoning = { type: "reasoning", summary: [{ type: "summary_text", text: each.summary }] };
      const delta = { type: "response.reasoning_summary_text.delta", output_index, delta: each.summary };
      return { deltas: [delta], dones: [], parts: [], item: reasoning };
    }
    if ("name" in each) {
      const whole = callItem(String(output_index), each.name, each.given);
      const type = "response.function_call_arguments";
      const added = { type: "response.output_item.added", output_index, item: { ...whole, arguments: "" } };
      const deltas = halves(each.given).map((delta) => ({ type: `${type}.delta`, output_index, delta }));
      const dones = [added, { type: `${type}.done`, output_index, arguments: each.given }];
      return { deltas: [added, ...deltas], dones, parts: dones, item: whole };
    }
    const places = each.texts.map((text, content_index) => ({ text, at: { output_index, content_index } }));
    return {
      deltas: places.flatMap(({ text, at }) =>
        halves(text).map((delta) => ({ type: "response.output_text.delta", ...at, delta })),
      ),
      dones: places.map(({ text, at }) => ({ type: "response.output_text.done", ...at, text })),
      parts: places.map(({ text, at }) => ({ type: "response.content_part.done", ...at, part: textPart(text) })),
      item: messageItem(...each.texts),
    };
  }

  test("loses and doubles nothing, whichever of its events bring the text and the arguments", () => {
    const ways = fc.constantFrom("all" as const, "deltas", "dones", "parts", "items", "last");
    fc.assert(
      fc.property(fc.array(item, { maxLength: 4 }), ways, (items, way) => {
        const events = items.flatMap((each, at) => {
          const { deltas, dones, parts, item: whole } = eventsOf(each, at);
          const done = { type: "response.output_item.done", output_index: at, item: whole };
          return { all: [...deltas, ...dones, ...parts, done], deltas, dones, parts, items: [done], last: [] }[way];
        });
        // Some servers do not count the reasoning in the places of their events.
        const output = [{ type: "reasoning", summary: [] }, ...items.map((each, at) => eventsOf(each, at).item)];
        const whole = new Collector(true);
        responses.readWhole(JSON.stringify({ status: "completed", output }), whole);
        const { text, calls } = read([...events, completed(way === "all" || way === "last" ? { output } : {})]);
        assert.deepEqual([text, calls], [whole.take(), whole.calls]);
        const given = items.flatMap((each) => ("name" in each ? { name: each.name, arguments: each.given } : []));
        assert.deepEqual(calls, given);
      }),
      { numRuns: 500 },
    );
  });

  test("has each text and each call once, whatever place servers give to the events that repeat them", () => {
    const given = ['{"a":1}', '{"b":2}'];
    const items = [messageItem("It rains."), ...given.map((text, i) => callItem(`${i}`, "look", text))];
    /** All events of the items. @param place of an event: by the number of its item, its own, and whether it repeats */
    const eventsOf = (place: (item: number, event: number, isDone: boolean) => object, cut: (item: Json) => Json) =>
      items.flatMap((each, n): object[] => {
        const part = textPart("It rains.");
        const ends = { ...place(n, 3, true), item: cut(each) };
        if ("arguments" in each) {
          const type = "response.function_call_arguments";
          const added = { ...place(n, 0, false), item: cut({ ...each, arguments: "" }) };
          return [
            { type: "response.output_item.added", ...added },
            ...halves(each.arguments).map((delta, i) => ({ type: `${type}.delta`, ...place(n, i, false), delta })),
            { type: `${type}.done`, ...place(n, 2, true), arguments: each.arguments },
            { type: "response.output_item.done", ...ends },
          ];
        }
        const deltas = halves("It rains.").map((delta, i) => ({ ...place(n, i, false), delta }));
        return [
          { type: "response.output_item.added", ...place(n, 0, false), item: { ...each, content: [] } },
          ...deltas.map((delta) => ({ type: "response.output_text.delta", ...delta })),
          { type: "response.output_text.done", ...place(n, 2, true), text: "It rains." },
          { type: "response.content_part.done", ...place(n, 3, true), part },
          { type: "response.output_item.done", ...ends },
        ];
      });
    const { calls } = read([completed({ output: items })]);
    const whole = (item: Json) => item;
    for (const [name, events] of [
      // vLLM before 0.19 counts each event as a part of its own.
      ["parts", eventsOf((output_index, content_index) => ({ output_index, content_index }), whole)],
      // vLLM with gpt-oss has the next place at the end of an item, and another identifier of the call.
      [
        "next",
        eventsOf(
          (n, _, isDone) => ({ output_index: n + (isDone ? 1 : 0), content_index: 0, item_id: `fc_${n - 1}` }),
          (item) => ({ ...item, id: item.arguments === "" ? item.id : null, call_id: `fc_${item.arguments}` }),
        ),
      ],
      // llama.cpp has no places, and names a call by the `call_id` of its item.
      [
        "none",
        eventsOf(
          (n) => ({ item_id: `call_${n - 1}` }),
          ({ id: _, ...item }) => item,
        ),
      ],
      // Proxies that count messages and calls apart, or nothing.
      ["same", eventsOf(() => ({ output_index: 0, content_index: 0 }), whole)],
      // GitHub Copilot has another identifier in each event.
      ["others", eventsOf((n, m) => ({ output_index: n, content_index: 0, item_id: `${n} ${m}` }), whole)],
    ] as const) {
      const all = read([...events, completed({ output: items })]);
      assert.deepEqual([all.text, all.calls], ["It rains.", calls], name);
      assert.deepEqual(
        calls.map(({ arguments: text }) => text),
        given,
      );
    }
  });

  test("has as text what the model says beside its work only if it says nothing else", () => {
    const aside = { ...messageItem("I look."), phase: "commentary" };
    const answer = { ...messageItem("It rains."), phase: "final_answer" };
    for (const [output, text] of [
      [[aside, answer], "It rains."],
      [[answer, aside], "It rains."],
      [[aside, CALLED], "I look."],
      [[aside], "I look."],
    ] as const) {
      const events = output.flatMap((item, output_index) => {
        const [part] = "content" in item ? item.content : [];
        const delta = { type: "response.output_text.delta", output_index, content_index: 0, delta: part?.text };
        const [added, done] = ["added", "done"].map((when) => ({ type: `response.output_item.${when}`, output_index }));
        return [{ ...added, item: { ...item, content: [] } }, ...(part ? [delta] : []), { ...done, item }];
      });
      const streamed = read([...events, completed({ output })]);
      const into = new Collector(true);
      responses.readWhole(JSON.stringify({ status: "completed", output }), into);
      assert.deepEqual([streamed.text, into.take()], [text, text]);
      assert.deepEqual(streamed.calls, into.calls);
    }
  });

  test("skips what the model says beside its work also between the events of the answer", () => {
    const added = (output_index: number, phase: string) => ({
      ...{ type: "response.output_item.added", output_index },
      item: { type: "message", phase, content: [] },
    });
    const delta = (output_index: number, text: string) => ({
      ...{ type: "response.output_text.delta", output_index, content_index: 0, delta: text },
    });
    const begun = [added(0, "commentary"), delta(0, "I "), added(1, "final_answer")];
    assert.equal(read([...begun, delta(1, "It "), delta(0, "look."), delta(1, "rains.")]).text, "It rains.");
    // Where a server counts nothing.
    assert.equal(read([...begun.slice(0, 2), added(0, "final_answer"), delta(0, "It rains.")]).text, "It rains.");
  });

  test("has no text if it ends while the model has only said something beside its work", async () => {
    const output = [{ ...messageItem("I look."), phase: "commentary" }];
    const incomplete = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, output };
    const replies = [
      `data: ${JSON.stringify({ type: "response.incomplete", response: incomplete })}\n\n`,
      JSON.stringify(incomplete),
    ];
    for (const raw of replies) {
      // The call is repeated with room to think, as after any ceiling that was reached without text.
      const [first, second] = await sent({}, { maxTokens: 50, reasoning: "low" }, { raw });
      assert.deepEqual([first?.max_output_tokens, second?.max_output_tokens], [50, 4_146]);
    }
    const { text } = read([{ type: "response.incomplete", response: { ...incomplete, output: [...output, CALLED] } }]);
    assert.equal(text, "I look.", "beside a call");
  });

  test("names the model and its usage, and shows that the model thinks", () => {
    const usage = {
      ...{ input_tokens: 100, input_tokens_details: { cached_tokens: 60 } },
      ...{ output_tokens: 50, output_tokens_details: { reasoning_tokens: 30 }, total_tokens: 150 },
    };
    const { version, usage: counts } = read([
      { type: "response.created", response: { status: "in_progress", model: "gpt-6-astra-2026-09-01" } },
      completed({ model: "other", usage }),
    ]);
    assert.equal(version, "gpt-6-astra-2026-09-01");
    assert.deepEqual(counts, { inputTokens: 100, cachedTokens: 60, outputTokens: 50, thinkingTokens: 30 });
    for (const type of ["response.reasoning_text.delta", "response.reasoning_summary_part.added"])
      assert.equal(read([{ type, delta: "hm" }]).thinks, true);
    const done = (more: object) => ({ type: "response.output_item.done", item: { type: "reasoning", ...more } });
    assert.equal(read([done({ summary: [] })]).thinks, false, "an empty item is no thinking");
    assert.equal(read([done({ summary: [], content: [{ type: "reasoning_text", text: "hm" }] })]).thinks, true);
  });

  test("ends with the reason of an incomplete response", () => {
    for (const [reason, end] of [
      ["max_output_tokens", "length"],
      // xAI, Volcengine and proxies.
      ["length", "length"],
      ["max_tokens", "length"],
      ["content_filter", "content_filter"],
      ["steered", "unknown"],
      ["constructor", "unknown"],
      [undefined, "unknown"],
    ] as const) {
      const response = { status: "incomplete", incomplete_details: { reason } };
      assert.equal(read([{ type: "response.incomplete", response }]).reason, end, reason);
    }
    // The name of the event stands for a status that is missing.
    assert.equal(read([{ type: "response.completed", response: null }]).reason, "stop");
    // What some gateways send in its place.
    const { reason, isWhole } = read([{ type: "response.done", response: { output: [] } }]);
    assert.deepEqual([reason, isWhole], ["stop", true]);
  });

  test("is a refusal if the model says so", () => {
    const delta = { type: "response.refusal.delta", output_index: 0, content_index: 0, delta: "I can't" };
    const item = { type: "message", content: [{ type: "refusal", refusal: "I can't" }] };
    for (const events of [
      [delta],
      [{ type: "response.refusal.done", refusal: "I can't" }],
      [{ type: "response.output_item.done", output_index: 0, item }],
    ]) {
      const { text, reason } = read([...events, completed()]);
      assert.deepEqual([text, reason], ["", "content_filter"]);
    }
    assert.equal(read([completed({ output: [item] })]).reason, "content_filter");
  });
});

describe("a failure", () => {
  const cases: [error: object | string, status: number | undefined, kind: string | undefined, retryable: boolean][] = [
    [{ code: "server_error", message: "m" }, 500, undefined, true],
    [{ code: "rate_limit_exceeded", message: "m" }, 429, undefined, true],
    [{ code: "too_many_requests", type: "too_many_requests", message: "m" }, 429, undefined, true],
    [{ code: "server_is_overloaded", type: "service_unavailable_error", message: "m" }, 503, undefined, true],
    [{ code: "slow_down", message: "m" }, 503, undefined, true],
    [{ code: "vector_store_timeout", message: "m" }, 500, undefined, true],
    [{ code: "insufficient_quota", message: "m" }, 429, undefined, false],
    [{ code: "invalid_image_format", message: "m" }, 400, undefined, false],
    [{ code: "image_parse_error", message: "m" }, 400, undefined, false],
    [{ code: null, type: "invalid_request_error", message: "m" }, 400, undefined, false],
    [{ code: 402, message: "no credit" }, 402, undefined, false],
    [{ code: "invalid_prompt", message: "m" }, undefined, "refused", false],
    [{ code: "bio_policy", message: "m" }, undefined, "refused", false],
    [{ code: "cyber_policy_violation", message: "m" }, undefined, "refused", false],
    [{ code: "image_content_policy_violation", message: "m" }, undefined, "refused", false],
    [{ code: "context_length_exceeded", message: "m" }, undefined, "too_long", false],
    [{ code: "odd", message: "Your input exceeds the context window of this model." }, undefined, "too_long", false],
    [{ code: "odd", message: "m" }, undefined, undefined, true],
    ["prompt is too long", undefined, "too_long", false],
  ];

  test("is treated by its code, in each place where the vendor puts it", () => {
    for (const [error, status, kind, retryable] of cases) {
      const events: object[] = [
        { type: "response.failed", response: { status: "failed", error } },
        { type: "error", error, sequence_number: 2 },
        { error },
      ];
      // As documented: without a type beside that of the event.
      if (typeof error === "object" && !("type" in error)) events.push({ ...error, type: "error", sequence_number: 2 });
      const bodies = [{ status: "failed", error, output: [] }, { error }];
      const attempts = [
        ...events.map((event) => () => responses.readEvent(JSON.stringify(event), new Collector())),
        ...bodies.map((body) => () => responses.readWhole(JSON.stringify(body), new Collector())),
      ];
      for (const [i, attempt] of attempts.entries()) {
        assert.throws(attempt, (thrown: ModelError) => {
          const found = [thrown.status, thrown.kind, thrown.retryable];
          assert.deepEqual(found, [status, kind, retryable], `${JSON.stringify(error)} ${i}`);
          return true;
        });
      }
    }
  });

  test("is a response that has failed without an error, was cancelled, or is still running", () => {
    for (const status of ["failed", "cancelled", "queued", "in_progress"]) {
      const failed = { name: "ModelError", retryable: true };
      const into = new Collector();
      assert.throws(() => responses.readWhole(JSON.stringify({ status, error: null, output: [] }), into), failed);
      assert.equal(into.isWhole, false);
    }
    assert.throws(() => responses.readEvent('{"type":"response.failed"}', new Collector()), { retryable: true });
  });

  test("is read in the body of an error as with chat completions", () => {
    const message = "The encrypted content could not be verified.";
    const { about, param } = responses.readError(JSON.stringify({ error: { message, param: "input[1]" } }));
    assert.ok(about.includes(message));
    assert.equal(param, "input[1]");
    assert.equal(responses.readError('{"error":{"code":"context_length_exceeded"}}').kind, "too_long");
  });
});

test("bounds the calls of a stream and their arguments", () => {
  const added = (output_index: number) => ({
    ...{ type: "response.output_item.added", output_index, item: callItem("a", "look", "") },
  });
  assert.throws(() => read(Array.from({ length: 129 }, (_, at) => added(at))), { name: "ModelError" });
  const done = { type: "response.function_call_arguments.done", output_index: 0, arguments: "x".repeat(1_048_577) };
  assert.throws(() => read([added(0), done]), { name: "ModelError", retryable: false });
});

test("reads no call where none may be made", () => {
  const events = [{ type: "response.output_item.done", output_index: 0, item: callItem("a", "look", "{}") }];
  assert.deepEqual(read([...events, completed()], false).calls, []);
});
