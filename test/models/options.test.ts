import assert from "node:assert/strict";
import { afterAll, beforeAll, beforeEach, describe, test } from "vitest";
import { createHttpClient } from "../../src/models/http.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { complete, type Model, type ModelCall, type Prompt, type Reasoning } from "../../src/models/port/model.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { type ScriptedVendor, startVendor, type VendorCall, type WireKind } from "../helpers/vendors.ts";
import { call } from "./fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
const vendors = new Map<WireKind, ScriptedVendor>();
beforeAll(async () => {
  for (const kind of ["openai", "responses", "anthropic", "google"] as const)
    vendors.set(kind, await startVendor(kind));
});
beforeEach(() => {
  for (const vendor of vendors.values()) vendor.always({});
});
afterAll(async () => {
  await http.close();
  for (const vendor of vendors.values()) await vendor.close();
});

type Json = Record<string, unknown>;

/** A model of a scripted vendor, and the bodies that it sends for a call. */
function modelOf(kind: WireKind, overrides: Partial<ModelEntry> = {}) {
  const vendor = vendors.get(kind) ?? assert.fail();
  const model: Model = createVendorModel(vendor.entry(overrides), http);
  const sent = async (more: Partial<ModelCall> = {}): Promise<Json[]> => {
    const before = vendor.calls.length;
    await complete(model, call({ streamed: false, ...more }));
    return vendor.calls.slice(before).map(({ json }) => json);
  };
  return { vendor, model, sent };
}

/** Refuses calls whose body has this member, in words for which the option is never sent again. */
const refusing =
  (member: string, message = `Unsupported parameter: '${member}' is not supported with this model.`) =>
  ({ body }: VendorCall) =>
    body.includes(`"${member}"`) ? { status: 400, error: { message, type: "invalid_request_error" } } : {};

const has = (bodies: readonly Json[], member: string) => bodies.map((body) => JSON.stringify(body).includes(member));

describe("ceilings", () => {
  test("OpenAI gets max_completion_tokens, other servers max_tokens", async () => {
    const [own] = await modelOf("openai").sent({ maxTokens: 7 });
    assert.deepEqual([own?.max_completion_tokens, own?.max_tokens], [7, undefined]);
    const [other] = await modelOf("openai", { vendor: "openai-compatible" }).sent({ maxTokens: 7 });
    assert.deepEqual([other?.max_completion_tokens, other?.max_tokens], [undefined, 7]);
  });

  test("the other name is learned when the first one is refused", async () => {
    for (const [overrides, first, second] of [
      [{}, "max_completion_tokens", "max_tokens"],
      [{ vendor: "openai-compatible" }, "max_tokens", "max_completion_tokens"],
    ] as const) {
      const { vendor, sent } = modelOf("openai", overrides);
      vendor.always(refusing(first));
      const bodies = [...(await sent({ maxTokens: 7 })), ...(await sent({ maxTokens: 8 }))];
      assert.deepEqual(
        bodies.map((body) => [body[first], body[second]]),
        [
          [7, undefined],
          [undefined, 7],
          [undefined, 8],
        ],
      );
    }
  });

  test("the ceiling of the catalogue bounds that of a call, and stands in for it", async () => {
    for (const kind of ["openai", "responses", "anthropic", "google"] as const) {
      const { sent } = modelOf(kind, { maxOutputTokens: 500 });
      for (const more of [{}, { maxTokens: 9_000 }]) {
        const [body] = await sent(more);
        assert.match(JSON.stringify(body), /"(max_(completion_|output_)?tokens|maxOutputTokens)":500\b/);
      }
    }
  });

  test("no ceiling is sent where neither the call nor the catalogue has one, but for Anthropic", async () => {
    for (const kind of ["openai", "responses", "google"] as const) {
      assert.doesNotMatch(JSON.stringify(await modelOf(kind).sent()), /max_?(completion_|output_?)?tokens/i);
    }
    assert.equal(typeof (await modelOf("anthropic").sent())[0]?.max_tokens, "number");
  });
});

describe("a ceiling that does not fit beside the prompt", () => {
  /** Refuses ceilings above the room, in the words of vLLM or Anthropic. */
  const tight =
    (words: (asked: number) => string, room: number) =>
    ({ json }: VendorCall) => {
      const asked = Number(json.max_tokens ?? json.max_completion_tokens ?? Number.NaN);
      return asked > room ? { status: 400, error: { message: words(asked), type: "invalid_request_error" } } : {};
    };
  const anthropic = (asked: number) =>
    `input length and \`max_tokens\` exceed context limit: 178959 + ${asked} > 200000, decrease input length`;
  const vllm = (asked: number) =>
    `'max_tokens' or 'max_completion_tokens' is too large: ${asked}. This model's maximum context length is 65536 ` +
    `tokens and your request has 33537 input tokens (${asked} > 65536 - 33537).`;
  const atLeast = (asked: number) =>
    `This model's maximum context length is 65536 tokens. However, you requested ${asked} output tokens and your ` +
    "prompt contains at least 33537 input tokens, for a total of at least 65537 tokens.";
  const COMPATIBLE: Partial<ModelEntry> = { vendor: "openai-compatible" };

  test("is lowered to what fits, for this call only", async () => {
    for (const [kind, overrides, words, room] of [
      ["anthropic", {}, anthropic, 21_041],
      ["openai", COMPATIBLE, vllm, 31_999],
    ] as const) {
      const { vendor, sent } = modelOf(kind, overrides);
      vendor.always(tight(words, room));
      const ceilings = async () => (await sent({ maxTokens: 32_000 })).map(({ max_tokens }) => max_tokens);
      assert.deepEqual(await ceilings(), [32_000, room]);
      vendor.always({});
      assert.deepEqual(await ceilings(), [32_000]);
    }
  });

  test("is left out where the words do not say what fits", async () => {
    const { vendor, sent } = modelOf("openai", COMPATIBLE);
    for (const words of [atLeast, () => "Please reduce the length of the messages or completion. context_length"]) {
      vendor.always(tight(words, 31_999));
      const bodies = await sent({ maxTokens: 32_000 });
      assert.deepEqual(
        bodies.map(({ max_tokens, max_completion_tokens }) => [max_tokens, max_completion_tokens]),
        [
          [32_000, undefined],
          [undefined, undefined],
        ],
      );
    }
    vendor.always({});
    assert.equal((await sent({ maxTokens: 32_000 }))[0]?.max_tokens, 32_000);
  });

  test("is lowered where the words do not say what fits and the vendor demands one", async () => {
    const { vendor, sent } = modelOf("anthropic");
    vendor.always(tight(() => "input length and `max_tokens` exceed context limit", 10_000));
    const [, second, ...more] = await sent({ maxTokens: 32_000 });
    assert.ok(Number(second?.max_tokens) >= 1 && Number(second?.max_tokens) <= 10_000);
    assert.equal(more.length, 0);
  });

  test("is too long after a second refusal, and when the prompt alone does not fit", async () => {
    const { vendor, model } = modelOf("openai", COMPATIBLE);
    const attempt = async (words: (asked: number) => string): Promise<number> => {
      const before = vendor.calls.length;
      vendor.always(({ json }) => ({ status: 400, error: { message: words(Number(json.max_tokens ?? 0)) } }));
      const asked = complete(model, call({ streamed: false, maxTokens: 32_000 }));
      await assert.rejects(asked, { kind: "too_long", retryable: false });
      return vendor.calls.length - before;
    };
    assert.equal(await attempt(vllm), 2);
    assert.equal(await attempt(atLeast), 2);
    assert.equal(await attempt(() => "This model's maximum context length is 8192. You sent 9000 input tokens."), 1);
    const sum = (asked: number) =>
      `This model's maximum context length is 16384 tokens. However, you requested ${asked + 112_946} tokens ` +
      `(112946 in the messages, ${asked} in the completion).`;
    assert.equal(await attempt(sum), 1);
  });
});

test("a ceiling refused for its value stays, although the model does not know its other name", async () => {
  const { vendor, sent } = modelOf("openai");
  vendor.always(({ json }) => {
    const message =
      json.max_tokens === undefined
        ? `max_completion_tokens is too large: ${json.max_completion_tokens}.`
        : "Unsupported parameter: 'max_tokens' is not supported with this model.";
    const isTaken = Number(json.max_completion_tokens ?? 0) <= 100 && json.max_tokens === undefined;
    return isTaken ? {} : { status: 400, error: { message, type: "invalid_request_error" } };
  });
  assert.deepEqual(
    (await sent({ maxTokens: 9_000 })).map(({ max_completion_tokens, max_tokens }) => [
      max_completion_tokens,
      max_tokens,
    ]),
    [
      [9_000, undefined],
      [undefined, 9_000],
      [undefined, undefined],
    ],
  );
  assert.equal((await sent({ maxTokens: 50 }))[0]?.max_completion_tokens, 50);
});

describe("usage of a stream", () => {
  test("is asked for in streams only", async () => {
    const { sent } = modelOf("openai");
    assert.deepEqual((await sent({ streamed: true }))[0]?.stream_options, { include_usage: true });
    assert.equal((await sent())[0]?.stream_options, undefined);
  });

  test("is no longer asked for when a server refuses stream_options", async () => {
    const { vendor, sent, model } = modelOf("openai", { vendor: "openai-compatible" });
    vendor.always(({ body }) =>
      body.includes("stream_options")
        ? { status: 400, error: { message: "Unrecognized request argument supplied: stream_options" } }
        : { usage: null },
    );
    assert.deepEqual(has(await sent({ streamed: true }), "stream_options"), [true, false]);
    assert.deepEqual(has(await sent({ streamed: true }), "stream_options"), [false]);
    assert.equal((await complete(model, call())).end.usage, undefined);
  });
});

describe("options that a model does not take beside tools", () => {
  const list = [{ name: "look", description: "", parameters: '{"type":"object"}' }];
  const tools = { list, choice: "auto" as const, parallel: true };

  test("OpenAI's model that does not think in a call with tools thinks in others", async () => {
    const { vendor, sent } = modelOf("openai");
    const message =
      "Function tools with reasoning_effort are not supported for gpt-6-luna in /v1/chat/completions. To use " +
      "function tools, use /v1/responses or set reasoning_effort to 'none'.";
    const error = { message, type: "invalid_request_error", param: "reasoning_effort" };
    // Left out, the model's own effort is refused as well.
    vendor.always(({ json }) => (json.tools && json.reasoning_effort !== "none" ? { status: 400, error } : {}));
    const efforts = async (more: Partial<ModelCall>) => (await sent(more)).map((body) => body.reasoning_effort);
    assert.deepEqual(await efforts({ reasoning: "high", tools }), ["high", "none"]);
    assert.deepEqual(await efforts({ reasoning: "low", tools }), ["none"]);
    assert.deepEqual(await efforts({ reasoning: "high" }), ["high"]);
  });

  test("Mistral gets a message between the results of tools and the user's text", async () => {
    const { vendor, sent } = modelOf("openai", { vendor: "openai-compatible" });
    const roles = ({ messages }: Json) => (messages as { role: string }[]).map(({ role }) => role);
    const error = { message: "Unexpected role 'user' after role 'tool'", type: "invalid_request_message_order" };
    vendor.always(({ json }) => (/tool,user/.test(String(roles(json))) ? { status: 400, error } : {}));
    const asked = (text: string): Prompt => ({
      system: "",
      messages: [
        { role: "user", text: "Look." },
        { role: "assistant", text: "", calls: [{ id: "c1", name: "look", arguments: "{}" }] },
        { role: "user", text, results: [{ id: "c1", name: "look", text: "sunny" }] },
      ],
    });
    const before = ["user", "assistant", "tool"];
    const spoken = async (text: string) => (await sent({ prompt: asked(text), tools })).map(roles);
    assert.deepEqual(await spoken(""), [before]);
    const between = [...before, "assistant", "user"];
    assert.deepEqual(await spoken("In short?"), [[...before, "user"], between]);
    assert.deepEqual(await spoken("In short?"), [between]);
  });

  test("a sign stands for thinking that is not kept where a server demands it", async () => {
    const prompt: Prompt = {
      system: "",
      messages: [
        { role: "user", text: "Look." },
        { role: "assistant", text: "", calls: [{ id: "c1", name: "look", arguments: "{}" }] },
        { role: "user", text: "", results: [{ id: "c1", name: "look", text: "sunny" }] },
      ],
    };
    for (const [member, message] of [
      ["reasoning_content", "thinking is enabled but reasoning_content is missing in assistant tool call message at 2"],
      ["reasoning_content", "The `reasoning_content` in the thinking mode must be passed back to the API."],
      ["thought_signature", "Function call is missing a thought_signature in functionCall parts."],
    ] as const) {
      const { vendor, sent } = modelOf("openai", { vendor: "openai-compatible" });
      const error = { message, type: "invalid_request_error" };
      vendor.always(({ body }) => (/"tool_calls"/.test(body) && !body.includes(member) ? { status: 400, error } : {}));
      const asked = async () => has(await sent({ prompt, tools, reasoning: "low" }), member);
      assert.deepEqual(await asked(), [false, true], message);
      assert.deepEqual(await asked(), [true], message);
      assert.deepEqual(
        (await sent({ reasoning: "low" })).map(({ reasoning_effort }) => reasoning_effort),
        ["low"],
      );
    }
  });

  test("Claude that cannot be forced to call a tool is asked without", async () => {
    const { vendor, sent } = modelOf("anthropic");
    const refused = (message: string) => ({ status: 400, error: { message, type: "invalid_request_error" } });
    vendor.always(({ json }) => {
      const { type } = (json.thinking ?? {}) as { type?: string };
      if (type === "disabled") return refused('"thinking.type.disabled" is not supported for this model.');
      return /"tool_choice":\{"type":"(?:any|tool)"/.test(JSON.stringify(json))
        ? refused('tool_choice: type "tool" and "any" are not supported for this model.')
        : {};
    });
    const asked = async (choice: "required" | { name: string }) =>
      (await sent({ reasoning: "high", tools: { ...tools, choice } })).map(({ thinking, tool_choice, system }) => [
        thinking,
        tool_choice,
        system,
      ]);
    assert.deepEqual(await asked("required"), [
      [{ type: "disabled" }, { type: "any" }, undefined],
      [undefined, { type: "any" }, undefined],
      [{ type: "adaptive" }, { type: "auto" }, "Call a tool."],
    ]);
    assert.deepEqual(await asked({ name: "look" }), [[{ type: "adaptive" }, { type: "auto" }, "Call the tool look."]]);
  });

  test("Gemini that takes no format beside tools reads the schema in the prompt there", async () => {
    const message = "Function calling with a response mime type: 'application/json' is unsupported";
    const schema = '{"type":"object","properties":{"city":{"type":"string"}}}';
    for (const format of [{ type: "schema", schema }, { type: "json" }] as const) {
      const { vendor, sent } = modelOf("google");
      vendor.always(({ body }) =>
        body.includes('"tools"') && body.includes("responseMimeType")
          ? { status: 400, error: { message, type: "INVALID_ARGUMENT" } }
          : {},
      );
      const first = await sent({ format, tools });
      assert.deepEqual(has(first, "responseMimeType"), [true, false]);
      if (format.type === "schema") assert.match(JSON.stringify(first[1]?.systemInstruction), /city/);
      assert.deepEqual(has(await sent({ format, tools }), "responseMimeType"), [false]);
      assert.deepEqual(has(await sent({ format }), "responseMimeType"), [true]);
      assert.deepEqual(has(await sent({ format }), "responseJsonSchema"), [format.type === "schema"]);
    }
  });
});

test("instructions are in the first message for a model that takes them nowhere else", async () => {
  const prompt = { system: "Be brief.", messages: [{ role: "user" as const, text: "Hi" }] };
  for (const [kind, overrides, message] of [
    ["openai", { vendor: "openai-compatible" }, "System role not supported"],
    ["google", { model: "gemma-3-27b-it" }, "Developer instruction is not enabled for models/gemma-3-27b-it"],
  ] as const) {
    const { vendor, sent } = modelOf(kind, overrides);
    const isApart = ({ body }: VendorCall) => /"role":"system"|systemInstruction/.test(body);
    vendor.always((asked) => (isApart(asked) ? { status: 400, error: { message, type: "INVALID_ARGUMENT" } } : {}));
    const first = await sent({ prompt });
    assert.equal(first.length, 2);
    for (const [body] of [first.slice(1), await sent({ prompt })])
      assert.match(JSON.stringify(body?.messages ?? body?.contents), /"Be brief\.\\n\\nHi"/);
    assert.equal((await sent({ prompt })).length, 1);
  }
});

describe("prompt caching", () => {
  const LONG = "x".repeat(5_000);
  const prompt = { system: "", messages: [{ role: "user" as const, text: LONG }] };

  test("OpenAI gets the key of the prefix, other servers do not", async () => {
    assert.equal((await modelOf("openai").sent({ cacheKey: "k1" }))[0]?.prompt_cache_key, "k1");
    const compatible = modelOf("openai", { vendor: "openai-compatible" });
    assert.deepEqual(has(await compatible.sent({ cacheKey: "k1" }), "k1"), [false]);
    assert.deepEqual(has(await modelOf("google").sent({ cacheKey: "k1" }), "k1"), [false]);
    assert.equal((await modelOf("openai").sent())[0]?.prompt_cache_key, undefined);
  });

  test("the key is no longer sent when it is refused", async () => {
    const { vendor, sent } = modelOf("openai");
    vendor.always(refusing("prompt_cache_key"));
    assert.deepEqual(has(await sent({ cacheKey: "k" }), "prompt_cache_key"), [true, false]);
    assert.deepEqual(has(await sent({ cacheKey: "k" }), "prompt_cache_key"), [false]);
  });

  test("Anthropic gets a mark at the end of the earlier messages, if they are long", async () => {
    const { sent } = modelOf("anthropic");
    const mark = { cache_control: { type: "ephemeral" } };
    const images = [{ mediaType: "image/png", data: new Uint8Array([1]) }];
    const last = { role: "user" as const, text: "b", images };
    const messages = [...prompt.messages, { role: "assistant" as const, text: "a" }, last];
    const [conversation] = await sent({ prompt: { system: "s", messages }, cacheKey: "k" });
    assert.equal(conversation?.system, "s");
    const earlier = (conversation?.messages as Json[] | undefined)?.[1];
    assert.deepEqual(earlier, { role: "assistant", content: [{ type: "text", text: "a", ...mark }] });
    assert.equal(JSON.stringify(conversation).split("cache_control").length, 2, "one mark");
  });

  test("Anthropic gets no mark in the last message, and none in short earlier messages", async () => {
    const { sent } = modelOf("anthropic");
    const [single] = await sent({ prompt, cacheKey: "k" });
    assert.deepEqual(single?.messages, [{ role: "user", content: LONG }]);
    const messages = [
      { role: "user" as const, text: "a" },
      { role: "assistant" as const, text: "b" },
      ...prompt.messages,
    ];
    assert.deepEqual(has(await sent({ prompt: { system: "s", messages }, cacheKey: "k" }), "cache_control"), [false]);
    assert.deepEqual(has(await sent({ cacheKey: "k" }), "cache_control"), [false]);
  });

  test("Anthropic gets a mark at the end of a system text that is written in slices", async () => {
    const [request] = await modelOf("anthropic").sent({
      prompt: { ...prompt, system: "s".repeat(100_000) },
      cacheKey: "k",
    });
    const [block] = (request?.system ?? []) as Json[];
    assert.deepEqual([block?.text, block?.cache_control], ["s".repeat(100_000), { type: "ephemeral" }]);
  });

  test("marks are no longer sent when they are refused", async () => {
    const { vendor, sent } = modelOf("anthropic");
    vendor.always(refusing("cache_control", "system.0.cache_control: Extra inputs are not permitted"));
    const marked = { ...prompt, system: LONG };
    assert.deepEqual(has(await sent({ prompt: marked, cacheKey: "k" }), "cache_control"), [true, false]);
    assert.deepEqual(has(await sent({ prompt: marked, cacheKey: "k" }), "cache_control"), [false]);
  });
});

describe("reasoning", () => {
  const DEPTHS: Reasoning[] = ["none", "low", "medium", "high"];
  const THINKING = [
    "reasoning_effort",
    "reasoning",
    "thinking",
    "output_config",
    "generationConfig",
    "chat_template_kwargs",
  ];
  /** Members of a body that concern thinking. */
  const thinkingOf = (body: Json | undefined): Json =>
    Object.fromEntries(Object.entries(body ?? {}).filter(([member]) => THINKING.includes(member)));

  const cases: [kind: WireKind, overrides: Partial<ModelEntry>, expected: Json[]][] = [
    ["openai", {}, DEPTHS.map((depth) => ({ reasoning_effort: depth }))],
    [
      "openai",
      { vendor: "openai-compatible" },
      DEPTHS.map((depth) => ({
        reasoning_effort: depth,
        ...(depth === "none" ? { chat_template_kwargs: { enable_thinking: false } } : {}),
      })),
    ],
    ["responses", {}, DEPTHS.map((effort) => ({ reasoning: { effort } }))],
    [
      "anthropic",
      {},
      DEPTHS.map((depth) =>
        depth === "none"
          ? { thinking: { type: "disabled" } }
          : { thinking: { type: "adaptive" }, output_config: { effort: depth } },
      ),
    ],
    [
      "google",
      { model: "gemini-2.5-flash" },
      [0, 1_024, 8_192, 24_576].map((thinkingBudget) => ({ generationConfig: { thinkingConfig: { thinkingBudget } } })),
    ],
    [
      "google",
      { model: "gemini-3.8-flash" },
      ["minimal", "low", "medium", "high"].map((thinkingLevel) => ({
        generationConfig: { thinkingConfig: { thinkingLevel } },
      })),
    ],
  ];
  for (const [kind, overrides, expected] of cases) {
    const name = overrides.model ?? overrides.vendor ?? kind;

    test(`${name}: writes each depth in the vendor's way, and nothing when a call names none`, async () => {
      const { sent } = modelOf(kind, overrides);
      for (const [i, reasoning] of DEPTHS.entries()) {
        assert.deepEqual(thinkingOf((await sent({ reasoning }))[0]), expected[i], reasoning);
      }
      assert.deepEqual(thinkingOf((await sent())[0]), {});
    });

    test(`${name}: answers without the parameters when they are refused, and remembers that`, async () => {
      for (const reasoning of DEPTHS) {
        const { vendor, sent } = modelOf(kind, overrides);
        vendor.always(({ json }) =>
          Object.keys(thinkingOf(json)).length > 0
            ? {
                status: 400,
                error: { message: "Unsupported: thinking, reasoning_effort", type: "invalid_request_error" },
              }
            : {},
        );
        assert.deepEqual(thinkingOf((await sent({ reasoning })).at(-1)), {}, reasoning);
        const again = await sent({ reasoning });
        assert.deepEqual([again.length, thinkingOf(again[0])], [1, {}], reasoning);
      }
    });
  }

  test("a depth that the model never takes is not sent again, and others are", async () => {
    for (const [message, taken] of [
      ["`reasoning_effort` must be one of `none` or `default`", ["none"]],
      ["Unsupported value: 'reasoning_effort' does not support 'low'. Supported values are: 'high'.", ["high"]],
      ["body.reasoning_effort: Input should be 'low' or 'high'", ["low", "high"]],
    ] as const) {
      const { vendor, sent } = modelOf("openai", { vendor: "openai-compatible" });
      const error = { message, type: "invalid_request_error" };
      const takes = (effort: unknown) => effort === undefined || taken.some((each) => each === effort);
      vendor.always(({ json }) => (takes(json.reasoning_effort) ? {} : { status: 400, error }));
      for (const reasoning of ["low", "medium", "high"] as const) {
        const expected = takes(reasoning) ? reasoning : undefined;
        const first = (await sent({ reasoning })).map((body) => body.reasoning_effort);
        assert.deepEqual(first, expected ? [expected] : [reasoning, undefined], message);
        const again = (await sent({ reasoning })).map((body) => body.reasoning_effort);
        assert.deepEqual(again, [expected], message);
      }
    }
  });

  test("a type of format that the server never takes is not sent again, and the other is", async () => {
    const { vendor, sent } = modelOf("openai", { vendor: "openai-compatible" });
    // LM Studio.
    const error = { message: "'response_format.type' must be 'json_schema' or 'text'" };
    vendor.always(({ body }) => (body.includes("json_object") ? { status: 400, error } : {}));
    const types = async (format: ModelCall["format"]) =>
      (await sent(format ? { format } : {})).map(({ response_format }) => (response_format as Json | undefined)?.type);
    assert.deepEqual(await types({ type: "json" }), ["json_object", undefined]);
    assert.deepEqual(await types({ type: "json" }), [undefined]);
    assert.deepEqual(await types({ type: "schema", schema: '{"type":"object"}' }), ["json_schema"]);
  });

  test("JSON that the model writes wrongly is asked for in the prompt of this call only", async () => {
    const { vendor, sent } = modelOf("openai", { vendor: "openai-compatible" });
    const message = "Generated JSON does not match the expected schema: additional property 'x' is not allowed";
    const error = { message, type: "invalid_request_error", code: "json_validate_failed" };
    vendor.always(({ json }) => (json.response_format ? { status: 400, error } : {}));
    for (const format of [{ type: "json" }, { type: "schema", schema: '{"type":"object"}' }] as const) {
      for (let i = 0; i < 2; i++) assert.deepEqual(has(await sent({ format }), "response_format"), [true, false]);
    }
  });

  test("Claude thinks in place of the service's temperature, and not beside the caller's", async () => {
    const { vendor, sent } = modelOf("anthropic");
    const [own] = await sent({ reasoning: "high", defaultTemperature: 0 });
    assert.deepEqual([own?.temperature, own?.thinking], [undefined, { type: "adaptive" }]);
    const [plain] = await sent({ defaultTemperature: 0 });
    assert.deepEqual([plain?.temperature, plain?.thinking], [0, undefined]);
    const [set] = await sent({ reasoning: "high", defaultTemperature: 0, temperature: 0.5 });
    assert.deepEqual([set?.temperature, set?.thinking], [0.5, undefined]);
    vendor.always(refusing("thinking", "thinking is not supported for this model"));
    const unable = (await sent({ reasoning: "high", defaultTemperature: 0 })).at(-1);
    assert.deepEqual([unable?.temperature, unable?.thinking], [0, undefined]);
  });

  test("other vendors get the service's temperature beside the depth", async () => {
    const [openai] = await modelOf("openai").sent({ reasoning: "high", defaultTemperature: 0 });
    assert.deepEqual([openai?.temperature, openai?.reasoning_effort], [0, "high"]);
    const [google] = await modelOf("google").sent({ reasoning: "high", defaultTemperature: 0 });
    assert.equal((google?.generationConfig as Json | undefined)?.temperature, 0);
  });

  test("the vendor's ceiling has room to think beside the call's ceiling", async () => {
    for (const kind of ["anthropic", "google"] as const) {
      const { sent } = modelOf(kind);
      const ceilings: number[] = [];
      for (const reasoning of DEPTHS) {
        const [body] = await sent({ reasoning, maxTokens: 50 });
        ceilings.push(Number(/"(?:max_tokens|maxOutputTokens)":(\d+)/.exec(JSON.stringify(body))?.[1]));
      }
      const [none = 0, low = 0, medium = 0, high = 0] = ceilings;
      assert.ok(none === 50 && low > 1_000 && medium > low && high > medium, `${kind}: ${ceilings}`);
    }
  });
});
