import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { GenerationService, Role, ToolMode } from "../../gen/chorus/v1/generation_pb.js";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import { test as base } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { transports } from "../helpers/rpc.ts";
import { readEvents, startService } from "../helpers/service.ts";
import { startVendor, type WireKind } from "../helpers/vendors.ts";

const WEATHER = {
  name: "get_weather",
  description: "The weather of a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city"],
  },
};
const CALL = { name: "get_weather", arguments: '{"city":"Oslo","days":12345678901234567890}' };
const ASK = { prompt: "What is the weather in Oslo?", effort: "low", tools: [WEATHER] };
const { count } = createTokenizer();

/** What the tests read of an answer, or of a failure. */
interface Answer {
  answer?: string;
  finish_reason?: string;
  tool_calls?: { id: string; name: string; arguments: unknown }[];
  code?: string;
  field?: string;
}

const read = async (response: Response) => (await response.json()) as Answer;

/** The same conversation after the call. */
const answered = (id: string) => ({
  effort: "low",
  tools: [WEATHER],
  messages: [
    { role: "user", content: ASK.prompt },
    { role: "assistant", content: "I look.", tool_calls: [{ id, name: CALL.name, arguments: { city: "Oslo" } }] },
    { role: "tool", tool_call_id: id, content: "rain" },
  ],
});

const test = base.extend(
  "vendors",
  { scope: "file" },
  fixture(async (t) => {
    const start = async (kind: WireKind) => {
      const vendor = await startVendor(kind);
      t.onTestFinished(() => vendor.close());
      return { vendor, service: await startService(t, { env: vendor.env }) };
    };
    const [openai, responses] = await Promise.all([start("openai"), start("responses")]);
    const [anthropic, google] = await Promise.all([start("anthropic"), start("google")]);
    return { openai, responses, anthropic, google };
  }),
);

describe("tools", () => {
  for (const kind of ["openai", "responses", "anthropic", "google"] as const) {
    test(`asks for a tool and answers from its result, through the wire of ${kind}`, async ({ vendors }) => {
      const { vendor, service } = vendors[kind];
      vendor.reset();
      vendor.always({ text: "I look.", calls: [CALL] });
      const response = await service.post("/v1/generate", ASK);
      const text = await response.text();
      assert.equal(response.status, 200, text);
      const answer = JSON.parse(text);
      assert.equal(answer.answer, "I look.");
      assert.equal(answer.finish_reason, "tool_calls");
      assert.match(answer.tool_calls[0].id, /^call_[0-9a-f]{32}$/);
      assert.equal(answer.tool_calls[0].name, "get_weather");
      // The digits of the number arrive.
      assert.ok(text.includes(`"arguments":${CALL.arguments}`), text);
      assert.equal(answer.usage.output_tokens, count("I look.") + count(CALL.name) + count(CALL.arguments));
      const sent = [ASK.prompt, WEATHER.name, WEATHER.description, JSON.stringify(WEATHER.parameters)];
      assert.equal(
        answer.usage.input_tokens,
        sent.reduce((sum, part) => sum + count(part), 0),
      );
      assert.ok(vendor.calls[0]?.body.includes(JSON.stringify(WEATHER.parameters)));

      vendor.always({ text: "It rains." });
      const next = await read(await service.post("/v1/generate", answered(answer.tool_calls[0].id)));
      assert.equal(next.answer, "It rains.");
      assert.equal(next.finish_reason, "stop");
      assert.equal("tool_calls" in next, false);
      const seen = vendor.calls.at(-1)?.body ?? "";
      assert.ok(seen.includes("rain") && seen.includes("Oslo"), seen);
    });

    test(`streams text at once and calls at the end, through the wire of ${kind}`, async ({ vendors }) => {
      const { vendor, service } = vendors[kind];
      vendor.reset();
      const other = { name: "get_weather", arguments: '{"city":"Rome"}' };
      vendor.always({ text: ["I ", "look."], calls: [CALL, other] });
      const events = await readEvents(await service.post("/v1/generate:stream", ASK));
      const names = events.map(({ event }) => event);
      assert.deepEqual(names.slice(-3), ["tool_call", "tool_call", "done"]);
      assert.ok(names.slice(0, -3).every((name) => name === "delta"));
      const calls = events.filter(({ event }) => event === "tool_call").map(({ data }) => data);
      assert.deepEqual(
        calls.map(({ index, name, arguments: given }) => [index, name, (given as { city: string }).city]),
        [
          [0, "get_weather", "Oslo"],
          [1, "get_weather", "Rome"],
        ],
      );
      assert.equal(events.at(-1)?.data.finish_reason, "tool_calls");
    });
  }

  test("sends OpenAI properties of each tool, also of one that the request does not define", async ({
    vendors: { openai },
  }) => {
    const { vendor, service } = openai;
    vendor.reset();
    const bare = { name: "now", parameters: { type: "object" } };
    for (const body of [
      { ...ASK, tools: [bare] },
      { ...answered("c1"), tools: [] },
    ])
      assert.equal((await service.post("/v1/generate", body)).status, 200);
    for (const { json } of vendor.calls)
      assert.match(JSON.stringify(json.tools), /"parameters":\{"type":"object","properties":\{\}\}/);
  });

  for (const [size, note] of [
    ["small", ""],
    ["large", "It is read in a worker thread. ".repeat(1_000)],
  ] as const)
    test(`gives each array in a ${size} tool's schema the items that OpenAI demands`, async ({ vendors }) => {
      const { vendor, service } = vendors.openai;
      vendor.reset();
      const array = (more: object) => ({ type: "array", ...more });
      const properties = (more: object) => ({
        type: { type: ["array", "null"], ...more },
        array: { enum: ["array"], default: { type: "array" }, description: note },
        items: { anyOf: [array({ items: array(more) }), { $ref: "#/$defs/List" }] },
      });
      const parameters = (more: object) => ({
        type: "object",
        properties: properties(more),
        $defs: { List: array({ prefixItems: [array(more)], ...more }) },
      });
      const tools = [{ name: "look", parameters: parameters({}) }];
      assert.equal((await service.post("/v1/generate", { ...ASK, tools })).status, 200);
      const sent = vendor.calls[0]?.json.tools as { function: { parameters: object } }[] | undefined;
      assert.deepEqual(sent?.[0]?.function.parameters, parameters({ items: {} }));
    });

  test("gives Gemini results in the order of their calls", async ({ vendors: { google } }) => {
    const { vendor, service } = google;
    vendor.reset();
    const call = (id: string, city: string) => ({ id, name: "get_weather", arguments: { city } });
    const result = (tool_call_id: string, content: string) => ({ role: "tool", tool_call_id, content });
    const messages = [
      { role: "user", content: ASK.prompt },
      { role: "assistant", content: "", tool_calls: [call("a", "Oslo"), call("b", "Rome")] },
      result("b", "sun in Rome"),
      result("a", "rain in Oslo"),
    ];
    const response = await service.post("/v1/generate", { effort: "low", tools: [WEATHER], messages });
    assert.equal(response.status, 200, await response.text());
    const told = vendor.calls[0]?.body.match(/"result":"\w+/g);
    assert.deepEqual(told, ['"result":"rain', '"result":"sun']);
  });

  test("gives Gemini names that begin with a letter or an underscore", async ({ vendors: { google } }) => {
    const { vendor, service } = google;
    vendor.reset();
    const names = ["2fa", "-f", "a1", "_2fa"];
    // As Gemini refuses it.
    const isRefused = (body: string) => /"(?:name":|allowedFunctionNames":\[)"[^a-z_]/i.test(body);
    for (const name of names) {
      vendor.always(({ body, json }) => {
        if (isRefused(body))
          return { status: 400, error: { message: "Invalid function name.", type: "INVALID_ARGUMENT" } };
        const [{ functionDeclarations: declared }] = json.tools as [{ functionDeclarations: { name: string }[] }];
        return { calls: [{ name: declared[names.indexOf(name)]?.name ?? "", arguments: "{}" }] };
      });
      const call = { id: "a", name, arguments: {} };
      const response = await service.post("/v1/generate", {
        effort: "low",
        tools: names.map((each) => ({ name: each })),
        tool_choice: { name },
        messages: [
          { role: "user", content: "Call it twice." },
          { role: "assistant", tool_calls: [call] },
          { role: "tool", tool_call_id: "a", content: "1" },
        ],
      });
      const answer = await read(response);
      assert.deepEqual([response.status, answer.tool_calls?.[0]?.name], [200, name], JSON.stringify(answer));
    }
  });

  test("has the word for a missing signature at each model of Gemini", async ({ vendors: { google } }) => {
    const { vendor, service } = google;
    vendor.reset();
    for (const effort of ["low", "high"])
      assert.equal((await service.post("/v1/generate", { ...answered("c1"), effort })).status, 200);
    const models = new Set(vendor.calls.map(({ path }) => path));
    assert.ok(models.size > 1, [...models].join());
    for (const { path, body } of vendor.calls)
      assert.match(body, /"thoughtSignature":"skip_thought_signature_validator"/, path);
  });

  test("repairs a call once, and fails for free after one new try", async ({ vendors: { openai } }) => {
    const { vendor, service } = openai;
    const bad = { text: [], calls: [{ name: "get_weather", arguments: '{"days":1}' }] };
    vendor.reset();
    vendor.reply(bad, { calls: [CALL] });
    const answer = await read(await service.post("/v1/generate", ASK));
    assert.equal(answer.finish_reason, "tool_calls", JSON.stringify(answer));
    assert.ok(vendor.calls[1]?.body.includes('must have the property \\"city\\"'));
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      vendor.reset();
      vendor.always(bad);
      const response = await service.post(path, ASK);
      assert.equal(response.status, 502);
      assert.equal((await read(response)).code, "structured_output_failed");
      assert.equal(vendor.calls.length, 2);
    }
  });

  test("writes lone surrogates as U+FFFD in arguments and objects, to callers and vendors", async ({ vendors }) => {
    const { vendor, service } = vendors.openai;
    const lone = '{"city":"a\\ud83d \\uD83D\\uDE00 \\\\ud83d"}';
    const whole = '{"city":"a\\ufffd \\uD83D\\uDE00 \\\\ud83d"}';
    vendor.reset();
    vendor.always({ calls: [{ name: "get_weather", arguments: lone }] });
    const called = await (await service.post("/v1/generate", ASK)).text();
    assert.ok(called.includes(`"arguments":${whole}`), called);
    vendor.always({ text: lone });
    for (const shape of [
      { output_shape: "extract" },
      { response_format: { type: "json_schema", schema: WEATHER.parameters } },
    ]) {
      const answer = await (await service.post("/v1/generate", { prompt: "Where?", effort: "low", ...shape })).text();
      assert.ok(answer.includes(`"structured":${whole}`), answer);
    }
    const given = JSON.stringify(answered("call_1")).replace('{"city":"Oslo"}', lone);
    assert.equal((await service.post("/v1/generate", given)).status, 200);
    assert.ok(vendor.calls.at(-1)?.body.includes(JSON.stringify(whole)));
  });

  test("keeps the choice of tools", async ({ vendors: { openai } }) => {
    const { vendor, service } = openai;
    const post = async (body: object) => read(await service.post("/v1/generate", { ...ASK, ...body }));
    vendor.reset();
    vendor.always({ text: "No." });
    assert.equal((await post({ tool_choice: "required" })).code, "structured_output_failed");
    assert.equal(vendor.calls[0]?.json.tool_choice, "required");
    vendor.always({ text: "Yes.", calls: [CALL] });
    const named = await post({ tool_choice: { name: "get_weather" }, parallel_tool_calls: false });
    assert.equal(named.finish_reason, "tool_calls");
    assert.deepEqual(vendor.calls.at(-1)?.json.tool_choice, { type: "function", function: { name: "get_weather" } });
    assert.equal(vendor.calls.at(-1)?.json.parallel_tool_calls, false);
    vendor.always({ text: "No." });
    const none = await post({ tool_choice: "none" });
    assert.equal(none.finish_reason, "stop");
    assert.equal("tool_calls" in none, false);
    vendor.always({ calls: [CALL, CALL] });
    assert.equal((await post({ parallel_tool_calls: false })).tool_calls?.length, 1);
  });

  test("returns the same calls over Connect and gRPC, and for a repeated request", async ({ vendors: { openai } }) => {
    const { vendor, service } = openai;
    vendor.reset();
    vendor.always({ calls: [CALL] });
    const parameters = JSON.stringify(WEATHER.parameters);
    const request = {
      messages: [{ role: Role.USER, content: ASK.prompt }],
      tools: [{ name: WEATHER.name, parameters }],
      toolChoice: { mode: ToolMode.AUTO },
    };
    for (const transport of Object.values(transports(service.rpcUrl))) {
      const client = createClient(GenerationService, transport);
      const headers = { "x-api-key": service.apiKey };
      const { toolCalls } = await client.generate(request, { headers });
      assert.equal(toolCalls[0]?.arguments, CALL.arguments);
      const cases: (string | undefined)[] = [];
      for await (const { event } of client.streamGenerate(request, { headers })) {
        cases.push(event.case);
        if (event.case === "toolCall") assert.equal(event.value.arguments, CALL.arguments);
      }
      assert.deepEqual(cases, ["toolCall", "done"]);
    }
    const key = { "Idempotency-Key": "tools-1" };
    const first = await read(await service.post("/v1/generate", ASK, key));
    const calls = vendor.calls.length;
    const again = await read(await service.post("/v1/generate", ASK, key));
    assert.deepEqual(again.tool_calls, first.tool_calls);
    assert.equal(vendor.calls.length, calls);
  });

  test("takes format in the schema of a strict tool, and says that it is not checked", async ({
    vendors: { openai },
  }) => {
    const { vendor, service } = openai;
    const toolWith = (more: object) => {
      const at = { type: "string", format: "date-time" };
      return [{ name: "f", strict: true, parameters: { type: "object", properties: { at }, ...more } }];
    };
    vendor.reply({ calls: [{ name: "f", arguments: '{"at":"2026-01-31T00:00:00Z"}' }] });
    const response = await service.post("/v1/generate", { ...ASK, tools: toolWith({}) });
    const answer = (await response.json()) as Answer & { notices?: { code: string; field?: string }[] };
    assert.equal(response.status, 200, JSON.stringify(answer));
    assert.deepEqual(answer.tool_calls?.[0]?.arguments, { at: "2026-01-31T00:00:00Z" });
    const notices = answer.notices?.map(({ code, field }) => [code, field]);
    assert.deepEqual(notices, [["tool_schema_unchecked", "tools[0].parameters"]]);
    const other = await service.post("/v1/generate", { ...ASK, tools: toolWith({ unevaluatedProperties: false }) });
    const failure = (await other.json()) as Answer & { message?: string };
    assert.deepEqual([other.status, failure.field], [422, "tools[0].parameters"], JSON.stringify(failure));
    assert.match(failure.message ?? "", /"unevaluatedProperties" is not checked/);
  });

  test("refuses tools and messages that do not fit together, naming the field", async ({ vendors: { openai } }) => {
    const { service } = openai;
    const call = { id: "a", name: "f", arguments: {} };
    const asked = { role: "assistant", tool_calls: [call] };
    const result = { role: "tool", tool_call_id: "a", content: "1" };
    const user = { role: "user", content: "a" };
    const cases: [object, string][] = [
      [{ prompt: "a", tools: [{ name: "a b" }] }, "tools[0].name"],
      [{ prompt: "a", tools: [{ name: "a" }, { name: "a" }] }, "tools[1].name"],
      [{ prompt: "a", tools: [{ name: "a", parameters: [1] }] }, "tools[0].parameters"],
      [{ prompt: "a", tools: [{ name: "a", parameters: { type: "array", items: {} } }] }, "tools[0].parameters"],
      [{ prompt: "a", tools: [{ name: "a", parameters: { type: ["string", "null"] } }] }, "tools[0].parameters"],
      [{ prompt: "a", tools: Array.from({ length: 129 }, (_, i) => ({ name: `t${i}` })) }, "tools"],
      [{ prompt: "a", tool_choice: "required" }, "tool_choice"],
      [{ prompt: "a", tools: [{ name: "a" }], tool_choice: { name: "b" } }, "tool_choice.name"],
      [{ prompt: "a", tools: [{ name: "a" }], tool_choice: {} }, "tool_choice.name"],
      [{ prompt: "a", tools: [{ name: "a" }], tool_choice: { type: "function", function: "a" } }, "tool_choice.name"],
      [{ prompt: "a", tools: [{ name: "a" }], tool_choice: "some" }, "tool_choice"],
      [{ prompt: "a", tools: [{ name: "a" }], tool_choice: 1 }, "tool_choice"],
      [{ messages: [user, asked] }, "messages[1].tool_calls[0].id"],
      [{ messages: [user, asked, user, result] }, "messages[1].tool_calls[0].id"],
      [{ messages: [user, result] }, "messages[1].tool_call_id"],
      [{ messages: [user, asked, result, result] }, "messages[3].tool_call_id"],
      [{ messages: [user, asked, { role: "tool", content: "1" }] }, "messages[2].tool_call_id"],
      [{ messages: [{ ...user, tool_calls: [call] }] }, "messages[0].tool_calls"],
      [{ messages: [{ ...user, tool_call_id: "a" }] }, "messages[0].tool_call_id"],
      [{ messages: [{ role: "assistant" }] }, "messages[0].content"],
      [{ messages: [user, { ...asked, tool_calls: [call, call] }] }, "messages[1].tool_calls[1].id"],
      [
        { messages: [user, { ...asked, tool_calls: [{ ...call, arguments: "1" }] }] },
        "messages[1].tool_calls[0].arguments",
      ],
    ];
    for (const [body, field] of cases) {
      const response = await service.post("/v1/generate", body);
      const failure = await read(response);
      assert.deepEqual([response.status, failure.field], [422, field], JSON.stringify(failure));
    }
  });

  test("marks long tools for the vendor's cache, which share a key only if they are the same", async ({ vendors }) => {
    const long = { ...WEATHER, description: "The weather of a city. ".repeat(200) };
    const sent = async (kind: "anthropic" | "openai", request: object) => {
      const { vendor, service } = vendors[kind];
      vendor.reset();
      vendor.always({ text: "It rains.", calls: [CALL] });
      assert.equal((await service.post("/v1/generate", { ...ASK, ...request })).status, 200);
      return vendor.calls[0]?.json ?? {};
    };
    // The mark after the instructions covers the tools before them.
    const { system: marked } = await sent("anthropic", { tools: [WEATHER, { ...long, name: "forecast" }] });
    assert.deepEqual((marked as { cache_control?: object }[])[0]?.cache_control, { type: "ephemeral" });
    const key = async (request: object) => (await sent("openai", request)).prompt_cache_key;
    const first = await key({ tools: [long] });
    assert.match(String(first), /^[0-9a-f]{32}$/);
    assert.equal(await key({ tools: [long], tool_choice: "required" }), first);
    assert.notEqual(await key({ tools: [{ ...long, description: `${long.description}.` }] }), first);
    const system = "Be brief. ".repeat(500);
    assert.notEqual(await key({ system }), await key({ system, tools: [{ ...WEATHER, description: "" }] }));
    assert.equal(await key({}), undefined);
  });

  test("asks for a tool that must be called without any vendor", async ({ onTestFinished }) => {
    const service = await startService({ onTestFinished }, {});
    const answer = await read(await service.post("/v1/generate", { ...ASK, tool_choice: "required" }));
    assert.equal(answer.finish_reason, "tool_calls", JSON.stringify(answer));
    assert.deepEqual(
      answer.tool_calls?.map(({ name, arguments: given }) => [name, given]),
      [["get_weather", { city: "Oslo" }]],
    );
  });
});
