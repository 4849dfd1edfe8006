import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { APICallError, generateText, isStepCount, type LanguageModel, streamText, tool } from "ai";
import { createAgent, tool as langchainTool } from "langchain";
import OpenAI from "openai";
import { zodFunction } from "openai/helpers/zod";
import { describe } from "vitest";
import { z } from "zod";
import type { Setup } from "./clients.ts";
import { ANSWER, CITIES, KINDS, play, QUESTION, setupOf, test, WEATHER } from "./served.ts";

/** A name that no vendor's catalogue here has, as programs have one. */
const MODEL = "gpt-5.1";
const DESCRIPTION = "The weather of a city.";
/** As zod writes optional and nullable members. */
const Place = z.object({ city: z.string(), day: z.string().nullish() });

type Place = z.infer<typeof Place>;
type Call = OpenAI.Responses.ResponseFunctionToolCall;
/** Runs the tool. */
type Look = (place: Place) => string;
/** An agent with one tool that answers a question. */
type Agent = (setup: Setup, look: Look, streamed: boolean) => Promise<string | null>;

const clientOf = ({ baseURL, apiKey }: Setup) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const runTools: Agent = async (setup, look, streamed) => {
  const { completions } = clientOf(setup).chat;
  const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const request = {
    model: MODEL,
    messages: [{ role: "user" as const, content: QUESTION }],
    tools: [
      {
        type: "function" as const,
        function: { name: "get_weather", description: DESCRIPTION, parameters, function: look, parse: JSON.parse },
      },
    ],
  };
  const runner = streamed ? completions.runTools({ ...request, stream: true }) : completions.runTools(request);
  return runner.finalContent();
};

const chatLoop: Agent = async (setup, look, streamed) => {
  const { completions } = clientOf(setup).chat;
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: QUESTION }];
  const tools = [
    zodFunction({ name: "get_weather", parameters: z.object({ city: z.string(), day: z.string().nullable() }) }),
  ];
  for (let step = 0; step < 5; step++) {
    const request = { model: MODEL, messages, tools };
    const { choices } = streamed
      ? await completions.stream(request).finalChatCompletion()
      : await completions.create({ ...request, stream: false });
    const message = choices[0]?.message;
    if (!message?.tool_calls?.length) return message?.content ?? null;
    messages.push(message);
    for (const call of message.tool_calls) {
      assert.ok(call.type === "function");
      messages.push({ role: "tool", tool_call_id: call.id, content: look(JSON.parse(call.function.arguments)) });
    }
  }
  return null;
};

const responsesLoop: Agent = async (setup, look, streamed) => {
  const { responses } = clientOf(setup);
  const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: QUESTION }];
  const parameters = z.toJSONSchema(Place);
  const tools = [
    { type: "function" as const, name: "get_weather", description: DESCRIPTION, parameters, strict: false },
  ];
  for (let step = 0; step < 5; step++) {
    const request = { model: MODEL, input, tools };
    const response = streamed
      ? await responses.stream(request).finalResponse()
      : await responses.create({ ...request, stream: false });
    const calls = response.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return response.output_text;
    input.push(...(response.output as typeof input));
    for (const { call_id, arguments: text } of calls as Call[])
      input.push({ type: "function_call_output", call_id, output: look(JSON.parse(text)) });
  }
  return null;
};

function aiSdk(modelOf: (setup: Setup) => LanguageModel): Agent {
  return async (setup, look, streamed) => {
    const tools = {
      get_weather: tool({ description: DESCRIPTION, inputSchema: Place, execute: async (place) => look(place) }),
    };
    const options = {
      model: modelOf(setup),
      maxRetries: 0,
      prompt: QUESTION,
      tools,
      stopWhen: isStepCount(5),
      providerOptions: { openai: { store: false } },
    };
    const result = streamed ? streamText(options) : await generateText(options);
    assert.equal((await result.steps).length, 3);
    return result.text;
  };
}

/** A model, its tools, a model, its tools, and then the answer. */
const LAST_STEP = 5;

const langchain =
  (useResponsesApi: boolean): Agent =>
  async ({ baseURL, apiKey }, look, streamed) => {
    const configuration = { baseURL };
    const model = new ChatOpenAI({ model: MODEL, apiKey, maxRetries: 0, useResponsesApi, configuration });
    const tools = [langchainTool(look, { name: "get_weather", description: DESCRIPTION, schema: Place })];
    const agent = createAgent({ model, tools });
    const input = { messages: [{ role: "user" as const, content: QUESTION }] };
    if (!streamed) return (await agent.invoke(input)).messages.at(-1)?.text ?? null;
    let text = "";
    for await (const [chunk, { langgraph_step: step }] of await agent.stream(input, { streamMode: "messages" }))
      if (step === LAST_STEP) text += chunk.text;
    return text;
  };

const AGENTS: Readonly<Record<string, Agent>> = {
  "openai, chat": chatLoop,
  "openai, runTools": runTools,
  "openai, responses": responsesLoop,
  "AI SDK, chat": aiSdk((setup) => createOpenAI(setup).chat(MODEL)),
  "AI SDK, responses": aiSdk((setup) => createOpenAI(setup)(MODEL)),
  "LangChain agent, chat": langchain(false),
  "LangChain agent, responses": langchain(true),
};

describe.each(KINDS)("on models of %s", (kind) => {
  test.for(Object.entries(AGENTS))("%s runs its tool and answers, whole and streamed", async ([, agent], { serve }) => {
    const served = await serve(kind);
    for (const streamed of [false, true]) {
      play(served, "I look.");
      const asked: string[] = [];
      const look = ({ city }: Place) => {
        asked.push(city);
        return WEATHER[city] ?? "unknown";
      };
      const text = await agent(setupOf(served), look, streamed);
      assert.deepEqual([asked, text], [CITIES, ANSWER]);
      const { calls } = served.vendor;
      assert.equal(calls.length, 3);
      for (const result of [...Object.values(WEATHER), "I look."])
        assert.ok(calls.at(-1)?.body.includes(result), result);
    }
  });
});

test("the AI SDK needs no option for steps without text, and is told which one for others", async ({ serve }) => {
  const served = await serve("openai");
  const setup = setupOf(served);
  const tools = { get_weather: tool({ inputSchema: Place, execute: async ({ city }) => WEATHER[city] }) };
  const options = {
    model: createOpenAI(setup)("chorus"),
    maxRetries: 0,
    prompt: QUESTION,
    tools,
    stopWhen: isStepCount(5),
  };
  play(served);
  assert.equal((await generateText(options)).text, ANSWER);
  play(served, "I look.");
  const error = await generateText(options).then(
    () => assert.fail("It was not refused."),
    (thrown: unknown) => thrown,
  );
  assert.ok(APICallError.isInstance(error), String(error));
  assert.equal(error.statusCode, 400);
  assert.match(error.message, /^input\[1\]\.type must not be "item_reference": .* store: false/);
});
