import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, streamText } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { describe } from "vitest";
import { z } from "zod";
import { test } from "../helpers/fixtures.ts";
import type { TestService } from "../helpers/service.ts";

const Line = z.object({ name: z.string(), count: z.number().int().positive(), due: z.iso.date().nullable() });
/** With the keywords that zod writes for usual models: anyOf, enum, format, pattern, bounds, lists, descriptions. */
const Order = z.object({
  lines: z.array(Line).describe("What is ordered"),
  kind: z.enum(["new", "repeat"]),
  contact: z.union([z.object({ mail: z.email() }), z.null()]),
});
const VALUE = {
  lines: [{ name: "bolt", count: 12, due: "2026-03-14" }],
  kind: "new",
  contact: { mail: "a@example.org" },
};
const MODEL = "gpt-5.1";
const PROMPT = "Twelve bolts.";

const setupOf = ({ url, apiKey }: TestService) => ({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const aiSdk = (service: TestService) => ({
  model: createOpenAI(setupOf(service))(MODEL),
  prompt: PROMPT,
  maxRetries: 0,
});

const CASES: Readonly<Record<string, (service: TestService) => Promise<unknown>>> = {
  async "openai, chat.completions.parse"(service) {
    const { chat } = new OpenAI(setupOf(service));
    const messages = [{ role: "user" as const, content: PROMPT }];
    const format = zodResponseFormat(Order, "order");
    return (await chat.completions.parse({ model: MODEL, messages, response_format: format })).choices[0]?.message
      .parsed;
  },
  async "openai, responses.parse"(service) {
    const { responses } = new OpenAI(setupOf(service));
    const text = { format: zodTextFormat(Order, "order") };
    return (await responses.parse({ model: MODEL, input: PROMPT, text })).output_parsed;
  },
  async "openai, responses.stream"(service) {
    const { responses } = new OpenAI(setupOf(service));
    const text = { format: zodTextFormat(Order, "order") };
    const stream = responses.stream({ model: MODEL, input: PROMPT, text });
    let written = "";
    stream.on("response.output_text.delta", ({ delta }) => {
      written += delta;
    });
    const { output_parsed } = await stream.finalResponse();
    assert.deepEqual(JSON.parse(written), output_parsed);
    return output_parsed;
  },
  async "AI SDK, generateText"(service) {
    return (await generateText({ ...aiSdk(service), output: Output.object({ schema: Order }) })).output;
  },
  async "AI SDK, streamText"(service) {
    return await streamText({ ...aiSdk(service), output: Output.object({ schema: Order }), onError: () => undefined })
      .output;
  },
};

describe("an object of zod", () => {
  test.for(Object.entries(CASES))("reaches %s", async ([, ask], { service, vendor }) => {
    vendor.always({ text: JSON.stringify(VALUE) });
    assert.deepEqual(await ask(service), VALUE);
    vendor.always({ text: '{"lines":[],"kind":"other","contact":null}' });
    await assert.rejects(ask(service));
  });
});

test("openai streams text of the Responses API in pieces, with its tokens", async ({ service, vendor }) => {
  vendor.reply({ text: ["Good", " morning", "."], betweenMs: 100 });
  const pieces: string[] = [];
  const stream = new OpenAI(setupOf(service)).responses.stream({ model: "chorus-low", input: "Hello" });
  stream.on("response.output_text.delta", ({ delta }) => void pieces.push(delta));
  const { output_text, usage, status } = await stream.finalResponse();
  assert.deepEqual([output_text, pieces.join(""), status], ["Good morning.", "Good morning.", "completed"]);
  assert.ok(pieces.length > 1);
  assert.deepEqual([usage?.input_tokens, usage?.output_tokens], [1, 3]);
});
