import assert from "node:assert/strict";
import { describe, test } from "vitest";
import type { ModelError } from "../../src/models/port/model-error.ts";
import { isNeverTaken, outputLimit, readFailure, refusedOption, roomForOutput } from "../../src/models/refusal.ts";
import type { HttpResponse } from "../../src/models/vendor-response.ts";
import { anthropic } from "../../src/models/wire/anthropic.ts";
import { google } from "../../src/models/wire/google.ts";
import { openai } from "../../src/models/wire/openai.ts";
import { responses } from "../../src/models/wire/responses.ts";
import type { Forms, Option, WireCall, WireFormat } from "../../src/models/wire/wire.ts";

const FIRST: Forms = {
  ...{ temperature: 0, stops: 0, maxTokens: 0, format: 0, reasoning: 0, cacheKey: 0, usage: 0 },
  ...{ strictTools: 0, toolChoice: 0, parallel: 0, toolReasoning: 0, toolFormat: 0, toolTurn: 0, system: 0 },
  ...{ thoughts: 0, signature: 0 },
};
const FULL: WireCall = {
  model: "m",
  prompt: { system: "", messages: [{ role: "user", text: "Hi" }] },
  maxTokens: 100,
  temperature: 1,
  stops: ["x"],
  format: { type: "json" },
  tools: undefined,
  reasoning: "low",
  streamed: true,
  cacheKey: "k",
};
const NOTHING: WireCall = {
  ...FULL,
  maxTokens: undefined,
  temperature: undefined,
  stops: [],
  format: undefined,
  reasoning: undefined,
  streamed: false,
  cacheKey: undefined,
};

/** An answer whose body arrives in chunks; an error in place of a chunk breaks it off. */
function answer(status: number, headers: HttpResponse["headers"], ...chunks: (string | Error)[]) {
  let isDisposed = false;
  let reads = 0;
  const response: HttpResponse = {
    status,
    headers,
    async read() {
      reads++;
      const chunk = chunks.shift();
      if (chunk instanceof Error) throw chunk;
      return chunk;
    },
    finish() {},
    [Symbol.dispose]() {
      isDisposed = true;
    },
  };
  return Object.assign(response, { isDisposed: () => isDisposed, reads: () => reads });
}

async function errorOf(
  status: number,
  headers: HttpResponse["headers"] = {},
  body: unknown = "",
  format: WireFormat = openai,
): Promise<ModelError> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (await readFailure(answer(status, headers, text), format)).error;
}

/** OpenAI's words for a request that no wait makes possible. */
const TOO_LARGE =
  "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 36000. The " +
  "input or output tokens must be reduced in order to run successfully.";

/** An error of OpenRouter, with that of the provider in it. */
const passedOn = (raw: unknown) => ({
  error: { message: "Provider returned error", code: 400, metadata: { raw: JSON.stringify(raw), provider_name: "x" } },
});

describe("readFailure", () => {
  test("retries the statuses that may pass", async () => {
    for (const status of [408, 409, 425, 429, 500, 502, 503, 529]) {
      assert.equal((await errorOf(status)).retryable, true, `${status}`);
    }
    for (const status of [302, 400, 401, 403, 404, 413, 422]) {
      assert.equal((await errorOf(status)).retryable, false, `${status}`);
    }
  });

  test("follows x-should-retry rather than the status", async () => {
    assert.equal((await errorOf(400, { "x-should-retry": "true" })).retryable, true);
    assert.equal((await errorOf(500, { "x-should-retry": "false" })).retryable, false);
  });

  test("retries what the model has written wrongly", async () => {
    const message = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.";
    for (const code of ["tool_use_failed", "json_validate_failed"]) {
      const error = await errorOf(400, {}, { error: { message, type: "invalid_request_error", code } });
      assert.deepEqual([error.retryable, error.blamesModel], [true, false]);
    }
  });

  test("does not retry an exhausted quota", async () => {
    const body = { error: { message: "m", code: "insufficient_quota" } };
    assert.equal((await errorOf(429, { "x-should-retry": "true" }, body)).retryable, false);
    const suspended = "Your account org-1 is suspended due to insufficient balance, please recharge your account";
    const spent = "Your team 1 has either used all available credits or reached its monthly spending limit.";
    for (const exhausted of [
      body,
      { error: { message: suspended, type: "exceeded_current_quota_error" } },
      { code: "Some resource has been exhausted", error: spent },
      { error: { code: "1113", message: "Insufficient balance or no resource package. Please recharge." } },
    ]) {
      const { retryable, needsOperator, throttledMs } = await errorOf(429, {}, exhausted);
      assert.deepEqual([retryable, needsOperator, throttledMs], [false, true, undefined], JSON.stringify(exhausted));
    }
    const limited = {
      error: { message: "Rate limit reached for gpt-4o. Check your plan.", code: "rate_limit_exceeded" },
    };
    assert.equal((await errorOf(429, {}, limited)).retryable, true);
  });

  test("waits for a model that loads, where its server names no wait", async () => {
    const loading = { error: { code: 503, message: "Loading model", type: "unavailable_error" } };
    for (const body of [loading, { error: "Model google/gemma-2-2b is currently loading", estimated_time: 20 }]) {
      const { retryable, retryAfterMs } = await errorOf(503, {}, body);
      assert.deepEqual([retryable, retryAfterMs], [true, 2_000]);
      assert.equal((await errorOf(503, { "retry-after": "4" }, body)).retryAfterMs, 4_000);
    }
    const failed = { error: { message: "error loading model llama3: unknown architecture", type: "api_error" } };
    assert.equal((await errorOf(500, {}, failed)).retryAfterMs, undefined);
  });

  test("takes a request that is too large for a minute for no sign that the model has too many calls", async () => {
    const error = await errorOf(
      429,
      {},
      { error: { message: TOO_LARGE, type: "tokens", code: "rate_limit_exceeded" } },
    );
    assert.deepEqual([error.isCongestion, error.throttledMs, error.blamesModel], [false, undefined, false]);
    assert.equal((await errorOf(429)).isCongestion, true);
  });

  test("finds refusals of keys and accounts that vendors report as invalid requests", async () => {
    const found = async (format: WireFormat, body: unknown) => {
      const { status, needsOperator } = await errorOf(400, {}, body, format);
      return [status, needsOperator];
    };
    const google400 = (status: string) => ({ error: { code: 400, message: "m", status } });
    const anthropic400 = (message: string) => ({ type: "error", error: { type: "invalid_request_error", message } });
    const noCredit = "Your credit balance is too low to access the Anthropic API.";
    assert.deepEqual(await found(anthropic, anthropic400(noCredit)), [402, true]);
    assert.deepEqual(await found(anthropic, anthropic400(`text: ${noCredit}`)), [400, false]);
    assert.deepEqual(await found(google, google400("FAILED_PRECONDITION")), [403, true]);
    assert.deepEqual(await found(google, google400("INVALID_ARGUMENT")), [400, false]);
    const refused = "Incorrect API key provided: ab***.";
    assert.deepEqual(await found(openai, { code: "x", error: refused }), [401, true]);
    assert.deepEqual(await found(openai, { error: `bad prompt: {"error":"${refused}"}` }), [400, false]);
    const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }];
    const message = "API key not valid. Please pass a valid API key.";
    const listed = [{ error: { code: 400, message, status: "INVALID_ARGUMENT", details } }];
    assert.deepEqual(await found(openai, listed), [401, true]);
  });

  test("finds names of models that servers refuse as invalid requests", async () => {
    const type = "invalid_request_error";
    for (const body of [
      { error: { message: "Model Not Exist", type, param: null, code: type } },
      { error: { message: "deepseek-chat is not a valid model ID", code: 400 } },
      { error: { message: "Model Not Exist", type: null, param: null, code: null } },
      { error: { message: "Invalid model: x", type: "invalid_model", param: null, code: null } },
      { object: "error", message: "Invalid model: mistral-x", type: "invalid_model", param: null, code: "1500" },
      { error: { message: "Invalid model 'x'. Permitted models can be found at", type: "invalid_model", code: 400 } },
      { code: 20_012, message: "Model does not exist. Please check it carefully.", data: null },
      { error: { message: "{'error': '/chat/completions: Invalid model name passed in model=x.'}", code: "400" } },
    ]) {
      const { status, needsOperator } = await errorOf(400, {}, body);
      assert.deepEqual([status, needsOperator], [404, true], JSON.stringify(body));
    }
    for (const message of ["The prompt says Model Not Exist", "what is not a valid model ID means"]) {
      assert.equal((await errorOf(400, {}, { error: { message, type } })).status, 400);
    }
  });

  test("takes what OpenRouter's providers cannot do for a fault of the request", async () => {
    const found = async (message: string) => {
      const body = JSON.stringify({ error: { message, code: 404 } });
      const failure = await readFailure(answer(404, {}, body), openai);
      const format = { type: "schema", schema: "{}", strict: true } as const;
      const sent: WireCall = { ...FULL, format, tools: { list: [], choice: "required", parallel: true } };
      const { status, needsOperator } = failure.error;
      return [status, needsOperator, refusedOption(failure, sent, FIRST, openai)];
    };
    const more = "To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing";
    assert.deepEqual(await found(`No endpoints found that support tool use. ${more}`), [400, false, undefined]);
    assert.deepEqual(await found("No endpoints found that support image input"), [400, false, undefined]);
    const choice = `No endpoints found that support the provided 'tool_choice' value. ${more}`;
    assert.deepEqual(await found(choice), [400, false, "toolChoice"]);
    assert.deepEqual(await found("No endpoints found for some/model:free."), [404, true, undefined]);
  });

  test("reads the wait that the vendor asks for", async () => {
    const wait = async (headers: Record<string, string>, body?: unknown) =>
      (await errorOf(429, headers, body, google)).retryAfterMs;
    assert.equal(await wait({ "retry-after": "3" }), 3_000);
    assert.equal(await wait({ "retry-after": "0.5" }), 500);
    assert.equal(await wait({ "retry-after": "0" }), 0);
    assert.equal(await wait({ "retry-after-ms": "120", "retry-after": "3" }), 120);
    for (const nonsense of ["", "soon", "-3", "NaN"]) assert.ok(!((await wait({ "retry-after": nonsense })) ?? 0));
    const date = await wait({ "retry-after": new Date(Date.now() + 10_000).toUTCString() });
    assert.ok(date !== undefined && date > 8_000 && date <= 10_000, String(date));
    assert.equal(await wait({}), undefined);
  });

  test("reads the wait in the body of Google's errors", async () => {
    const wait = async (body: unknown) => (await errorOf(429, {}, body, google)).retryAfterMs;
    const retryInfo = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.5s" };
    const error = { code: 429, details: [null, retryInfo] };
    assert.equal(await wait({ error }), 34_500);
    assert.equal(await wait([{ error }]), 34_500);
    assert.equal((await errorOf(429, {}, [{ error }])).retryAfterMs, 34_500);
    for (const nonsense of [{ error: null }, null, "<html>", [], { error: { details: 7 } }]) {
      assert.equal(await wait(nonsense), undefined);
    }
  });

  test("does not wait for a model of which Google's plan allows no call", async () => {
    const words = (limit: number) =>
      "You exceeded your current quota, please check your plan and billing details.\\n* Quota exceeded for metric: " +
      `generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: ${limit}, model: gemini-3-pro`;
    const body = (limit: number) => ({
      error: { code: 429, message: words(limit), status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "34s" }] },
    });
    for (const [format, wrap] of [
      [google, (each: unknown) => each],
      [openai, (each: unknown) => [each]],
    ] as const) {
      const none = await errorOf(429, {}, wrap(body(0)), format);
      assert.deepEqual([none.retryable, none.retryAfterMs, none.needsOperator], [false, undefined, true]);
      const some = await errorOf(429, {}, wrap(body(20)), format);
      assert.deepEqual([some.retryable, some.retryAfterMs, some.needsOperator], [true, 34_000, false]);
    }
  });

  test("accepts any body of an error", async () => {
    for (const format of [openai, anthropic, google]) {
      for (const body of ["", "<html>", "null", "[]", "7", '"no"', '{"error":"no"}', '{"error":[1]}', '{"error":{}}']) {
        const { status, kind } = await errorOf(500, {}, body, format);
        assert.deepEqual([status, kind], [500, undefined]);
      }
    }
  });

  test("keeps the vendor's words out of the message, and has them as the cause", async () => {
    const error = await errorOf(500, {}, { error: { message: "secret words" } });
    assert.equal(error.message, "The vendor answered with status 500.");
    assert.match(String(error.cause), /secret words/);
    assert.ok(!JSON.stringify(error).includes("secret"));
  });

  test("names a refusal and a prompt that is too long, which no retry helps", async () => {
    const cases: [WireFormat, number, unknown, ModelError["kind"]][] = [
      [openai, 400, { error: { message: "m", code: "content_filter" } }, "refused"],
      [openai, 500, { error: { message: "m", code: "context_length_exceeded" } }, "too_long"],
      [openai, 413, "<html>", "too_long"],
      [openai, 429, { error: { message: TOO_LARGE, type: "tokens", code: "rate_limit_exceeded" } }, "too_long"],
      [openai, 400, passedOn({ error: { message: "This model's maximum context length is 8 tokens." } }), "too_long"],
      [openai, 400, passedOn({ error: { message: "m", code: "content_filter" } }), "refused"],
      [anthropic, 413, { error: { type: "request_too_large", message: "m" } }, "too_long"],
      [anthropic, 400, { error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" } }, "too_long"],
      [anthropic, 400, { error: { message: "image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes" } }, "refused"],
      [anthropic, 400, { error: { message: "one of the image dimensions exceed max allowed size" } }, "refused"],
      [
        google,
        400,
        { error: { message: "The input token count (9) exceeds the maximum number of tokens" } },
        "too_long",
      ],
    ];
    for (const [format, status, body, kind] of cases) {
      const error = await errorOf(status, {}, body, format);
      assert.deepEqual([error.kind, error.retryable, error.blamesModel], [kind, false, false], JSON.stringify(body));
    }
  });

  test("reads the beginning of an endless body and closes the connection", async () => {
    const endless = answer(500, {}, ...Array.from({ length: 1_000 }, () => "x".repeat(1_000)));
    assert.equal((await readFailure(endless, openai)).error.status, 500);
    assert.ok(endless.reads() < 100);
    assert.ok(endless.isDisposed());
  });

  test("reports the status when the body breaks off", async () => {
    assert.equal((await readFailure(answer(503, {}, "{", new Error("reset")), openai)).error.status, 503);
  });
});

/** The option that a format takes for refused, and whether for good. */
async function refused(
  format: WireFormat,
  message: string,
  { param, status = 400, sent = FULL }: { param?: string; status?: number; sent?: WireCall } = {},
): Promise<[option: Option | undefined, isNeverTaken: boolean]> {
  const failure = await readFailure(answer(status, {}, JSON.stringify({ error: { message, param } })), format);
  const option = refusedOption(failure, sent, FIRST, format);
  return [option, isNeverTaken(option ?? "usage", failure.about, sent)];
}

describe("refusedOption", () => {
  test("finds the option in OpenAI's words", async () => {
    const cases: [message: string, param: string | undefined, expected: Awaited<ReturnType<typeof refused>>][] = [
      ["Unsupported parameter: 'stop' is not supported with this model.", "stop", ["stops", true]],
      ["Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature", ["temperature", true]],
      ["max_tokens is too large: 99999.", "max_tokens", ["maxTokens", false]],
      ["Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "max_tokens", ["maxTokens", true]],
      ["temperature: range: 0..1", undefined, ["temperature", false]],
      ["`temperature` is deprecated for this model.", undefined, ["temperature", true]],
      ["'response_format.type' must be 'json_schema' or 'text'", undefined, ["format", true]],
      ["`reasoning_effort` must be one of `none` or `default`", undefined, ["reasoning", true]],
      ["reasoning_effort: Input should be 'none' or 'high'", undefined, ["reasoning", true]],
      ["Invalid schema for response_format 'answer'", "response_format", ["format", false]],
      ["Unrecognized request argument supplied: stream_options", undefined, ["usage", true]],
      ["Unrecognized request argument supplied: prompt_cache_key", undefined, ["cacheKey", true]],
      ["Unsupported value: 'low'.", "reasoning_effort", ["reasoning", true]],
      ["Request contains an invalid argument.", undefined, [undefined, false]],
      ["The temperature of the prompt is wrong", "messages", [undefined, false]],
    ];
    for (const [message, param, expected] of cases) {
      assert.deepEqual(await refused(openai, message, param === undefined ? {} : { param }), expected, message);
    }
    const xai = "Model grok-4-latest does not support parameter reasoningEffort.";
    for (const format of [openai, responses]) assert.deepEqual(await refused(format, xai), ["reasoning", true], xai);
  });

  test("finds the option in Anthropic's and Google's words", async () => {
    const cases: [WireFormat, string, Option | undefined][] = [
      [anthropic, "temperature: Input should be less than or equal to 1", "temperature"],
      [anthropic, "stop_sequences: each stop sequence must contain non-whitespace", "stops"],
      [anthropic, "max_tokens: 64000 > 8192", "maxTokens"],
      [anthropic, "messages.0.content.0.cache_control: Extra inputs are not permitted", "cacheKey"],
      [anthropic, "thinking.type: adaptive is not supported", "reasoning"],
      [anthropic, "messages: roles must alternate", undefined],
      [google, "Invalid value at 'generation_config.temperature'", "temperature"],
      [google, "stop_sequences: at most 5", "stops"],
      [google, "Unable to submit request because it has a maxOutputTokens value of 99999", "maxTokens"],
      [google, "Budget 0 is invalid. This model only works in thinking mode.", "reasoning"],
      [google, "Unknown name \"responseJsonSchema\" at 'generation_config'", "format"],
      [google, "JSON mode is not enabled for models/gemma-3-27b-it", "format"],
      [google, "Request contains an invalid argument.", undefined],
    ];
    for (const [format, message, option] of cases) {
      assert.equal((await refused(format, message))[0], option, message);
    }
  });

  test("takes the refusal of one schema for no refusal of later ones, whatever names it quotes", async () => {
    const context = "In context=('properties', 'not supported'), 'minimum' is not permitted.";
    const cases: [WireFormat, message: string][] = [
      [openai, `Invalid schema for response_format 'answer': ${context}`],
      [responses, `Invalid schema for response_format 'answer': ${context}`],
      [anthropic, "output_config.format.schema: For 'array' type, property 'maxItems' is not supported"],
      [anthropic, "output_config.format.schema: Schema is too complex: 'unsupported'"],
      [
        google,
        "Unknown name \"a\" at 'generation_config.response_json_schema.properties[0].value': Cannot find field.",
      ],
    ];
    for (const [format, message] of cases) assert.deepEqual(await refused(format, message), ["format", false], message);
    const sent: WireCall = { ...FULL, format: undefined };
    const ofTool = `Invalid schema for function 'get': ${context}`;
    const failure = await readFailure(answer(400, {}, JSON.stringify({ error: { message: ofTool } })), openai);
    assert.ok(!isNeverTaken("strictTools", failure.about, sent));
  });

  test("names only options that the call has", async () => {
    for (const format of [openai, anthropic, google]) {
      for (const message of [
        "temperature",
        "stop stop_sequences",
        "max_tokens maxOutputTokens",
        "reasoning thinking",
      ]) {
        assert.equal((await refused(format, message, { sent: NOTHING }))[0], undefined, message);
      }
    }
  });

  test("takes only status 400 and 422 for a refusal of an option", async () => {
    for (const status of [400, 422]) assert.equal((await refused(openai, "temperature", { status }))[0], "temperature");
    for (const status of [401, 404, 429, 500]) {
      assert.equal((await refused(openai, "temperature", { status }))[0], undefined);
    }
  });

  test("takes a prompt that is too long for no refusal of an option", async () => {
    const message = "max_tokens: this model's maximum context length is 8192 tokens";
    assert.equal((await refused(openai, message))[0], undefined);
  });

  test("takes a refusal without a known option for one of the schema", async () => {
    const sent: WireCall = { ...FULL, format: { type: "schema", schema: "{}", strict: true } };
    assert.equal((await refused(google, "Request contains an invalid argument.", { sent }))[0], "format");
  });

  test("finds the option in what OpenRouter passes on of a provider", async () => {
    const cases = [
      ["Unsupported parameter: 'temperature' is not supported with this model.", "temperature"],
      ["Unrecognized request argument supplied: stream_options", "usage"],
    ] as const;
    for (const [message, option] of cases) {
      for (const raw of [JSON.stringify({ error: { message } }), JSON.stringify({ message }), message]) {
        const error = { message: "Provider returned error", code: 400, metadata: { raw, provider_name: "Azure" } };
        const failure = await readFailure(answer(400, {}, JSON.stringify({ error })), openai);
        assert.equal(refusedOption(failure, FULL, FIRST, openai), option, raw);
      }
    }
  });

  test("finds no option in what Groq says of arguments that its model has written", async () => {
    const found = async (code: string, message: string, more: Partial<WireCall>) => {
      const body = JSON.stringify({ error: { message, type: "invalid_request_error", code } });
      return refusedOption(await readFailure(answer(400, {}, body), openai), { ...FULL, ...more }, FIRST, openai);
    };
    const tools: WireCall["tools"] = { list: [], choice: "required", parallel: true };
    const message =
      "tool call validation failed: parameters for tool weather did not match schema: errors: [`/temperature`: " +
      "additionalProperties 'stop' not allowed]";
    assert.equal(await found("tool_use_failed", message, { tools }), undefined);
    assert.equal(await found("tool_use_failed", message, { tools, format: undefined }), undefined);
    const invalid = "Generated JSON does not match the expected schema: '/temperature' is not allowed";
    assert.equal(await found("json_validate_failed", invalid, {}), "format");
    assert.equal(await found("json_validate_failed", invalid, { format: undefined }), undefined);
  });

  test("passes over an option that is left out already", async () => {
    const failure = await readFailure(answer(400, {}, '{"error":{"message":"temperature, stop"}}'), openai);
    assert.equal(refusedOption(failure, FULL, { ...FIRST, temperature: 1 }, openai), "stops");
  });
});

test("outputLimit finds the largest ceiling below the refused one", () => {
  assert.equal(outputLimit("max_tokens: 32000 > 8192, which is the maximum", 32_000), 8_192);
  assert.equal(outputLimit("supports at most 4096 completion tokens, whereas you provided 9000", 9_000), 4_096);
  assert.equal(outputLimit("at most 100", 9_000), undefined);
  assert.equal(outputLimit("max_tokens is too large: 9000", 9_000), undefined);
  assert.equal(outputLimit("no number", 9_000), undefined);
  assert.equal(outputLimit("max_tokens is too large for gpt-4-1106-preview: 9000", 9_000), undefined);
  assert.equal(outputLimit("at most 8,192 tokens", 9_000), 8_192);
});

test("a ceiling that is refused for its value is not refused for good", () => {
  const sent = { ...FULL, maxTokens: 9_000 };
  assert.equal(isNeverTaken("maxTokens", "max_tokens of 9000 is not supported by this model", sent), false);
  assert.equal(isNeverTaken("maxTokens", "max_tokens is not supported by this model", sent), true);
});

describe("roomForOutput", () => {
  const cases: [name: string, words: string, room: number | undefined][] = [
    [
      "vLLM",
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 65536 " +
        "tokens and your request has 33537 input tokens (32000 > 65536 - 33537).",
      31_999,
    ],
    [
      "vLLM, prompt counted in part",
      "This model's maximum context length is 65536 tokens. However, you requested 32000 output tokens and your " +
        "prompt contains at least 33537 input tokens, for a total of at least 65537 tokens.",
      undefined,
    ],
    [
      "OpenAI, DeepSeek and older vLLM",
      "This model's maximum context length is 40960 tokens. However, you requested 42000 tokens (10000 in the " +
        "messages, 32000 in the completion). Please reduce the length of the messages or completion.",
      30_960,
    ],
    [
      "the same, the prompt alone is too long",
      "This model's maximum context length is 16384 tokens. However, you requested 144946 tokens (112946 in the " +
        "messages, 32000 in the completion).",
      0,
    ],
    [
      "OpenAI, more tokens than the account has in a minute",
      "rate_limit_exceeded tokens Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit " +
        "30000, Requested 36000. The input or output tokens must be reduced in order to run successfully.",
      26_000,
    ],
    [
      "Groq, the same, the prompt alone is too long",
      "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 43454, " +
        "please reduce your message size and try again.",
      0,
    ],
    [
      "OpenRouter",
      "This endpoint's maximum context length is 40960 tokens. However, you requested about 42000 tokens (10000 of " +
        "text input, 32000 in the output). Please reduce the length of either one.",
      30_960,
    ],
    [
      "SGLang",
      "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of " +
        "40000 tokens: 8000 tokens from the input messages and 32000 tokens for the completion.",
      24_768,
    ],
    [
      "TGI",
      "`inputs` tokens + `max_new_tokens` must be <= 32768. Given: 8000 `inputs` tokens and 32000 `max_new_tokens`",
      24_768,
    ],
    [
      "Anthropic",
      "input length and `max_tokens` exceed context limit: 178959 + 32000 > 200000, decrease input length or " +
        "`max_tokens` and try again",
      21_041,
    ],
    [
      "a window of the ceiling's size",
      "context length is 32000 tokens, prompt 20, max_tokens: 32000 > 32000 - 20",
      31_980,
    ],
    ["no numbers", "context_length_exceeded: Please reduce the length of the messages or completion.", undefined],
    ["other numbers", "max_tokens 32000, context length 7, 8, 9, 10", undefined],
    ["a room above the ceiling", "max_tokens 32000, context length 90000, prompt 7", undefined],
    ["the prompt only", "prompt is too long: 200001 tokens > 200000 maximum", 0],
    [
      "the prompt only, vLLM",
      "This model's maximum context length is 8192 tokens. Your request has 9000 input tokens.",
      0,
    ],
  ];
  test.for(cases)("reads the words of %s", ([, words, room]) => {
    assert.equal(roomForOutput(words, 32_000), room);
  });
});
