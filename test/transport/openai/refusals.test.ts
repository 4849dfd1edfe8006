import assert from "node:assert/strict";
import fc from "fast-check";
import { describe } from "vitest";
import { adminOf } from "../../helpers/admin.ts";
import { test } from "../../helpers/fixtures.ts";
import { setLimits } from "../../helpers/limits.ts";

const PATH = "/v1/chat/completions";
const HELLO = [{ role: "user", content: "Hello" }];
const TURN = { role: "assistant", content: "OK." };
const FUNCTION = { type: "function", function: { name: "f" } };
const ALLOWED = "tool_choice.allowed_tools.tools";
const TEXT = { type: "text", text: "a" };
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function refusal(response: Response) {
  const text = await response.text();
  const { error } = JSON.parse(text);
  assert.ok(error, text);
  assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  const { status, headers } = response;
  return { status, headers, ...(error as { message: string; type: string; param: string | null; code: string }) };
}

describe("a parameter", () => {
  test("that is not supported is refused with its name", async ({ service, vendor }) => {
    const user = (part: object) => [{ role: "user", content: [part, { type: "text", text: "a" }] }];
    const image = (members: object) => user({ type: "image_url", image_url: members });
    const file = (members: object) => user({ type: "file", file: members });
    const png = "data:image/png;base64,aGk=";
    const custom = (members: object) => ({ type: "custom", custom: members });
    const allowed = (...tools: object[]) => ({ type: "allowed_tools", allowed_tools: { mode: "required", tools } });
    const asked = (call: object) => [...HELLO, { role: "assistant", tool_calls: [call] }];
    const schema = (members: object) => ({ type: "json_schema", json_schema: { name: "a", ...members } });
    const cases: [body: object, param: string, code?: string][] = [
      [{ tools: [{ type: "mcp" }] }, "tools[0].type"],
      [{ tools: [{ type: "custom", name: "f" }] }, "tools[0].custom"],
      [{ tools: [FUNCTION, custom({ name: "a b" })] }, "tools[1].custom.name"],
      [{ tools: [FUNCTION, custom({ name: "f" })] }, "tools[1].custom.name"],
      [{ tools: [custom({ name: "f", format: { type: "json" } })] }, "tools[0].custom.format.type"],
      [{ tools: [custom({ name: "f", format: { type: "grammar" } })] }, "tools[0].custom.format.grammar"],
      [{ tools: [FUNCTION], tool_choice: custom({ name: "g" }) }, "tool_choice.custom.name"],
      [{ tools: [FUNCTION], tool_choice: { type: "custom", function: { name: "f" } } }, "tool_choice"],
      [{ tools: [{ type: "function", function: { name: "a b" } }] }, "tools[0].function.name"],
      [{ tools: [FUNCTION], tool_choice: { type: "function", function: { name: "g" } } }, "tool_choice.function.name"],
      [{ tools: [FUNCTION], tool_choice: { type: "function", function: { name: "" } } }, "tool_choice.function.name"],
      [{ tools: [FUNCTION], tool_choice: { function: { name: "f" } } }, "tool_choice"],
      [{ tools: [FUNCTION], tool_choice: {} }, "tool_choice"],
      [{ tools: [FUNCTION], tool_choice: allowed(FUNCTION, custom({ name: "g" })) }, `${ALLOWED}[1].custom.name`],
      [
        { tools: [FUNCTION], tool_choice: allowed({ type: "function", function: { name: "g" } }) },
        `${ALLOWED}[0].function.name`,
      ],
      [{ tools: [FUNCTION], tool_choice: allowed() }, ALLOWED],
      [{ tool_choice: "required" }, "tool_choice"],
      [{ function_call: "auto" }, "function_call"],
      [{ functions: [{ name: "f" }] }, "functions"],
      [{ input: "a" }, "input"],
      [{ instructions: "a" }, "instructions"],
      [{ max_output_tokens: 9 }, "max_output_tokens"],
      [{ text: { format: { type: "json_object" } } }, "text"],
      [{ previous_response_id: "gen_1" }, "previous_response_id"],
      [{ conversation: "conv_1" }, "conversation"],
      [{ n: 2 }, "n"],
      [{ logprobs: true }, "logprobs"],
      [{ top_logprobs: 2 }, "top_logprobs"],
      [{ top_p: "high" }, "top_p"],
      [{ logit_bias: { 50256: -100 } }, "logit_bias"],
      [{ metadata: { a: 1 } }, "metadata"],
      [{ metadata: ["a"] }, "metadata"],
      [{ modalities: ["text", "audio"] }, "modalities"],
      [{ audio: { voice: "alloy" } }, "audio"],
      [{ verbosity: "endless" }, "verbosity"],
      [{ model: 1 }, "model"],
      [{ stream: "yes" }, "stream"],
      [{ stream_options: { include_usage: true } }, "stream_options"],
      [{ temperature: 2.5 }, "temperature"],
      [{ max_tokens: 0 }, "max_tokens"],
      [{ max_completion_tokens: 32_001 }, "max_completion_tokens"],
      [{ max_tokens: 1, max_completion_tokens: 1 }, "max_tokens"],
      [{ stop: ["a", "b", "c", "d", "e"] }, "stop"],
      [{ stop: ["a", ""] }, "stop[1]"],
      [{ stop: 1 }, "stop"],
      [{ stop: "a", response_format: schema({ schema: { type: "object" } }) }, "stop"],
      [{ reasoning_effort: "extreme" }, "reasoning_effort"],
      [{ response_format: { type: "grammar" } }, "response_format.type"],
      [{ response_format: { type: "json_schema" } }, "response_format.json_schema"],
      [{ response_format: schema({}) }, "response_format.json_schema.schema", "invalid_response_schema"],
      [{ response_format: schema({ schema: [] }) }, "response_format.json_schema.schema", "invalid_response_schema"],
      [{ response_format: schema({ schema: "{}" }) }, "response_format.json_schema.schema", "invalid_response_schema"],
      [
        {
          response_format: schema({ strict: true, schema: { type: "object", properties: { a: { minLenght: 1 } } } }),
        },
        "response_format.json_schema.schema.properties.a",
        "invalid_response_schema",
      ],
      [
        { response_format: schema({ strict: true, schema: { type: "object", properties: { a: { $ref: "#b" } } } }) },
        "response_format.json_schema.schema.properties.a",
        "invalid_response_schema",
      ],
      [{ messages: [] }, "messages"],
      [{ messages: [{ role: "user", content: "" }] }, "messages"],
      [{ messages: [...HELLO, { role: "tool", content: "a", tool_call_id: "1" }] }, "messages[1].tool_call_id"],
      [{ messages: [...HELLO, { role: "tool", content: "a" }] }, "messages[1].tool_call_id"],
      [{ messages: [...HELLO, { content: "a" }] }, "messages[1].role"],
      [{ messages: [{ role: "assistant", content: "a", tool_calls: [{}] }] }, "messages[0].tool_calls[0].type"],
      [{ messages: asked({ type: "custom", id: "1" }) }, "messages[1].tool_calls[0].custom"],
      [{ messages: asked({ id: "1", ...custom({ name: "a b" }) }) }, "messages[1].tool_calls[0].custom.name"],
      [{ messages: [{ role: "user", content: 1 }] }, "messages[0].content"],
      [{ messages: [{ role: "user", content: [{ type: "input_audio" }] }] }, "messages[0].content[0].type"],
      [{ messages: image({ url: "https://example.com/a.png" }) }, "messages[0].content[0].image_url.url"],
      [{ messages: image({ url: "data:image/png;base64,a.b" }) }, "messages[0].content[0].image_url.url"],
      [{ messages: image({ url: "data:image/tiff;base64,aGk=" }) }, "messages[0].content[0].image_url.url"],
      [{ messages: file({ file_id: "file-1" }) }, "messages[0].content[0].file.file_id"],
      [{ messages: file({ filename: "a".repeat(256), file_data: png }) }, "messages[0].content[0].file.filename"],
      [{ messages: [{ role: "user", content: Array(101).fill(image({ url: png })[0]?.content[0]) }] }, "messages"],
      [{ messages: [...HELLO, { ...image({ url: png })[0], role: "assistant" }] }, "messages[1].content[0]"],
    ];
    for (const [body, param, code = "invalid_request"] of cases) {
      const name = JSON.stringify(body).slice(0, 100);
      const found = await refusal(await service.post(PATH, { messages: HELLO, ...body }));
      assert.deepEqual([found.status, found.param, found.code], [400, param, code], `${name}: ${found.message}`);
      assert.equal(found.type, "invalid_request_error");
      assert.doesNotMatch(found.message, /stop_sequences|attachments|response_format\.schema/);
      // The same in a body that a thread reads.
      const large = await refusal(
        await service.post(PATH, { messages: HELLO, ...body, prompt_cache_key: "a".repeat(20_000) }),
      );
      assert.deepEqual([large.status, large.param, large.message], [400, param, found.message], name);
    }
    assert.equal(vendor.calls.length, 0);
  });

  test("with a file of an unknown type is refused in its own words", async ({ service }) => {
    const url = "data:image/tiff;base64,aGk=";
    const content = [
      { type: "text", text: "a" },
      { type: "image_url", image_url: { url } },
    ];
    const { message } = await refusal(await service.post(PATH, { messages: [{ role: "user", content }] }));
    assert.match(
      message,
      /^The media type of messages\[0\]\.content\[1\]\.image_url\.url must be one of text\/plain, /,
    );
  });

  test("with base64 that is not valid is refused for that, not as another URL", async ({ service }) => {
    for (const data of ["aGk\n=", "aG k=", "a"]) {
      const content = [{ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }];
      const { message } = await refusal(await service.post(PATH, { messages: [{ role: "user", content }] }));
      assert.match(message, /image_url\.url must have base64 after the comma, without spaces and line breaks\.$/);
    }
  });

  test("is never ignored silently: a notice names any other member, unless its value asks for nothing", async ({
    service,
    vendor,
  }) => {
    vendor.always({ text: "{}" });
    const others = fc.oneof(
      fc.constantFrom("seed", "store", "top_k", "prediction", "name", "service_tier"),
      fc.string({ minLength: 1, maxLength: 12 }),
    );
    const places = ["body", "message", "part", "image", "format", "schema", "stream_options"] as const;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...places),
        others,
        fc.jsonValue({ maxDepth: 1 }),
        async (place, name, value) => {
          const known = members(place);
          const isNothing = [null, false, ""].includes(value as never) || isEmpty(value);
          fc.pre(!(name in known) && !isNothing && value !== true && !REFUSED.includes(name));
          const response = await service.post(PATH, bodyWith(place, { ...known, [name]: value }));
          const text = await response.text();
          assert.equal(response.status, 200, text);
          const [json = text] = /^data: (.*"notices":.*)$/m.exec(text)?.slice(1) ?? [];
          const { notices } = JSON.parse(json) as { notices: { field?: string; code: string }[] };
          const isNamed = notices.some(({ field }) => field?.endsWith(name.toWellFormed()));
          assert.ok(isNamed, `${name}: ${text}`);
          assert.match(response.headers.get("x-chorus-notice") ?? "", /(?:no_effect|unknown_field): /);
        },
      ),
      { numRuns: 100 },
    );
  });

  test("with any value is used or refused by its name", async ({ service }) => {
    const supported = [
      ...["model", "stream", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "stop", "n"],
      ...["response_format", "reasoning_effort", "user", "metadata", "top_p", "presence_penalty"],
      "messages",
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...supported), fc.jsonValue({ maxDepth: 3 }), async (name, value) => {
        const response = await service.post(PATH, { messages: HELLO, [name]: value });
        if (response.status === 200) return void (await response.text());
        const { status, param } = await refusal(response);
        assert.equal(status, 400);
        assert.ok(param?.startsWith(name), `${param}`);
      }),
      { numRuns: 300 },
    );
  });
});

/** What a member of the request has in the bodies of the property above. */
function members(place: string): Record<string, unknown> {
  switch (place) {
    case "message":
      return { role: "user", content: "a", __proto__: null };
    case "part":
      return { type: "text", text: "a", __proto__: null };
    case "image":
      return { url: `data:image/png;base64,${PNG}`, detail: "auto", __proto__: null };
    case "format":
      return { type: "text", __proto__: null };
    case "schema":
      return { name: "a", description: "b", strict: true, schema: { type: "object" }, __proto__: null };
    case "stream_options":
      return { include_usage: true, __proto__: null };
    default:
      return { ...Object.fromEntries(BODY.map((name) => [name, undefined])), messages: HELLO, __proto__: null };
  }
}

/** Members that are refused, whose tests are above. */
const REFUSED = [
  ...["functions", "function_call", "logprobs", "top_logprobs", "logit_bias", "audio"],
  ...["modalities", "file_id", "tool_calls", "input", "text", "instructions", "conversation"],
];

const BODY = [
  ...["model", "stream", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "stop", "user", "n"],
  ...["response_format", "reasoning_effort", "safety_identifier", "prompt_cache_key", "top_p", "presence_penalty"],
  ...["frequency_penalty", "metadata", "verbosity", "web_search_options", "tools", "tool_choice"],
  ...["parallel_tool_calls"],
];

function bodyWith(place: string, object: object): object {
  switch (place) {
    case "message":
      return { messages: [object] };
    case "part":
      return { messages: [{ role: "user", content: [object] }] };
    case "image":
      return { messages: [{ role: "user", content: [TEXT, { type: "image_url", image_url: object }] }] };
    case "format":
      return { messages: HELLO, response_format: object };
    case "schema":
      return { messages: HELLO, response_format: { type: "json_schema", json_schema: object } };
    case "stream_options":
      return { messages: HELLO, stream: true, stream_options: object };
    default:
      return object;
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

describe("failures", () => {
  test("answers paths of OpenAI's API that do not exist in its format", async ({ service }) => {
    for (const [path, headers] of [
      ["/v1/responses/gen_1", {}],
      ["/v1/responses/gen_1", { "x-api-key": "ck_unknown" }],
      ["/v1/chat/completions/gen_1", {}],
      ["/v1/embeddings?a=b", {}],
      ["/v1/conversations", {}],
      ["/v1/conversations/conv_1/items", {}],
      ["/v1/vector_stores", {}],
      ["/chat/completions", {}],
      ["/responses", {}],
      ["/v1/v1/chat/completions", {}],
    ] as const) {
      const response = await service.post(path, {}, headers);
      const { error } = (await response.json()) as { error: Record<string, unknown> };
      assert.deepEqual([response.status, error.type, error.code], [404, "invalid_request_error", "not_found"], path);
      assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
      assert.match(String(error.message), /the service has \/v1\/responses, \/v1\/chat\/completions/);
      assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
    }
  });

  test("have OpenAI's shape and our codes", async ({ service, database: { pool } }) => {
    const post = (body: string, headers: Record<string, string> = {}) => service.post(PATH, body, headers);
    const body = JSON.stringify({ messages: HELLO });
    const cases: [send: () => Promise<Response>, status: number, type: string, code: string][] = [
      [() => post("{"), 400, "invalid_request_error", "invalid_json"],
      [() => post("[]"), 400, "invalid_request_error", "invalid_json"],
      [() => post(body, { "x-api-key": "ck_unknown" }), 401, "authentication_error", "unauthenticated"],
      [() => post(body, { "content-type": "text/plain" }), 415, "invalid_request_error", "unsupported_media_type"],
      [() => post(body, { "content-encoding": "gzip" }), 415, "invalid_request_error", "unsupported_media_type"],
      [() => service.get(PATH), 405, "invalid_request_error", "method_not_allowed"],
      [() => service.get("/v1/responses/gen_1"), 404, "invalid_request_error", "not_found"],
      [() => service.post("/v1/embeddings", {}), 404, "invalid_request_error", "not_found"],
      [() => post(`{"stop":[${'"a",'.repeat(100_000)}"a"]}`), 413, "invalid_request_error", "request_too_large"],
      [() => post(body, { "idempotency-key": "a b" }), 400, "invalid_request_error", "invalid_request"],
    ];
    for (const [send, status, type, code] of cases) {
      const found = await refusal(await send());
      assert.deepEqual([found.status, found.type, found.code], [status, type, code], found.message);
      assert.equal(found.headers.get("www-authenticate"), status === 401 ? "Bearer" : null);
    }
    await setLimits(pool, "default", [{ name: "requests_per_minute", to: 1n }]);
    let response = await post(body);
    // In a new minute, one more is admitted.
    while (response.status === 200) response = await post(body);
    const limited = await refusal(response);
    assert.deepEqual(
      [limited.status, limited.type, limited.code],
      [429, "rate_limit_error", "rate_limit_exceeded"],
      limited.message,
    );
    assert.match(limited.headers.get("retry-after") ?? "", /^\d+$/);
    assert.match(limited.message, /requests_per_minute/);
    assert.equal(limited.headers.get("x-should-retry"), null);
    for (const [limit, wait] of [
      [{ name: "requests_per_month", to: 1n }, /^\d+$/],
      [{ name: "requests_per_month", to: 0n }, /^null$/],
    ] as const) {
      await setLimits(pool, "default", [{ name: "requests_per_minute", to: "default" }, limit]);
      const { headers } = await refusal(await post(body));
      assert.match(String(headers.get("retry-after")), wait);
      assert.equal(headers.get("x-should-retry"), "false");
    }
    await setLimits(pool, "default", [{ name: "requests_per_month", to: "default" }]);
  });

  test("of models are those of /v1/generate", async ({ service, vendor }) => {
    const strict = { type: "json_schema", json_schema: { name: "a", schema: { type: "object" } } };
    vendor.always({ text: "no" });
    for (const stream of [false, true]) {
      const found = await refusal(await service.post(PATH, { messages: HELLO, response_format: strict, stream }));
      assert.deepEqual([found.status, found.type, found.code], [502, "server_error", "structured_output_failed"]);
      assert.equal(found.headers.get("x-should-retry"), "false");
    }
    vendor.always({ status: 500 });
    const found = await refusal(await service.post(PATH, { messages: HELLO }));
    assert.deepEqual([found.status, found.type, found.code], [502, "server_error", "upstream_failed"]);
    assert.equal(found.headers.get("x-should-retry"), null);
    vendor.always({ status: 401 });
    const final = await refusal(await service.post(PATH, { messages: HELLO }));
    assert.deepEqual([final.code, final.headers.get("x-should-retry")], ["upstream_failed", "false"]);
    assert.match(final.message, /the operator must correct them/);
  });

  test("of a prompt that is too long have OpenAI's code, by which agents shorten the conversation", async ({
    service,
    vendor,
  }) => {
    vendor.always({ status: 400, error: { code: "context_length_exceeded", message: "maximum context length" } });
    const text = "a ".repeat(2_500_000);
    for (const content of ["Hello", text]) {
      const messages = [{ role: "user", content }];
      for (const [path, body] of [[PATH, { messages }] as const, ["/v1/responses", { input: messages }] as const]) {
        const found = await refusal(await service.post(path, body));
        assert.deepEqual(
          [found.status, found.type, found.code],
          [400, "invalid_request_error", "context_length_exceeded"],
          found.message,
        );
      }
    }
  });

  test("of images of which a shorter conversation would have few enough have that code too", async ({ service }) => {
    const bytes = Buffer.from(PNG, "base64");
    const large = Buffer.concat([bytes, Buffer.alloc(8_000_000)]);
    for (const [image, count] of [[large, 2] as const, [bytes, 101] as const]) {
      const url = `data:image/png;base64,${image.toString("base64")}`;
      const conversation = (part: object) =>
        Array(count)
          .fill([{ role: "user", content: [part] }, TURN])
          .flat();
      const messages = [...conversation({ type: "image_url", image_url: { url } }), ...HELLO];
      const input = [...conversation({ type: "input_image", image_url: url }), ...HELLO];
      for (const [path, body] of [[PATH, { messages }] as const, ["/v1/responses", { input }] as const]) {
        const found = await refusal(await service.post(path, body));
        assert.deepEqual([found.status, found.code], [400, "context_length_exceeded"], found.message);
      }
    }
  });

  test("for lack of credit have the status 402", async ({ service, database: { pool } }) => {
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: "empty" });
    const { secret } = await keys.createKey({ workspace: "empty" });
    const found = await refusal(await service.post(PATH, { messages: HELLO }, { "x-api-key": secret }));
    assert.deepEqual([found.status, found.type, found.code], [402, "insufficient_quota", "insufficient_credit"]);
  });
});
