import assert from "node:assert/strict";
import { describe } from "vitest";
import { adminOf } from "../../helpers/admin.ts";
import { test } from "../../helpers/fixtures.ts";
import { setLimits } from "../../helpers/limits.ts";
import { readEvents, type TestService } from "../../helpers/service.ts";

const PATH = "/v1/messages";
const HELLO = [{ role: "user", content: "Hello" }];
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
/** Makes a body too large to be read on the event loop. */
const LONG = "The invoice was paid. ".repeat(1_000);

interface Answer {
  id: string;
  model: string;
  content: { type: string; text: string }[];
  stop_reason: string;
  stop_sequence: string | null;
  usage: Record<string, number>;
  notices: { code: string; field?: string }[];
  error?: { type: string; message: string };
}

async function ask(service: TestService, body: object, headers: Record<string, string> = {}) {
  const response = await service.post(PATH, { max_tokens: 100, messages: HELLO, ...body }, headers);
  return { status: response.status, headers: response.headers, json: (await response.json()) as Answer };
}

async function stream(service: TestService, body: object) {
  const response = await service.post(PATH, { max_tokens: 100, messages: HELLO, stream: true, ...body });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  return { headers: response.headers, events: await readEvents(response) };
}

describe("an answer in one piece", () => {
  test("has Anthropic's shape, the tokens and the credits", async ({ service }) => {
    const { status, json, headers } = await ask(service, { model: "chorus" });
    assert.equal(status, 200);
    const { id, ...rest } = json;
    assert.match(id, /^gen_[0-9a-f]{32}$/);
    assert.deepEqual(rest, {
      type: "message",
      role: "assistant",
      model: "chorus",
      content: [{ type: "text", text: "Hello from openai." }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: 1,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 5,
        credits: 0.0021,
      },
      notices: [],
    });
    assert.match(headers.get("request-id") ?? "", /^req_/);
    assert.equal(headers.get("request-id"), headers.get("x-request-id"));
    assert.equal(headers.get("x-chorus-notice"), null);
  });

  test("reaches the model without the line of Claude Code that changes with each request", async ({
    service,
    vendor,
  }) => {
    const line = "x-anthropic-billing-header: cc_version=2.1.117.48f; cc_entrypoint=cli; cch=71fea;";
    const rule = "x-anthropic-billing-header: is a line.";
    const messages = [{ role: "user", content: `${line}\nHello` }];
    for (const system of [
      `${line}\nBe brief.\n${rule}`,
      [
        { type: "text", text: line },
        { type: "text", text: `Be brief.\n${rule}` },
      ],
    ]) {
      await ask(service, { system, messages, max_tokens: 77 });
      const sent = vendor.calls.at(-1)?.body ?? "";
      assert.ok(sent.includes(`Be brief.\\n${rule}`), sent);
      assert.equal(sent.split("cc_version").length, 2);
    }
  });

  test("reaches the model as the same request to /v1/generate does", async ({ service, vendor }) => {
    const hint = { cache_control: { type: "ephemeral" } };
    await ask(service, {
      model: "chorus-low",
      system: [
        { type: "text", text: "Be brief.", ...hint },
        { type: "text", text: "Be exact." },
      ],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "one", ...hint },
            { type: "text", text: "two" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Secret.", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            { type: "text", text: "three", citations: null },
          ],
        },
        { role: "user", content: "four" },
        {
          role: "user",
          content: [{ type: "search_result", source: "s", title: "t", content: [{ type: "text", text: "five" }] }],
        },
      ],
      temperature: 0.5,
      max_tokens: 77,
      tools: [],
      container: null,
    });
    await service.post("/v1/generate", {
      effort: "low",
      system: "Be brief.\n\nBe exact.",
      messages: [
        { role: "user", content: "one\ntwo" },
        { role: "assistant", content: "three" },
        { role: "user", content: "four" },
        { role: "user", content: "t\ns\nfive" },
      ],
      temperature: 0.5,
      max_tokens: 77,
    });
    assert.equal(vendor.calls.length, 2);
    assert.deepEqual(vendor.calls[0]?.json, vendor.calls[1]?.json);
  });

  test("has the effort that model, thinking and output_config name", async ({ service, database: { pool } }) => {
    const cases: [body: object, expected: string][] = [
      [{}, "auto"],
      [{ model: "chorus-high" }, "high"],
      [{ model: "claude-sonnet-4-5" }, "auto"],
      [{ thinking: { type: "disabled" } }, "low"],
      [{ thinking: { type: "adaptive" } }, "auto"],
      [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, "medium"],
      [{ thinking: { type: "enabled", budget_tokens: 8_192 } }, "high"],
      [{ output_config: { effort: "low" } }, "low"],
      [{ output_config: { effort: "max" } }, "high"],
      [{ output_config: { effort: "max" }, thinking: { type: "enabled", budget_tokens: 1_024 } }, "medium"],
      [{ model: "chorus-low", output_config: { effort: "xhigh" } }, "low"],
    ];
    for (const [body, expected] of cases) {
      const { json, headers } = await ask(service, body);
      const [row] = await pool.query("select effort from generations where id = $1", [json.id]);
      assert.equal(row?.effort, expected, JSON.stringify(body));
      const isOther = "model" in body && body.model === "claude-sonnet-4-5";
      assert.equal(/^unknown_model: /.test(headers.get("x-chorus-notice") ?? ""), isOther);
    }
  });

  test("names what has no effect in a header that is plain ASCII", async ({ service }) => {
    const { status, headers, json } = await ask(service, {
      max_tokens: 64_000,
      top_p: 0.9,
      top_k: 40,
      service_tier: "standard_only",
      context_management: { edits: [{ type: "clear" }] },
      "größe\r\nX-Evil: 1": 1,
      metadata: { user_id: "u".repeat(159), team: "a" },
    });
    assert.equal(status, 200);
    const expected = [
      ...["unknown_field", "unknown_field", "unknown_field"],
      ...["no_effect", "no_effect", "no_effect", "user_digest", "max_tokens_lowered"],
    ];
    assert.deepEqual(
      json.notices.map(({ code }) => code),
      expected,
    );
    const header = headers.get("x-chorus-notice") ?? "";
    assert.deepEqual(header.match(/(?<=^|; )\w+(?=:)/g), expected);
    assert.match(header, /^[\x20-\x7e]+$/);
    assert.match(header, /top_k has no effect/);
    assert.equal(headers.get("x-evil"), null);
    const many = Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`unknown_${i}`, 1]));
    const long = (await ask(service, many)).headers.get("x-chorus-notice") ?? "";
    assert.ok(long.length < 2_200 && /; and \d+ more$/.test(long), long);
  });

  test("counts for one end user in each session of Claude Code", async ({ service, database: { pool } }) => {
    const device = "5dd07c33da27e6d2968d94ea20bf47a7b090b6b158b82328d54da2909a108e84";
    const account = "6e7b5b0e-5f0c-4a52-8c9a-0c0d6d3a8f11";
    const now = (account_uuid: string, session_id: string) =>
      JSON.stringify({ device_id: device, account_uuid, session_id, parent_session_id: "p" });
    const former = (account_uuid: string, session: string) =>
      `user_${device}_account_${account_uuid}_session_${session}`;
    const cases: [id: string, expected: string][] = [
      [now("", "d2e70091-3007-41a3-a916-cb8b0d3098de"), device],
      [now("", "c31ac7cf-56a7-4c0a-b363-2b726377687d"), device],
      [now(account, "c31ac7cf-56a7-4c0a-b363-2b726377687d"), account],
      [former("", "d2e70091-3007-41a3-a916-cb8b0d3098de"), device],
      [former(account, "c31ac7cf-56a7-4c0a-b363-2b726377687d"), account],
      ['{"session_id":"d2e70091"}', '{"session_id":"d2e70091"}'],
      ['{"device_id":7,"session_id":"d2e70091"}', '{"device_id":7,"session_id":"d2e70091"}'],
      ["{device_id}", "{device_id}"],
    ];
    for (const [user_id, expected] of cases) {
      const { json } = await ask(service, { metadata: { user_id } });
      assert.deepEqual(json.notices, [], user_id);
      const [row] = await pool.query("select end_user from generations where id = $1", [json.id]);
      assert.equal(row?.end_user, expected, user_id);
    }
  });

  test("has notices that name members of the request", async ({ service }) => {
    const input_schema = { type: "object", properties: { day: { type: "string", format: "date" } } };
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 1 };
    const { json, headers } = await ask(service, { tools: [search, { name: "look", input_schema }] });
    assert.deepEqual(
      json.notices.map(({ field }) => field),
      ["tools[0].max_uses", "tools[1].input_schema", "tools"],
    );
    assert.match(headers.get("x-chorus-notice") ?? "", /tools\[1\]\.input_schema is checked only in part/);
  });

  test("follows a JSON Schema, by both names of the member", async ({ service, vendor }) => {
    const format = { type: "json_schema", schema: SCHEMA };
    for (const body of [{ output_config: { format } }, { output_format: format }]) {
      vendor.reply({ text: 'Here: {"a":"b"}' });
      assert.equal((await ask(service, body)).json.content[0]?.text, '{"a":"b"}');
    }
  });

  test("follows a schema of zod or Pydantic, with anyOf and references", async ({ service, vendor }) => {
    const schema = {
      $defs: { Item: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
      type: "object",
      properties: {
        kind: { anyOf: [{ enum: ["new", "old"] }, { type: "null" }] },
        item: { $ref: "#/$defs/Item" },
        other: { anyOf: [{ $ref: "#/$defs/Item" }, { type: "null" }] },
        id: { type: "string", format: "uuid" },
      },
      required: ["kind", "item", "other"],
      additionalProperties: false,
    };
    const format = { type: "json_schema", schema };
    const valid = '{"kind":null,"item":{"name":"bolt"},"other":null}';
    for (const body of [{ output_config: { format } }, { output_format: format }]) {
      vendor.reply({ text: valid });
      const { json } = await ask(service, body);
      assert.equal(json.content?.[0]?.text, valid);
      const [name] = Object.entries(body).map(([one]) => (one === "output_format" ? one : "output_config.format"));
      assert.deepEqual(
        json.notices.map(({ code, field }) => [code, field]),
        [["format_not_checked", `${name}.schema.properties.id`]],
      );
    }
    vendor.always({ text: '{"kind":"used","item":{"name":"bolt"},"other":null}' });
    assert.equal((await ask(service, { output_config: { format } })).status, 502);
  });

  test("continues the beginning that the last message has", async ({ service, vendor }) => {
    await ask(service, { messages: [...HELLO, { role: "assistant", content: "Once upon" }] });
    assert.match(vendor.calls[0]?.body ?? "", /Continue your last message/);
  });

  test("that is empty can be sent back", async ({ service, vendor }) => {
    vendor.always({ text: "STOP" });
    const { json } = await ask(service, { stop_sequences: ["STOP"] });
    assert.deepEqual(json.content, []);
    vendor.always({});
    for (const content of [json.content, ""]) {
      const messages = [...HELLO, { role: "assistant", content }, { role: "user", content: "Go on." }];
      const again = await ask(service, { messages });
      assert.equal(again.status, 200, JSON.stringify(again.json));
    }
  });

  test("needs the content of each message", async ({ service }) => {
    for (const message of [{ role: "user" }, { role: "user", content: null }]) {
      const { status, json } = await ask(service, { messages: [...HELLO, message] });
      assert.deepEqual([status, json.error?.message], [400, "messages[1].content is required. Add it."]);
    }
  });

  test("can be about images and files, in five forms of them", async ({ service, vendor }) => {
    const text = Buffer.from("The code is 4711.").toString("base64");
    const { status, json } = await ask(service, {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
            {
              type: "document",
              title: "code.txt",
              context: "Found on a desk.",
              source: { type: "base64", media_type: "text/plain", data: text },
              citations: { enabled: false },
            },
            { type: "document", source: { type: "text", media_type: "text/plain", data: "The key is 4712." } },
            { type: "document", source: { type: "content", content: [{ type: "text", text: "The lock is 4713." }] } },
          ],
        },
      ],
    });
    assert.equal(status, 200, JSON.stringify(json));
    const sent = vendor.calls[0]?.body ?? "";
    for (const part of ["4711", "4712", "4713", "code.txt", "Found on a desk.", PNG])
      assert.ok(sent.includes(part), part);
  });

  test("has the files of results beside their results", async ({ service, vendor }) => {
    const page = (text: string) => ({
      type: "document",
      source: { type: "text", media_type: "text/plain", data: text },
    });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
    const call = (id: string) => ({ role: "assistant", content: [{ type: "tool_use", id, name: "open", input: {} }] });
    const result = (id: string, ...content: object[]) => ({ type: "tool_result", tool_use_id: id, content });
    const { status, json } = await ask(service, {
      tools: [{ name: "open", input_schema: { type: "object" } }],
      messages: [
        { role: "user", content: "ASK-1" },
        call("a"),
        { role: "user", content: [result("a", page("PAGE-1"))] },
        call("b"),
        { role: "user", content: [result("b", image), { type: "text", text: "ASK-2" }, page("PAGE-2")] },
        call("c"),
        { role: "user", content: [result("c", { type: "text", text: "SAY-3" }), page("PAGE-3")] },
      ],
    });
    assert.equal(status, 200, JSON.stringify(json));
    const { messages } = JSON.parse(vendor.calls[0]?.body ?? "");
    const marks = /(?:ASK|PAGE|SAY)-\d|The result is the file|image\/png/g;
    const told = messages.map((message: { role: string }) => [
      message.role,
      ...(JSON.stringify(message).match(marks) ?? []),
    ]);
    assert.deepEqual(told.slice(messages[0].role === "system" ? 1 : 0), [
      ["user", "ASK-1"],
      ["assistant"],
      ["tool", "The result is the file"],
      ["user", "PAGE-1"],
      ["assistant"],
      ["tool", "The result is the file"],
      ["user", "image/png", "PAGE-2", "ASK-2"],
      ["assistant"],
      ["tool", "SAY-3"],
      ["user", "PAGE-3"],
    ]);
  });

  test("takes the images that an agent has looked at, up to 100 with its files", async ({ service, vendor }) => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
    const turn = (id: string, content: object[]) => [
      { role: "assistant", content: [{ type: "tool_use", id, name: "open", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] },
    ];
    const messagesOf = (count: number) => [
      { role: "user", content: [{ type: "document", source: { type: "text", data: "The key is 4712." } }] },
      ...Array.from({ length: count - 1 }, (_, i) => turn(`t${i}`, [image])).flat(),
    ];
    const tools = [{ name: "open", input_schema: { type: "object" } }];
    const { status, json } = await ask(service, { tools, messages: messagesOf(100) });
    assert.equal(status, 200, JSON.stringify(json));
    assert.equal(vendor.calls[0]?.body.split(PNG).length, 100);
    assert.match(vendor.calls[0]?.body ?? "", /4712/);
    const more = await ask(service, { tools, messages: messagesOf(101) });
    assert.deepEqual(
      [more.status, more.json.error?.message],
      [400, "prompt is too long: messages may have 100 files at most. Send fewer."],
    );
  });

  test("takes more than 40 messages, in a large body too", async ({ service, vendor }) => {
    const turns = Array.from({ length: 30 }, () => [HELLO[0], { role: "assistant", content: "Hi" }]).flat();
    for (const content of ["The end", LONG]) {
      vendor.reset();
      const { status, json } = await ask(service, { messages: [...turns, { role: "user", content }] });
      assert.equal(status, 200, JSON.stringify(json));
      assert.ok(vendor.calls[0]?.body.includes(content.trim()));
    }
  });

  test("is the same for a repeated idempotency key", async ({ service, vendor }) => {
    const key = { "idempotency-key": "messages-1" };
    const first = await ask(service, {}, key);
    assert.equal((await ask(service, {}, key)).json.id, first.json.id);
    assert.equal(vendor.calls.length, 1);
  });

  test("names the stop sequence that ended it, also to a repeated key, and lets no model write on after it", async ({
    service,
    vendor,
  }) => {
    const key = { "idempotency-key": "stops-1" };
    const text = ["One.", " Two", " END", " three", " OBS", " four"];
    vendor.always({ text, end: "hang", after: 4 });
    for (const _ of ["first", "again"]) {
      const { json } = await ask(service, { model: "chorus-low", stop_sequences: ["OBS", " END"] }, key);
      const { stop_reason, stop_sequence } = json;
      assert.deepEqual([stop_reason, stop_sequence, json.content[0]?.text], ["stop_sequence", " END", "One. Two"]);
    }
    const [call] = vendor.calls;
    assert.equal(vendor.calls.length, 1);
    assert.equal(await call?.ended, "aborted");
    assert.equal(call?.json.stop, undefined);
    vendor.always({ text });
    const unstopped = await ask(service, { model: "chorus-low", stop_sequences: ["nowhere"] });
    assert.deepEqual([unstopped.json.stop_reason, unstopped.json.stop_sequence], ["end_turn", null]);
  });

  test("is asked for again if a model breaks off, also with stop sequences, because nothing was sent", async ({
    service,
    vendor,
  }) => {
    const text = ["One.", " Two", " END", " three"];
    for (const stop_sequences of [undefined, [" END"]]) {
      vendor.reset();
      vendor.reply({ text, end: "reset", after: 2 });
      vendor.always({ text });
      const { status, json } = await ask(service, { model: "chorus-low", stop_sequences });
      assert.equal(status, 200, JSON.stringify(json));
      assert.equal(json.content[0]?.text, stop_sequences ? "One. Two" : "One. Two END three");
      assert.equal(json.stop_sequence, stop_sequences ? " END" : null);
      assert.equal(vendor.calls.length, 2);
    }
  });

  test("comes after a search of the web that tool_choice allows", async ({ service, vendor }) => {
    const search = { type: "web_search_20250305", name: "web_search", allowed_domains: [] };
    const own = { name: "look", input_schema: SCHEMA };
    const named = { type: "tool", name: "web_search" };
    const cases: [tools: object[], tool_choice: object | undefined, isSearched: boolean][] = [
      [[search], undefined, true],
      [[search], { type: "any" }, true],
      [[search], named, true],
      [[own, search], named, true],
      [[own, search], { type: "auto" }, true],
      [[own, search], { type: "none" }, false],
      [[search], { type: "none" }, false],
    ];
    for (const [tools, tool_choice, isSearched] of cases) {
      const { json } = await ask(service, { tools, tool_choice });
      assert.deepEqual(
        json.notices?.map(({ code }) => code),
        isSearched ? ["web_search_unavailable"] : [],
        JSON.stringify([tools, tool_choice, json]),
      );
    }
    vendor.reset();
    vendor.always({ calls: [{ name: "look", arguments: '{"a":"b"}' }] });
    const { json } = await ask(service, { tools: [own, search], tool_choice: { type: "any" } });
    assert.equal(json.stop_reason, "tool_use");
    assert.equal(vendor.calls[0]?.json.tool_choice, "required");
  });

  test("says why it ended", async ({ service, vendor }) => {
    vendor.reply({ text: "a", finish: "length" }, { text: "a", finish: "content-filter" });
    assert.equal((await ask(service, {})).json.stop_reason, "max_tokens");
    assert.equal((await ask(service, {})).json.stop_reason, "refusal");
  });
});

describe("a stream", () => {
  test("has Anthropic's events in their order", async ({ service, vendor }) => {
    vendor.reply({ text: ["Good", " morning"], betweenMs: 50, usage: { cached: 1 } });
    const { events, headers } = await stream(service, { model: "claude-opus-4-1" });
    assert.match(headers.get("x-chorus-notice") ?? "", /^unknown_model: /);
    assert.match(headers.get("request-id") ?? "", /^req_/);
    for (const { event, data } of events) assert.equal(data.type, event);
    const [start = {}, ...rest] = events.map(({ data }) => data);
    const { id, ...message } = start.message as Record<string, unknown>;
    assert.match(String(id), /^gen_/);
    const usage = { input_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
    assert.deepEqual(message, {
      ...{ type: "message", role: "assistant", model: "chorus", content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage, notices: [] },
    });
    assert.deepEqual(rest.slice(0, 2), [
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "ping" },
    ]);
    const deltas = rest.filter(({ type }) => type === "content_block_delta");
    assert.equal(deltas.map(({ delta }) => (delta as { text: string }).text).join(""), "Good morning");
    assert.ok(deltas.length > 1);
    const [stop, last, end] = rest.slice(2 + deltas.length);
    assert.deepEqual([stop, end], [{ type: "content_block_stop", index: 0 }, { type: "message_stop" }]);
    const { notices, ...delta } = last as { notices: { code: string }[] };
    assert.deepEqual(
      notices.map(({ code }) => code),
      ["unknown_model"],
    );
    assert.deepEqual(delta, {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { ...usage, input_tokens: 0, cache_read_input_tokens: 1, output_tokens: 2, credits: 0.00081 },
    });
  });

  test("names the stop sequence that ended it", async ({ service, vendor }) => {
    vendor.reply({ text: ["One.", " Two E", "ND three"] });
    const { events } = await stream(service, { model: "chorus-low", stop_sequences: [" END"] });
    const { data } = events.find(({ event }) => event === "message_delta") ?? assert.fail();
    assert.deepEqual(data.delta, { stop_reason: "stop_sequence", stop_sequence: " END" });
  });

  test("sends JSON in one piece when it is valid", async ({ service, vendor }) => {
    vendor.reply({ text: 'Here: {"a":"b"}' });
    const { events } = await stream(service, { output_config: { format: { type: "json_schema", schema: SCHEMA } } });
    const deltas = events.filter(({ event }) => event === "content_block_delta");
    assert.deepEqual(deltas[0]?.data.delta, { type: "text_delta", text: '{"a":"b"}' });
    assert.equal(deltas.length, 1);
  });

  test("ends with the event error when it breaks", async ({ service, vendor }) => {
    vendor.always({ text: ["a", "b"], end: "error", after: 1 });
    const { events, headers } = await stream(service, {});
    const { event, data } = events.at(-1) ?? assert.fail();
    assert.equal(event, "error");
    const { error, request_id } = data as { error: { type: string; message: string }; request_id: string };
    assert.equal(error.type, "api_error");
    assert.match(error.message, /No model could answer/);
    assert.equal(request_id, headers.get("request-id"));
  });
});

describe("the count of tokens", () => {
  test("is what the request is charged for, and free", async ({ service, vendor, database: { pool } }) => {
    const content = [
      { type: "text", text: "What is it? ".repeat(50) },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
      { type: "document", source: { type: "text", data: "The key is 4712." } },
    ];
    const format = { type: "json_schema", schema: SCHEMA };
    const tool = { name: "look", description: "Looks it up. ".repeat(30), input_schema: SCHEMA };
    const bodies = [
      { system: "Be brief.", messages: [{ role: "user", content }] },
      { messages: [{ role: "user", content: LONG }] },
      { messages: HELLO, output_config: { format } },
      { messages: HELLO, tools: [tool] },
      {
        messages: [
          ...HELLO,
          { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: { a: "Oslo" } }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "It rains. ".repeat(20) }] },
        ],
        tools: [tool],
        tool_choice: { type: "auto" },
      },
    ];
    vendor.always({ text: '{"a":"b"}' });
    const counts: number[] = [];
    for (const body of bodies) {
      const [before] = await pool.query("select count(*) as n from generations");
      const response = await service.post(`${PATH}/count_tokens`, body);
      assert.equal(response.status, 200);
      assert.match(response.headers.get("request-id") ?? "", /^req_/);
      const count = (await response.json()) as { input_tokens: number };
      const [after] = await pool.query("select count(*) as n from generations");
      assert.deepEqual(after, before);
      const { json } = await ask(service, body);
      assert.deepEqual(count, { input_tokens: json.usage.input_tokens });
      counts.push(count.input_tokens);
    }
    const [plain = 0, called = 0] = counts.slice(-2);
    assert.ok(plain > 120 && called > plain + 40, `${counts}`);
  });

  test("needs neither credit nor what limits leave, and counts towards none", async ({
    service,
    database: { pool },
  }) => {
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: "messages-empty" });
    const { secret } = await keys.createKey({ workspace: "messages-empty" });
    await setLimits(pool, "messages-empty", [{ name: "requests_per_day", to: 0n }]);
    for (const content of ["Hello", LONG]) {
      const body = { messages: [{ role: "user", content }] };
      const response = await service.post(`${PATH}/count_tokens`, body, { "x-api-key": secret });
      assert.equal(response.status, 200, await response.text());
    }
  });

  test("needs a valid request and a key", async ({ service }) => {
    const wrong = await service.post(`${PATH}/count_tokens`, { messages: [{ role: "user", content: 1 }] });
    assert.equal(wrong.status, 400);
    const nobody = await service.post(`${PATH}/count_tokens`, { messages: HELLO }, { "x-api-key": "ck_unknown" });
    assert.equal(nobody.status, 401);
  });
});

test("the list of models has the format of the client that asks", async ({ service }) => {
  const version = { "anthropic-version": "2023-06-01" };
  const list = await (await service.get("/v1/models", version)).json();
  const names = ["chorus", "chorus-low", "chorus-medium", "chorus-high"];
  const models = names.map((id, i) => ({
    type: "model",
    id,
    display_name: ["Chorus", "Chorus low", "Chorus medium", "Chorus high"][i],
    created_at: "2026-01-01T00:00:00.000Z",
  }));
  assert.deepEqual(list, { data: models, has_more: false, first_id: "chorus", last_id: "chorus-high" });
  assert.deepEqual(await (await service.get("/v1/models/chorus-low", version)).json(), models[1]);
  assert.equal(((await (await service.get("/v1/models")).json()) as { object: string }).object, "list");
  const unknown = await service.get("/v1/models/gpt-4o", version);
  assert.equal(unknown.status, 404);
  assert.equal(((await unknown.json()) as Answer).error?.type, "not_found_error");
});

test("the list of models has pages", async ({ service }) => {
  const version = { "anthropic-version": "2023-06-01" };
  const page = async (query: string) => {
    const response = await service.get(`/v1/models?${query}`, version);
    const {
      data = [],
      error,
      ...rest
    } = (await response.json()) as {
      data?: { id: string }[];
      error?: { message: string };
      request_id?: string;
    };
    if (error) return [response.status, /^\S+/.exec(error.message)?.[0]];
    return [data.map(({ id }) => id.replace("chorus-", "")), ...Object.values(rest)];
  };
  assert.deepEqual(await page("limit=2"), [["chorus", "low"], true, "chorus", "chorus-low"]);
  assert.deepEqual(await page("limit=2&after_id=chorus-low"), [
    ["medium", "high"],
    false,
    "chorus-medium",
    "chorus-high",
  ]);
  assert.deepEqual(await page("limit=1&before_id=chorus-medium"), [["low"], true, "chorus-low", "chorus-low"]);
  assert.deepEqual(await page("after_id=chorus-high"), [[], false, "", ""]);
  assert.deepEqual(await page("limit=0"), [400, "limit"]);
  assert.deepEqual(await page("limit=1001"), [400, "limit"]);
  assert.deepEqual(await page("limit=x"), [400, "limit"]);
  assert.deepEqual(await page("after_id=gpt-4o"), [400, "after_id"]);
});
