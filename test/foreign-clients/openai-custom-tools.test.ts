import assert from "node:assert/strict";
import OpenAI, { APIError } from "openai";
import { describe } from "vitest";
import { ANSWER, KINDS, type Served, setupOf, test } from "./served.ts";

type Request = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "model" | "stream" | "messages">;

const INPUT = '*** Begin Patch\n*** Add File: "a.txt"\n+42\n*** End Patch';
const HELLO: OpenAI.ChatCompletionMessageParam = { role: "user", content: "Write 42 to a.txt." };
const GRAMMAR = { type: "grammar" as const, grammar: { syntax: "lark" as const, definition: "start: /[*].+/s" } };
const PATCH = { type: "custom" as const, custom: { name: "patch", description: "Changes files.", format: GRAMMAR } };
const RUN = { type: "custom" as const, custom: { name: "run", format: { type: "text" as const } } };
const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const READ = { type: "function" as const, function: { name: "read", parameters } };
const TOOLS = [READ, PATCH, RUN];

const patch = { name: "patch", arguments: JSON.stringify({ input: INPUT }) };
const run = { name: "run", arguments: '{"input":""}' };
const read = { name: "read", arguments: '{"path":"a.txt"}' };

function completionsOf(served: Served): OpenAI.Chat.Completions {
  const { baseURL, apiKey } = setupOf(served);
  return new OpenAI({ baseURL, apiKey, maxRetries: 0 }).chat.completions;
}

/** The message of an answer, whole or put together by the client from a stream. */
async function ask(served: Served, isStream: boolean, messages: OpenAI.ChatCompletionMessageParam[], more: Request) {
  const request = { model: "gpt-5.1", messages, ...more };
  const completion = isStream
    ? await completionsOf(served).stream(request).finalChatCompletion()
    : await completionsOf(served).create(request);
  const [choice] = completion.choices;
  assert.ok(choice);
  return { message: choice.message, finish: choice.finish_reason, completion };
}

describe.each(KINDS)("on models of %s", (kind) => {
  test.for([false, true])("custom tools get text, beside functions, streamed: %s", async (isStream, { serve }) => {
    const served = await serve(kind);
    const { vendor } = served;
    vendor.reset();
    vendor.reply({ calls: [patch, read, run] }, { text: ANSWER });
    const { message, finish } = await ask(served, isStream, [HELLO], { tools: TOOLS });
    assert.equal(finish, "tool_calls");
    assert.deepEqual(
      message.tool_calls?.map(({ id, ...call }) => call),
      [
        { type: "custom", custom: { name: "patch", input: INPUT } },
        { type: "function", function: { name: "read", arguments: read.arguments } },
        { type: "custom", custom: { name: "run", input: "" } },
      ],
    );
    const asked = vendor.calls[0]?.body ?? "";
    assert.ok(asked.includes("Lark grammar:") && asked.includes("start: /[*].+/s"), asked);

    const results = message.tool_calls?.map(({ id }) => ({
      role: "tool" as const,
      tool_call_id: id,
      content: `of ${id}`,
    }));
    const next = await ask(served, isStream, [HELLO, message, ...(results ?? [])], { tools: TOOLS });
    assert.deepEqual([next.message.content, next.message.tool_calls, next.finish], [ANSWER, undefined, "stop"]);
    const sent = vendor.calls[1]?.body ?? "";
    for (const text of ["Add File:", "a.txt", ...(results ?? []).map(({ content }) => content)])
      assert.ok(sent.includes(text), sent);
  });
});

test("a stream has the input of a custom tool", async ({ serve }) => {
  const served = await serve("openai");
  served.vendor.reset();
  served.vendor.reply({ calls: [patch] });
  const stream = await completionsOf(served).create({ model: "chorus", messages: [HELLO], tools: TOOLS, stream: true });
  const pieces: OpenAI.ChatCompletionChunk.Choice.Delta.ToolCall[] = [];
  for await (const { choices } of stream) pieces.push(...(choices[0]?.delta.tool_calls ?? []));
  assert.match(pieces[0]?.id ?? "", /^call_/);
  const custom = { name: "patch", input: INPUT };
  assert.deepEqual(pieces, [{ index: 0, id: pieces[0]?.id, type: "custom", custom }]);
});

test("the choice can be a custom tool, or some of the tools", async ({ serve }) => {
  const served = await serve("openai");
  const { vendor } = served;
  vendor.reset();
  vendor.always({ calls: [patch] });
  const named = { type: "custom" as const, custom: { name: "patch" } };
  const forced = await ask(served, false, [HELLO], { tools: TOOLS, tool_choice: named });
  assert.equal(forced.message.tool_calls?.[0]?.type, "custom");
  assert.deepEqual(vendor.calls[0]?.json.tool_choice, { type: "function", function: { name: "patch" } });
  const notices = (forced.completion as unknown as { notices: { code: string; field?: string }[] }).notices;
  assert.deepEqual(
    notices.map(({ code, field }) => [code, field]),
    [
      ["unknown_model", "model"],
      ["no_effect", "tools[1].custom.format"],
    ],
  );

  const allowed = { mode: "required" as const, tools: [named] };
  await ask(served, false, [HELLO], { tools: TOOLS, tool_choice: { type: "allowed_tools", allowed_tools: allowed } });
  const tools = vendor.calls[1]?.json.tools as { function: { name: string } }[];
  assert.deepEqual(
    tools.map((tool) => tool.function.name),
    ["patch"],
  );
});

test("a call of a custom tool without its input never leaves", async ({ serve }) => {
  const served = await serve("openai");
  served.vendor.reset();
  served.vendor.always({ calls: [{ name: "patch", arguments: '{"text":"a"}' }] });
  for (const isStream of [false, true])
    await assert.rejects(
      ask(served, isStream, [HELLO], { tools: [PATCH] }),
      (error) => error instanceof APIError && error.code === "structured_output_failed",
    );
});
