import assert from "node:assert/strict";
import { describe } from "vitest";
import { test } from "../../helpers/fixtures.ts";
import type { TestService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";

const PATH = "/v1/chat/completions";
const HELLO = [{ role: "user", content: "Hello" }];
const SCHEMA = {
  type: "object",
  properties: { "10": { type: "number" }, a: { type: "string" } },
  required: ["a"],
  additionalProperties: false,
};
const STRICT = { type: "json_schema", json_schema: { name: "answer", schema: SCHEMA, strict: true } };
/** Makes a body too large to be read on the event loop. */
const LONG = "The invoice was paid. ".repeat(1_000);

interface Completion {
  id: string;
  model: string;
  choices: { message: { role: string; content: string }; finish_reason: string }[];
  usage: Record<string, unknown>;
  notices: { code: string; field?: string }[];
  error?: { message: string; type: string; param: string | null; code: string };
}

async function ask(service: TestService, body: object, headers: Record<string, string> = {}) {
  const response = await service.post(PATH, { messages: HELLO, ...body }, headers);
  const json = (await response.json()) as Completion;
  return { status: response.status, headers: response.headers, json, content: json.choices?.[0]?.message.content };
}

/** The data of the events of a stream; the text of those that are no JSON. */
async function stream(service: TestService, body: object) {
  const response = await service.post(PATH, { messages: HELLO, stream: true, ...body });
  const text = await response.text();
  assert.equal(response.headers.get("content-type"), "text/event-stream", text);
  const events = text.split("\n\n").filter((event) => event.startsWith("data: "));
  return events.map((event) => (event === "data: [DONE]" ? "[DONE]" : JSON.parse(event.slice(6))));
}

describe("an answer in one piece", () => {
  test("has OpenAI's shape, the tokens and the credits", async ({ service }) => {
    const { status, json, headers } = await ask(service, { model: "chorus" });
    assert.equal(status, 200);
    const { id, created, ...rest } = json as Completion & { created: number };
    assert.match(id, /^gen_[0-9a-f]{32}$/);
    assert.ok(Math.abs(created - Date.now() / 1_000) < 600);
    assert.deepEqual(rest, {
      object: "chat.completion",
      model: "chorus",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hello from openai.", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: {
        prompt_tokens: 1,
        completion_tokens: 5,
        total_tokens: 6,
        prompt_tokens_details: { cached_tokens: 0 },
        credits: 0.0021,
      },
      notices: [],
    });
    assert.match(headers.get("x-request-id") ?? "", /^req_/);
    assert.equal(headers.get("x-chorus-notice"), null);
  });

  test("reaches the model as the same request to /v1/generate does", async ({ service, vendor }) => {
    await ask(service, {
      model: "chorus-low",
      messages: [
        { role: "developer", content: "Be brief." },
        { role: "system", content: [{ type: "text", text: "Be exact." }] },
        {
          role: "user",
          content: [
            { type: "text", text: "one" },
            { type: "text", text: "two" },
          ],
        },
        { role: "assistant", content: "three", refusal: null, tool_calls: [], annotations: [] },
        { role: "user", content: "four" },
      ],
      temperature: 0.5,
      max_completion_tokens: 77,
      stop: ["x", "y"],
      user: "u",
      safety_identifier: "s",
      prompt_cache_key: "p",
      n: 1,
      top_p: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      logprobs: false,
      store: false,
      tools: [],
      metadata: {},
      seed: null,
    });
    await service.post("/v1/generate", {
      effort: "low",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "system", content: "Be exact." },
        { role: "user", content: "one\ntwo" },
        { role: "assistant", content: "three" },
        { role: "user", content: "four" },
      ],
      temperature: 0.5,
      max_tokens: 77,
      stop_sequences: ["x", "y"],
    });
    assert.equal(vendor.calls.length, 2);
    assert.deepEqual(vendor.calls[0]?.json, vendor.calls[1]?.json);
  });

  test("has the effort that model and reasoning_effort name", async ({ service, database: { pool } }) => {
    const cases: [model: string | undefined, effort: string | undefined, expected: string][] = [
      [undefined, undefined, "auto"],
      ["chorus", undefined, "auto"],
      ["chorus-low", undefined, "low"],
      ["chorus-medium", undefined, "medium"],
      ["chorus-high", undefined, "high"],
      ["gpt-4o", undefined, "auto"],
      ["gpt-4o", "minimal", "low"],
      ["chorus", "none", "low"],
      ["chorus", "medium", "medium"],
      ["chorus", "xhigh", "high"],
      ["chorus-low", "high", "low"],
      ["chorus-high", "low", "low"],
    ];
    for (const [model, reasoning_effort, expected] of cases) {
      const { json, headers } = await ask(service, { model, reasoning_effort });
      const [row] = await pool.query("select effort from generations where id = $1", [json.id]);
      assert.equal(row?.effort, expected, `${model} ${reasoning_effort}`);
      const isOther = model === "gpt-4o";
      assert.equal(json.model, isOther ? "chorus" : (model ?? "chorus"));
      assert.equal(/^unknown_model: /.test(headers.get("x-chorus-notice") ?? ""), isOther);
      assert.equal(json.notices.at(-1)?.code, isOther ? "unknown_model" : undefined);
    }
  });

  test("follows a JSON Schema, in the caller's order of names", async ({ service, vendor }) => {
    vendor.reply({ text: '{"a":"b","10":1.0}' });
    const strict = { ...STRICT.json_schema, description: "A shopping list." };
    const { content } = await ask(service, { response_format: { type: "json_schema", json_schema: strict } });
    assert.equal(content, '{"a":"b","10":1.0}');
    assert.match(vendor.calls[0]?.body ?? "", /A shopping list/);
  });

  test("follows a schema with formats, which the model sees and a notice names", async ({ service, vendor }) => {
    const day = { type: "string", format: "date", description: "When it is due." };
    // As Pydantic writes a member that may be left out.
    const site = { anyOf: [{ type: "string", format: "uri" }, { type: "null" }] };
    const schema = { type: "object", properties: { day, site }, required: ["day", "site"] };
    for (const strict of [true, false]) {
      vendor.reset();
      vendor.always({ text: '{"day":"2026-01-31","site":null}' });
      const response_format = { type: "json_schema", json_schema: { name: "answer", schema, strict } };
      const { json, content } = await ask(service, { response_format });
      assert.equal(content, '{"day":"2026-01-31","site":null}', JSON.stringify(json));
      assert.deepEqual(
        json.notices.map(({ code, field }) => [code, field]),
        [["format_not_checked", "response_format.json_schema.schema.properties.day"]],
      );
      assert.match(vendor.calls[0]?.body ?? "", /When it is due\.\\+nFormat: date\./);
      assert.match(vendor.calls[0]?.body ?? "", /Format: uri\./);
      vendor.always({ text: '{"day":5,"site":null}' });
      assert.equal((await ask(service, { response_format })).status, 502);
    }
  });

  test("follows the patterns of a schema, and gives up those that take too long", async ({ service, vendor }) => {
    const formatOf = (pattern: string) => {
      const schema = { type: "object", properties: { a: { type: "string", pattern } }, required: ["a"] };
      return { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } } };
    };
    vendor.always({ text: '{"a":"2026-01-31"}' });
    assert.equal((await ask(service, formatOf("^\\d{4}-\\d\\d-\\d\\d$"))).content, '{"a":"2026-01-31"}');
    assert.equal((await ask(service, formatOf("^\\d{2}$"))).status, 502);
    vendor.always({ text: `{"a":"${"a".repeat(60)}!"}` });
    assert.equal((await ask(service, formatOf("^(a+)+$"))).status, 502);
    const { status, json } = await ask(service, formatOf("("));
    assert.deepEqual([status, json.error?.param], [400, "response_format.json_schema.schema.properties.a"]);
  });

  test("follows exclusive bounds, as Pydantic writes gt and lt", async ({ service, vendor }) => {
    const a = { anyOf: [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 10 }, { type: "null" }] };
    const schema = { type: "object", properties: { a }, required: ["a"] };
    const body = { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } } };
    for (const [value, status] of [
      ["0.001", 200],
      ["null", 200],
      ["0", 502],
      ["10", 502],
    ] as const) {
      vendor.always({ text: `{"a":${value}}` });
      assert.equal((await ask(service, body)).status, status, value);
    }
  });

  test("follows choices between objects, references to themselves, multiples and records", async ({
    service,
    vendor,
  }) => {
    const kind = (name: string, members: object) => ({
      type: "object",
      properties: { kind: { const: name }, ...members },
      required: ["kind", ...Object.keys(members)],
      additionalProperties: false,
    });
    const text = kind("text", { text: { type: "string" } });
    const list = kind("list", { items: { type: "array", items: { $ref: "#/$defs/block" } } });
    const price = { type: "number", multipleOf: 0.01 };
    const prices = { type: "object", additionalProperties: price };
    const answer = '{"kind":"list","items":[{"kind":"text","text":"a"},{"kind":"list","items":[]}]}';
    const node = { type: "object", properties: { next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } } };
    const cases: [property: object, $defs: object, valid: string[], invalid: string[]][] = [
      ...["anyOf", "oneOf"].map((keyword): [object, object, string[], string[]] => [
        { $ref: "#/$defs/block" },
        { block: { [keyword]: [text, list] } },
        [answer, '{"kind":"text","text":""}'],
        [answer.replace('"a"', "1"), '{"kind":"text","items":[]}', '{"kind":"other"}', "null"],
      ]),
      [{ anyOf: [text, { type: "null" }, kind("b", {})] }, {}, ["null", '{"kind":"b"}'], ['{"kind":"text"}']],
      [{ $ref: "#/$defs/node" }, { node }, ['{"next":{"next":null}}'], ['{"next":{"next":1}}']],
      [prices, {}, ['{"a":19.99,"b":3}', "{}"], ['{"a":0.005}', '{"a":"1"}']],
    ];
    for (const [a, $defs, valid, invalid] of cases) {
      const schema = { type: "object", properties: { a }, required: ["a"], additionalProperties: false, $defs };
      const body = { response_format: { type: "json_schema", json_schema: { name: "b", schema, strict: true } } };
      for (const value of valid) {
        vendor.always({ text: `{"a":${value}}` });
        const { content, json } = await ask(service, body);
        assert.equal(content, `{"a":${value}}`, JSON.stringify(json));
        assert.deepEqual(json.notices, []);
      }
      const [piece] = await stream(service, body);
      assert.equal(piece.choices[0].delta.content, `{"a":${valid.at(-1)}}`);
      for (const value of invalid) {
        vendor.always({ text: `{"a":${value}}` });
        assert.equal((await ask(service, body)).json.error?.code, "structured_output_failed", value);
      }
    }
  });

  test("asks again with what is wrong in the kind of object that the model has chosen", async ({ service, vendor }) => {
    const kind = (name: string) => ({
      properties: { kind: { const: name }, [name]: { type: "string" } },
      required: [name],
    });
    const schema = { type: "object", properties: { a: { oneOf: [kind("b"), kind("c")] } } };
    vendor.reply({ text: '{"a":{"kind":"c"}}' }, { text: '{"a":{"kind":"c","c":"d"}}' });
    const body = { response_format: { type: "json_schema", json_schema: { name: "b", schema, strict: true } } };
    assert.equal((await ask(service, { ...body, model: "chorus-low" })).content, '{"a":{"kind":"c","c":"d"}}');
    const errors = JSON.stringify('$.a: must have the property "c"').slice(1, -1);
    assert.ok(vendor.calls[1]?.body.includes(errors), vendor.calls[1]?.body);
  });

  test("is JSON in the form of any schema, where strict is left out", async ({ service, vendor }) => {
    vendor.always({ text: '{"on":"2026-01-31","next":null}' });
    const on = { type: "string", format: "date" };
    const schema = { type: "object", properties: { on, next: {} }, unevaluatedProperties: false };
    const format = { type: "json_schema", json_schema: { name: "answer", schema } };
    const { json, content } = await ask(service, { response_format: format });
    assert.equal(content, '{"on":"2026-01-31","next":null}', JSON.stringify(json));
    assert.deepEqual(
      json.notices.map(({ code }) => code),
      ["schema_not_checked"],
    );
    // The model sees it as it is written.
    assert.ok(vendor.calls[0]?.body.includes(JSON.stringify(JSON.stringify(schema)).slice(1, -1)));
  });

  test("has notices that name members of the request, also in a stream", async ({ service }) => {
    const parameters = { type: "object", properties: { day: { type: "string", format: "date" } } };
    const tools = [
      { type: "custom", custom: { name: "code" } },
      { type: "function", function: { name: "look", parameters } },
    ];
    const file_data = `data:text/plain;base64,${Buffer.from("word ".repeat(300_000)).toString("base64")}`;
    const content = [
      { type: "text", text: "Hello" },
      { type: "file", file: { filename: "a.txt", file_data } },
    ];
    const body = { tools, messages: [{ role: "user", content }], web_search_options: {}, seed: 1 };
    const expected = ["seed", "tools[1].function.parameters", "messages[0].content[1]", "web_search_options"];
    const events = await stream(service, body);
    for (const { notices } of [(await ask(service, body)).json, events.at(-2)]) {
      assert.deepEqual(
        notices.map(({ field }: { field: string }) => field),
        expected,
      );
      assert.match(notices[2].message, /^messages\[0\]\.content\[1\] is too long/);
    }
  });

  test("is only the object in JSON mode, or all text with a notice", async ({ service, vendor }) => {
    vendor.reply({ text: 'Here it is:\n```json\n{"a": 1}\n```' }, { text: "I cannot." });
    const response_format = { type: "json_object" };
    assert.equal((await ask(service, { response_format })).content, '{"a":1}');
    const { content, json } = await ask(service, { response_format });
    assert.deepEqual([content, json.notices.map(({ code }) => code)], ["I cannot.", ["structured_error"]]);
  });

  test("can be about files and images", async ({ service, vendor }) => {
    const text = Buffer.from("The code is 4711.").toString("base64");
    const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const { status, json } = await ask(service, {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "file", file: { filename: "code.txt", file_data: `data:text/plain;charset=utf-8;base64,${text}` } },
            { type: "image_url", image_url: { url: `data:image/png;base64,${image}`, detail: "auto" } },
          ],
        },
      ],
    });
    assert.equal(status, 200, JSON.stringify(json));
    const sent = vendor.calls[0]?.body ?? "";
    assert.ok(sent.includes("The code is 4711.") && sent.includes("code.txt") && sent.includes(image));
  });

  test("can be about an image whose type is written image/jpg", async ({ service, vendor }) => {
    const frame = "ffc2000b080014001401011100ffda0003aa";
    const image = Buffer.from(`ffd8${frame}${"5a".repeat(100)}ffd9`, "hex").toString("base64");
    const url = `data:image/jpg;base64,${image}`;
    const { status, json } = await ask(service, {
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    });
    assert.equal(status, 200, JSON.stringify(json));
    // Vendors do not take the other name.
    assert.ok(vendor.calls[0]?.body.includes(`data:image/jpeg;base64,${image}`));
  });

  test("can be about an image that is declared as one of another type", async ({ service, vendor }) => {
    const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const url = `data:image/jpeg;base64,${image}`;
    const { status, json } = await ask(service, {
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    });
    assert.equal(status, 200, JSON.stringify(json));
    assert.ok(vendor.calls[0]?.body.includes(`data:image/png;base64,${image}`));
  });

  test("has the files of each message in that message", async ({ service, vendor }) => {
    const file = (text: string) => ({
      type: "file",
      file: { filename: "page.txt", file_data: `data:text/plain;base64,${Buffer.from(text).toString("base64")}` },
    });
    const { status, json } = await ask(service, {
      messages: [
        { role: "user", content: [file("PAGE-1"), { type: "text", text: "ASK-1" }] },
        { role: "assistant", content: "SAY-1" },
        { role: "user", content: [{ type: "text", text: "ASK-2" }, file("PAGE-2")] },
        { role: "assistant", content: "SAY-2" },
        { role: "user", content: "ASK-3" },
      ],
    });
    assert.equal(status, 200, JSON.stringify(json));
    const { messages } = JSON.parse(vendor.calls[0]?.body ?? "");
    const words = messages
      .map((message: object) => JSON.stringify(message).match(/(?:ASK|PAGE|SAY)-\d/g))
      .filter(Boolean);
    assert.deepEqual(words, [["PAGE-1", "ASK-1"], ["SAY-1"], ["PAGE-2", "ASK-2"], ["SAY-2"], ["ASK-3"]]);
  });

  test("is the same for a repeated idempotency key, on this path and on /v1/generate", async ({ service, vendor }) => {
    const key = { "idempotency-key": "chat-1" };
    const first = await ask(service, {}, key);
    const second = await ask(service, {}, key);
    assert.equal(second.json.id, first.json.id);
    const own = await service.post("/v1/generate", { messages: HELLO }, key);
    assert.equal(((await own.json()) as { id: string }).id, first.json.id);
    assert.equal(vendor.calls.length, 1);
    const { status, json } = await ask(service, { temperature: 1 }, key);
    assert.deepEqual([status, json.error?.code], [422, "idempotency_key_reused"]);
  });

  test("can be asked for with a large body", async ({ service, vendor }) => {
    const key = { "idempotency-key": "chat-large" };
    const body = { messages: [{ role: "user", content: LONG }] };
    const { json, status } = await ask(service, body, key);
    assert.equal(status, 200, JSON.stringify(json));
    assert.equal((await ask(service, body, key)).json.id, json.id);
    assert.equal(vendor.calls.length, 1);
    const chunks = await stream(service, { ...body, response_format: STRICT }).catch((error: Error) => error.message);
    assert.match(String(chunks), /structured_output_failed/);
  });
});

describe("a stream", () => {
  test("has the pieces, the reason of the end, the usage if asked for, and an end mark", async ({
    service,
    vendor,
  }) => {
    vendor.always({ text: ["Good", " morning"] });
    for (const include_usage of [true, false]) {
      const events = await stream(service, { model: "chorus-low", stream_options: { include_usage } });
      assert.equal(events.pop(), "[DONE]");
      const [{ id, created }] = events;
      for (const event of events) {
        const { object, model } = event;
        assert.deepEqual(
          [event.id, event.created, object, model],
          [id, created, "chat.completion.chunk", "chorus-low"],
        );
      }
      const usage = include_usage ? events.pop() : undefined;
      if (usage) {
        assert.deepEqual(usage.choices, []);
        assert.deepEqual([usage.usage.prompt_tokens, usage.usage.completion_tokens], [1, 2]);
      }
      assert.ok(events.every((event) => (include_usage ? event.usage === null : !("usage" in event))));
      const choices = events.map((event) => event.choices[0]);
      assert.equal(choices[0].delta.role, "assistant");
      assert.equal(choices.map(({ delta }) => delta.content ?? "").join(""), "Good morning");
      assert.deepEqual(choices.at(-1), { index: 0, delta: {}, logprobs: null, finish_reason: "stop" });
      assert.ok(choices.slice(0, -1).every(({ finish_reason }) => finish_reason === null));
      assert.deepEqual(events.at(-1).notices, []);
    }
  });

  test("has the role also if the answer is empty", async ({ service, vendor }) => {
    vendor.always({ text: "STOP here." });
    const [event, end] = await stream(service, { model: "chorus-low", stop: "STOP" });
    const delta = { role: "assistant", content: "" };
    assert.deepEqual(event.choices, [{ index: 0, delta, logprobs: null, finish_reason: "stop" }]);
    assert.equal(end, "[DONE]");
  });

  test("sends JSON in one piece, when it is valid", async ({ service, vendor, database: { pool } }) => {
    vendor.reply({ text: 'Sure: {"a": "b"}' }, { text: '```json\n{"c": [1]}\n```' });
    for (const [response_format, expected] of [
      [STRICT, '{"a":"b"}'],
      [{ type: "json_object" }, '{"c":[1]}'],
    ]) {
      const [piece, last, end, ...more] = await stream(service, { response_format });
      assert.deepEqual([piece.choices[0].delta.content, end, more], [expected, "[DONE]", []]);
      assert.equal(last.choices[0].finish_reason, "stop");
      const rows = await pool.query("select outcome from generations where id = $1", [piece.id]);
      assert.deepEqual(rows, [{ outcome: "ok" }]);
    }
  });

  test("ends with an error and without an end mark when it fails midway", async ({ service, vendor }) => {
    vendor.always({ text: ["a", "b", "c"], end: "error", after: 1 });
    const events = await stream(service, {});
    assert.equal(events[0].choices[0].delta.content, "a");
    const { error } = events.at(-1);
    assert.deepEqual([error.type, error.param, error.code], ["server_error", null, "upstream_failed"]);
    assert.ok(!events.includes("[DONE]"));
  });

  test("ends with finish_reason and a notice when the service cuts it short", async ({ service, vendor }) => {
    vendor.always({ text: ["a", "b"], finish: "content-filter" });
    const events = await stream(service, { stream_options: { include_usage: true } });
    const last = events.at(-3);
    assert.equal(last.choices[0].finish_reason, "content_filter");
    assert.equal(last.notices[0].code, "content_filtered");
    assert.equal(events.at(-2).usage.credits, 0);
  });

  test("is aborted and charged for what was written when the caller leaves", async ({
    service,
    vendor,
    database: { pool },
  }) => {
    vendor.always({ text: ["one ", "two ", "three "], end: "hang", after: 2 });
    const response = await service.post(PATH, { messages: HELLO, stream: true });
    let text = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.includes("two ")) break;
    }
    assert.equal(await vendor.calls[0]?.ended, "aborted");
    const [, id] = /"id":"(gen_\w+)"/.exec(text) ?? [];
    const find = () => pool.query("select outcome, output_tokens from generations where id = $1", [id]);
    await until(async () => (await find()).length === 1);
    assert.deepEqual(await find(), [{ outcome: "caller_gone", output_tokens: 3n }]);
  });

  test("of JSON is free when the caller leaves before its end", async ({ service, vendor, database: { pool } }) => {
    vendor.always({ end: "silent" });
    const leave = new AbortController();
    const asked = fetch(service.url + PATH, {
      method: "POST",
      headers: { authorization: `Bearer ${service.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ messages: HELLO, stream: true, response_format: STRICT, user: "leaves" }),
      signal: leave.signal,
    }).catch((error: Error) => error.name);
    await until(() => vendor.calls.length === 1);
    leave.abort();
    assert.equal(await asked, "AbortError");
    const find = () =>
      pool.query("select credits_micro from generations where shape = 'json_schema' and outcome = 'caller_gone'");
    await until(async () => (await find()).length === 1);
    assert.deepEqual(await find(), [{ credits_micro: 0n }]);
  });
});
