import assert from "node:assert/strict";
import { describe } from "vitest";
import { test } from "../../helpers/fixtures.ts";
import type { TestService } from "../../helpers/service.ts";

const PATH = "/v1/responses";
const TOOL = {
  type: "function",
  name: "get_weather",
  description: "Weather of a place",
  parameters: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
};
const CALL = { name: "get_weather", arguments: '{"location":"Paris"}' };
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** Makes a body too large to be read on the event loop. */
const LONG = "The invoice was paid. ".repeat(1_000);

/** Any JSON. */
type Json = ReturnType<typeof JSON.parse>;

async function ask(service: TestService, body: object, headers: Record<string, string> = {}) {
  const response = await service.post(PATH, { model: "chorus", ...body }, headers);
  return { status: response.status, headers: response.headers, json: (await response.json()) as Json };
}

async function stream(service: TestService, body: object): Promise<Json[]> {
  const response = await service.post(PATH, { model: "chorus", stream: true, ...body });
  const text = await response.text();
  assert.equal(response.headers.get("content-type"), "text/event-stream", text);
  const events = text.split("\n\n").flatMap((block) => {
    const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
    if (data === undefined) return [];
    const event = JSON.parse(data);
    assert.equal(event.type, name);
    return [event];
  });
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_, i) => i),
  );
  return events;
}

/** Members that Open Responses requires of a response, with the types of their values. */
const RESPONSE: Record<string, string[]> = {
  id: ["string"],
  object: ["string"],
  created_at: ["number"],
  completed_at: ["number", "null"],
  status: ["string"],
  incomplete_details: ["object", "null"],
  model: ["string"],
  previous_response_id: ["string", "null"],
  instructions: ["string", "null"],
  output: ["array"],
  error: ["object", "null"],
  tools: ["array"],
  tool_choice: ["string", "object"],
  truncation: ["string"],
  parallel_tool_calls: ["boolean"],
  text: ["object"],
  top_p: ["number"],
  presence_penalty: ["number"],
  frequency_penalty: ["number"],
  top_logprobs: ["number"],
  temperature: ["number"],
  reasoning: ["object", "null"],
  user: ["string", "null"],
  usage: ["object", "null"],
  max_output_tokens: ["number", "null"],
  max_tool_calls: ["number", "null"],
  store: ["boolean"],
  background: ["boolean"],
  service_tier: ["string"],
  metadata: ["object"],
  safety_identifier: ["string", "null"],
  prompt_cache_key: ["string", "null"],
};
const PART = { type: ["string"], text: ["string"], annotations: ["array"], logprobs: ["array"] };
const ITEMS: Record<string, Record<string, string[]>> = {
  message: { type: ["string"], id: ["string"], status: ["string"], role: ["string"], content: ["array"] },
  function_call: {
    ...{ type: ["string"], id: ["string"], call_id: ["string"], name: ["string"] },
    ...{ arguments: ["string"], status: ["string"] },
  },
  custom_tool_call: {
    ...{ type: ["string"], id: ["string"], call_id: ["string"], name: ["string"] },
    ...{ input: ["string"], status: ["string"] },
  },
};
const OF_ITEM = { item_id: ["string"], output_index: ["number"] };
const OF_PART = { ...OF_ITEM, content_index: ["number"] };
/** Members of each event beside `type` and `sequence_number`. */
const EVENTS: Record<string, Record<string, string[]>> = {
  "response.created": { response: ["object"] },
  "response.in_progress": { response: ["object"] },
  "response.completed": { response: ["object"] },
  "response.incomplete": { response: ["object"] },
  "response.failed": { response: ["object"] },
  "response.output_item.added": { output_index: ["number"], item: ["object"] },
  "response.output_item.done": { output_index: ["number"], item: ["object"] },
  "response.content_part.added": { ...OF_PART, part: ["object"] },
  "response.content_part.done": { ...OF_PART, part: ["object"] },
  "response.output_text.delta": { ...OF_PART, delta: ["string"], logprobs: ["array"] },
  "response.output_text.done": { ...OF_PART, text: ["string"], logprobs: ["array"] },
  "response.function_call_arguments.delta": { ...OF_ITEM, delta: ["string"] },
  "response.function_call_arguments.done": { ...OF_ITEM, name: ["string"], arguments: ["string"] },
  "response.custom_tool_call_input.delta": { ...OF_ITEM, delta: ["string"] },
  "response.custom_tool_call_input.done": { ...OF_ITEM, input: ["string"] },
  error: { code: ["string"], message: ["string"], param: ["string", "null"], error: ["object"] },
};

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function checkMembers(value: Json, members: Record<string, string[]>): void {
  for (const [name, types] of Object.entries(members))
    assert.ok(types.includes(typeOf(value[name])), `${name} in ${JSON.stringify(value)}`);
}

function checkResponse(response: Json): void {
  checkMembers(response, RESPONSE);
  assert.equal(response.object, "response");
  for (const item of response.output) checkItem(item);
  for (const tool of response.tools) {
    const nullable = { description: ["string", "null"], parameters: ["object", "null"], strict: ["boolean", "null"] };
    checkMembers(tool, { type: ["string"], name: ["string"], ...nullable });
  }
  if (response.usage === null) return;
  const { usage } = response;
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
  assert.deepEqual([usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens], [0, 0]);
}

function checkItem(item: Json): void {
  checkMembers(item, ITEMS[item.type] ?? assert.fail(item.type));
  for (const part of item.content ?? []) checkMembers(part, PART);
}

function checkEvent({ type, sequence_number: _, ...members }: Json): void {
  const rules = EVENTS[type] ?? assert.fail(type);
  checkMembers(members, rules);
  assert.deepEqual(Object.keys(members).sort(), Object.keys(rules).sort(), type);
  if (members.response) checkResponse(members.response);
  if (members.item) checkItem(members.item);
  if (members.part) checkMembers(members.part, PART);
}

describe("the acceptance cases of Open Responses", () => {
  const user = (content: unknown) => ({ type: "message", role: "user", content });
  const cases: [name: string, body: object, streamed: boolean, isCall?: boolean][] = [
    ["basic-response", { input: [user("Say hello in exactly 3 words.")] }, false],
    ["streaming-response", { input: [user("Count from 1 to 5.")] }, true],
    ["system-prompt", { input: [{ type: "message", role: "system", content: "Be a pirate." }, user("Hello.")] }, false],
    ["tool-calling", { input: [user("What's the weather like in Paris?")], tools: [TOOL] }, false, true],
    ["tool-calling-streaming", { input: [user("What's the weather like in Paris?")], tools: [TOOL] }, true, true],
    [
      "image-input",
      {
        input: [
          user([
            { type: "input_text", text: "What do you see?" },
            { type: "input_image", image_url: `data:image/png;base64,${PNG}` },
          ]),
        ],
      },
      false,
    ],
    [
      "multi-turn",
      {
        input: [
          user("My name is Alice."),
          { type: "message", role: "assistant", content: "Hello Alice!" },
          user("What is my name?"),
        ],
      },
      false,
    ],
  ];
  test.for(cases)("%s", async ([, body, streamed, isCall], { service, vendor }) => {
    if (isCall) vendor.always({ calls: [CALL] });
    if (!streamed) {
      const { status, json } = await ask(service, body);
      assert.equal(status, 200, JSON.stringify(json));
      checkResponse(json);
      assert.deepEqual([json.status, json.output.length > 0], ["completed", true]);
      if (isCall) assert.equal(json.output[0].type, "function_call");
      return;
    }
    const events = await stream(service, body);
    for (const event of events) checkEvent(event);
    assert.equal(events.at(-1)?.response.status, "completed");
    if (!isCall) return;
    const types = events.map(({ type }) => type);
    assert.deepEqual(types, [
      ...["response.created", "response.in_progress", "response.output_item.added"],
      ...["response.function_call_arguments.delta", "response.function_call_arguments.done"],
      ...["response.output_item.done", "response.completed"],
    ]);
    assert.deepEqual(events.at(-1)?.response.output, [events.at(-2)?.item]);
  });
});

describe("a response", () => {
  test("has the text, the tokens and what the request says", async ({ service, vendor }) => {
    const { json, headers } = await ask(service, {
      input: "Hello",
      instructions: "Be brief.",
      max_output_tokens: 77,
      temperature: 0.5,
      metadata: { team: "a" },
      safety_identifier: "ada",
      reasoning: { effort: "low", summary: "auto" },
      text: { verbosity: "low" },
      store: false,
      include: ["reasoning.encrypted_content"],
    });
    checkResponse(json);
    assert.match(json.id, /^gen_/);
    assert.equal(json.output[0].content[0].text, "Hello from openai.");
    assert.deepEqual(json.reasoning, { effort: "low", summary: null });
    assert.deepEqual(json.text, { format: { type: "text" }, verbosity: "low" });
    assert.deepEqual([json.instructions, json.temperature, json.notices], ["Be brief.", 0.5, []]);
    assert.equal(headers.get("x-chorus-notice"), null);
    const sent = vendor.calls[0]?.body ?? "";
    assert.ok(sent.includes("Be brief.") && sent.includes("Keep the answer short."), sent);
  });

  test("has what a request without a member would have, where the member is too long", async ({ service }) => {
    const tools = [{ type: "function", name: "f", description: "x".repeat(70_000), parameters: null }];
    const names = Array.from({ length: 1_500 }, () => ({ type: "function", name: "f".padEnd(64, "f") }));
    const tool = { type: "function", name: names[0]?.name, parameters: null };
    const { json } = await ask(service, { input: "Hello", tools, metadata: { team: "x".repeat(70_000) } });
    checkResponse(json);
    assert.deepEqual([json.metadata, json.tools], [{}, []]);
    const choice = { type: "allowed_tools", mode: "auto", tools: names };
    const { json: chosen } = await ask(service, { input: "Hello", tools: [tool], tool_choice: choice });
    checkResponse(chosen);
    assert.equal(chosen.tool_choice, "auto");
  });

  test("streams the text between the events of its item", async ({ service, vendor }) => {
    vendor.always({ text: ["Good", " morning"] });
    const events = await stream(service, { input: "Hello" });
    for (const event of events) checkEvent(event);
    const types = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    assert.deepEqual(types, [
      ...["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"],
      ...["response.output_text.delta", "response.output_text.done", "response.content_part.done"],
      ...["response.output_item.done", "response.completed"],
    ]);
    const text = events.map(({ type, delta }) => (type === "response.output_text.delta" ? delta : "")).join("");
    assert.equal(text, "Good morning");
    assert.equal(events.at(-1)?.response.output[0].content[0].text, text);
  });

  test("is incomplete when the answer is cut short, and failed when it breaks", async ({ service, vendor }) => {
    vendor.always({ text: ["a", "b"], finish: "content-filter" });
    const cut = await stream(service, { input: "Hello" });
    for (const event of cut) checkEvent(event);
    const { status, incomplete_details, output } = cut.at(-1)?.response ?? {};
    assert.deepEqual([status, incomplete_details], ["incomplete", { reason: "content_filter" }]);
    assert.equal(output[0].status, "incomplete");
    vendor.always({ text: ["a", "b"], end: "error", after: 1 });
    const broken = await stream(service, { input: "Hello" });
    for (const event of broken) checkEvent(event);
    assert.equal(broken.at(-2)?.error.code, "upstream_failed");
    assert.deepEqual(broken.at(-1)?.response.error.code, "upstream_failed");
  });

  test("follows a schema of Pydantic, whole and streamed, in a large body too", async ({ service, vendor }) => {
    vendor.always({ text: '{"city":null}' });
    const Address = { type: "object", properties: { city: { anyOf: [{ type: "string" }, { type: "null" }] } } };
    const schema = { $defs: { Address }, $ref: "#/$defs/Address" };
    const text = { format: { type: "json_schema", name: "a", schema, strict: true } };
    for (const input of ["Hello", LONG]) {
      assert.equal((await ask(service, { input, text })).json.output?.[0].content[0].text, '{"city":null}');
      const events = await stream(service, { input, text });
      assert.equal(events.find(({ type }) => type === "response.output_text.delta")?.delta, '{"city":null}');
    }
    const open = { type: "object", properties: { on: { type: "string", contentEncoding: "base64" } } };
    const strict = await ask(service, { input: "Hello", text: { format: { ...text.format, schema: open } } });
    assert.deepEqual([strict.status, strict.json.error.param], [400, "text.format.schema.properties.on"]);
    for (const isStrict of [false, null, undefined]) {
      const lenient = { format: { ...text.format, schema: open, strict: isStrict } };
      const { json } = await ask(service, { input: "Hello", text: lenient });
      assert.deepEqual(json.notices?.[0]?.code, "schema_not_checked", JSON.stringify(json));
      assert.equal(json.output[0].content[0].text, '{"city":null}');
    }
  });

  test("gets calls, and the results of calls wherever they stand", async ({ service, vendor }) => {
    const call = (id: string) => ({ type: "function_call", id: `fc_${id}`, call_id: id, ...CALL, status: "completed" });
    const result = (id: string, output: unknown) => ({ type: "function_call_output", call_id: id, output });
    const { json, status } = await ask(service, {
      input: [
        { role: "user", content: "Weather?" },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" },
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          content: [{ type: "output_text", text: "I look.", annotations: [] }],
        },
        ...[call("c1"), call("c2")],
        { role: "user", content: "Hurry." },
        ...[result("c2", [{ type: "input_text", text: "rain" }]), result("c1", "sun")],
      ],
      tools: [TOOL],
    });
    assert.equal(status, 200, JSON.stringify(json));
    const sent = vendor.calls[0]?.json.messages as Json[];
    const roles = sent.map(({ role, content, tool_calls }) => [role, tool_calls?.length ?? content]);
    assert.deepEqual(roles.slice(1), [
      ["user", "Weather?"],
      ["assistant", 2],
      ["tool", "sun"],
      ["tool", "rain"],
      ["user", "Hurry."],
    ]);
    assert.deepEqual(
      json.notices.map(({ code }: Json) => code),
      ["no_effect"],
    );
  });

  test("has the images of outputs beside their outputs", async ({ service, vendor }) => {
    const image = { type: "input_image", image_url: `data:image/png;base64,${PNG}` };
    const { json, status } = await ask(service, {
      input: [
        { role: "user", content: [image, { type: "input_text", text: "Compare it with the screen." }] },
        { type: "function_call", call_id: "c1", ...CALL },
        { type: "function_call_output", call_id: "c1", output: [image, image] },
      ],
      tools: [TOOL],
    });
    assert.equal(status, 200, JSON.stringify(json));
    const sent = vendor.calls[0]?.json.messages as Json[];
    const told = sent.slice(-4).map((message) => [message.role, JSON.stringify(message).split("image/png").length - 1]);
    assert.deepEqual(told, [
      ["user", 1],
      ["assistant", 0],
      ["tool", 0],
      ["user", 2],
    ]);
  });

  test("takes an identifier of a call again in a later turn, with the results in order", async ({
    service,
    vendor,
  }) => {
    const call = { type: "function_call", call_id: "c1", ...CALL };
    const result = (output: string) => ({ type: "function_call_output", call_id: "c1", output });
    const user = { role: "user", content: "Weather?" };
    for (const rest of [
      [result("sun"), call, result("rain")],
      [user, call, result("sun"), result("rain")],
    ]) {
      vendor.reset();
      const { json, status } = await ask(service, { input: [user, call, ...rest], tools: [TOOL] });
      assert.equal(status, 200, JSON.stringify(json));
      const sent = vendor.calls[0]?.json.messages as Json[];
      const results = sent.filter(({ role }) => role === "tool");
      assert.deepEqual(
        results.map(({ content }) => content),
        ["sun", "rain"],
      );
      assert.equal(new Set(results.map(({ tool_call_id }) => tool_call_id)).size, 2);
    }
  });

  test("asks for custom tools, whose input is text, whole and streamed", async ({ service, vendor }) => {
    const format = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
    const patch = { type: "custom", name: "patch", description: "Changes files.", format };
    const tools = [
      patch,
      { type: "namespace", name: "shell", description: "", tools: [{ type: "custom", name: "run" }] },
    ];
    const input = 'say "a\nb"';
    const calls = ["patch", "shell__run"].map((name) => ({ name, arguments: JSON.stringify({ input }) }));
    const named = [{ name: "patch" }, { namespace: "shell", name: "run" }];
    vendor.always({ calls });
    const { json } = await ask(service, { input: LONG, tools });
    checkResponse({ ...json, tools: [] });
    for (const [i, { id, call_id, ...item }] of json.output.entries()) {
      assert.match(id, /^ctc_/);
      assert.deepEqual(item, { type: "custom_tool_call", ...named[i], input, status: "completed" });
    }
    assert.deepEqual(
      json.notices.map(({ code, field }: Json) => [code, field]),
      [["no_effect", "tools[0].format"]],
    );
    assert.ok(vendor.calls[0]?.body.includes("Lark grammar:\\nstart: /.+/"));

    const events = await stream(service, { input: "Hello", tools });
    for (const event of events.filter(({ response }) => !response)) checkEvent(event);
    const inputs = events.filter(({ type }) => /custom_tool_call_input/.test(type));
    assert.deepEqual(
      inputs.map((event) => event.delta ?? event.input),
      [input, input, input, input],
    );

    vendor.reset();
    vendor.always({ calls: calls.slice(0, 1) });
    const results = json.output.map(({ call_id }: Json) => ({
      type: "custom_tool_call_output",
      call_id,
      output: "ok",
    }));
    const history = [{ role: "user", content: "Hello" }, ...json.output, ...results];
    const next = await ask(service, { input: history, tools, tool_choice: { type: "custom", name: "patch" } });
    assert.equal(next.status, 200, JSON.stringify(next.json));
    const [assistant, ...rest] = (vendor.calls[0]?.json.messages as Json[] | undefined)?.slice(-3) ?? [];
    assert.deepEqual(JSON.parse(assistant.tool_calls[1].function.arguments), { input });
    assert.deepEqual(
      rest.map(({ role, content }: Json) => [role, content]),
      [
        ["tool", "ok"],
        ["tool", "ok"],
      ],
    );
  });

  test("never lets a call of a custom tool without its input leave", async ({ service, vendor }) => {
    vendor.always({ calls: [{ name: "patch", arguments: '{"text":"a"}' }] });
    const { status, json } = await ask(service, { input: "Hello", tools: [{ type: "custom", name: "patch" }] });
    assert.deepEqual([status, json.error.code], [502, "structured_output_failed"]);
  });

  test("maps the tools of a namespace, and a web search", async ({ service, vendor }) => {
    const space = { type: "namespace", name: "agents", description: "d", tools: [TOOL] };
    vendor.reply({ calls: [{ ...CALL, name: "agents__get_weather" }] });
    const { json } = await ask(service, { input: "Hello", tools: [space, { type: "web_search" }] });
    const [{ type, name, namespace }] = json.output;
    assert.deepEqual([type, name, namespace], ["function_call", "get_weather", "agents"]);
    assert.deepEqual(
      json.notices.map(({ field }: Json) => field),
      ["tools[1]"],
    );
    for (const [tool_choice, codes] of [
      ["auto", ["web_search_unavailable"]],
      ["required", ["web_search_unavailable"]],
      [{ type: "web_search_preview" }, ["web_search_unavailable"]],
      ["none", []],
    ] as const) {
      const tools = [{ type: "web_search_preview", filters: { allowed_domains: [] } }];
      const search = await ask(service, { input: "Hello", tools, tool_choice });
      assert.deepEqual(
        search.json.notices?.map(({ code }: Json) => code),
        codes,
        JSON.stringify([tool_choice, search.json]),
      );
    }
  });

  test("searches the web where allowed_tools leaves nothing else", async ({ service, vendor }) => {
    const tools = [TOOL, { type: "web_search" }];
    const function_ = { type: "function", name: TOOL.name };
    for (const [allowed, mode, codes, sent] of [
      [[{ type: "web_search" }], "auto", ["web_search_unavailable"], undefined],
      [[{ type: "web_search" }], "required", ["web_search_unavailable"], undefined],
      [[function_, { type: "web_search" }], "auto", ["no_effect"], 1],
      [[function_], "auto", [], 1],
    ] as const) {
      vendor.reply({ text: "Hi" });
      const tool_choice = { type: "allowed_tools", mode, tools: allowed };
      const { status, json } = await ask(service, { input: "Hello", tools, tool_choice });
      assert.equal(status, 200, JSON.stringify(json));
      assert.deepEqual(
        json.notices?.map(({ code }: Json) => code),
        codes,
      );
      assert.equal((vendor.calls.at(-1)?.json.tools as Json[] | undefined)?.length, sent);
    }
  });
});

test("refuses by name what would change the answer", async ({ service, vendor }) => {
  const item = (members: object) => ({ input: [{ role: "user", content: "a" }, members] });
  const part = (members: object) => ({ input: [{ role: "user", content: [members] }] });
  const called = [
    { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "a", output: "b" },
  ];
  const allowed = (...names: string[]) => ({
    ...{ type: "allowed_tools", mode: "auto" },
    tools: names.map((name) => ({ type: "function", name })),
  });
  const cases: [body: object, param: string][] = [
    [{ previous_response_id: "resp_1" }, "previous_response_id"],
    [{ conversation: "conv_1" }, "conversation"],
    [{ background: true }, "background"],
    [{ prompt: { id: "pmpt_1" } }, "prompt"],
    [{ top_logprobs: 2 }, "top_logprobs"],
    [{ messages: [{ role: "user", content: "a" }] }, "messages"],
    [{ max_tokens: 9 }, "max_tokens"],
    [{ max_completion_tokens: 9 }, "max_completion_tokens"],
    [{ response_format: { type: "json_object" } }, "response_format"],
    [{ stop: ["a"] }, "stop"],
    [{ n: 2 }, "n"],
    [{ logprobs: true }, "logprobs"],
    [{ logit_bias: { 50: 1 } }, "logit_bias"],
    [{ functions: [{ name: "f" }] }, "functions"],
    [{ function_call: "auto" }, "function_call"],
    [{ input: null }, "input"],
    [{ input: "" }, "input"],
    [{ input: 1 }, "input"],
    [{ tools: [{ type: "computer_use_preview" }] }, "tools[0].type"],
    [{ tools: [{ type: "web_search", filters: { allowed_domains: ["example.com"] } }] }, "tools[0].filters"],
    [{ tools: [{ type: "custom", name: "a b" }] }, "tools[0].name"],
    [{ tools: [{ type: "custom", name: "a", format: { type: "json" } }] }, "tools[0].format.type"],
    [{ tools: [{ ...TOOL, name: "a b" }] }, "tools[0].name"],
    [{ tools: [TOOL], tool_choice: { type: "function", name: "other" } }, "tool_choice.name"],
    [{ tools: [TOOL], tool_choice: { type: "mcp" } }, "tool_choice.type"],
    [{ tools: [TOOL], tool_choice: { type: "function" } }, "tool_choice.name"],
    [{ tools: [TOOL], tool_choice: { type: "custom" } }, "tool_choice.name"],
    [{ tools: [TOOL], tool_choice: { type: "function", function: { name: TOOL.name } } }, "tool_choice.name"],
    [{ tools: [TOOL], tool_choice: { name: TOOL.name } }, "tool_choice.type"],
    [{ tools: [TOOL], tool_choice: {} }, "tool_choice.type"],
    [{ tools: [TOOL], tool_choice: allowed(TOOL.name, "other") }, "tool_choice.tools[1].name"],
    [{ tools: [TOOL], tool_choice: allowed() }, "tool_choice.tools"],
    [{ tools: [TOOL], tool_choice: { ...allowed(), tools: [{ type: "function" }] } }, "tool_choice.tools[0].name"],
    [{ tools: [TOOL], tool_choice: { ...allowed(), tools: [{ type: "web_search" }] } }, "tool_choice.tools[0]"],
    [{ tool_choice: "always" }, "tool_choice"],
    [{ max_output_tokens: 32_001 }, "max_output_tokens"],
    [{ text: { format: { type: "grammar" } } }, "text.format.type"],
    [item({ type: "item_reference", id: "msg_1" }), "input[1].type"],
    [item({ role: "assistant", content: [{ type: "input_image", image_url: "data:," }] }), "input[1].content[0]"],
    [item({ type: "function_call", call_id: "a", name: "f", arguments: "{" }), "input[1].arguments"],
    [item({ type: "function_call", call_id: "a", name: "f", arguments: "{}" }), "input[1].call_id"],
    [item({ type: "function_call_output", call_id: "a", output: "b" }), "input[1].call_id"],
    [{ input: [...called, ...called.slice(1)] }, "input[2].call_id"],
    [part({ type: "input_image", image_url: "https://example.com/a.png" }), "input[0].content[0].image_url"],
    [part({ type: "input_file", file_id: "file-1" }), "input[0].content[0].file_id"],
  ];
  for (const [body, param] of cases) {
    for (const more of [{}, { prompt_cache_key: "a".repeat(20_000) }]) {
      const { status, json } = await ask(service, { input: "Hello", ...body, ...more });
      assert.deepEqual([status, json.error?.param], [400, param], JSON.stringify([body, json]).slice(0, 400));
      assert.deepEqual(Object.keys(json.error), ["message", "type", "param", "code"]);
      assert.doesNotMatch(json.error.message, /role "tool"/);
    }
  }
  assert.equal(vendor.calls.length, 0);
});

test("names in a notice what has no effect", async ({ service }) => {
  const { json, headers } = await ask(service, {
    ...{ input: "Hello", model: "gpt-5.1-codex", store: true, top_p: 0.5, truncation: "auto", service_tier: "flex" },
    ...{ max_tool_calls: 3, client_metadata: { a: "b" }, brand_new: { a: 1 } },
    stream_options: { include_obfuscation: false },
  });
  const codes = json.notices.map(({ code, field }: Json) => `${code} ${field}`);
  assert.deepEqual(codes.sort(), [
    ...["no_effect max_tool_calls", "no_effect service_tier", "no_effect store", "no_effect top_p"],
    ...["no_effect truncation", "unknown_field brand_new", "unknown_model model"],
  ]);
  assert.match(headers.get("x-chorus-notice") ?? "", /unknown_field: brand_new/);
  const asked = await ask(service, { input: "Hello", stream_options: { include_obfuscation: true } });
  assert.deepEqual(
    asked.json.notices.map(({ code, field }: Json) => `${code} ${field}`),
    ["no_effect stream_options"],
  );
});
