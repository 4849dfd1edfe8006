import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, streamText } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { describe } from "vitest";
import { z } from "zod";
import { test } from "../helpers/fixtures.ts";
import type { TestService } from "../helpers/service.ts";
import { KINDS, test as served } from "./served.ts";

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
/** A choice between objects that name their kind, one of which contains others, and a multiple. */
const Block = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string(), size: z.number().multipleOf(0.5) }),
  z.object({
    kind: z.literal("list"),
    get blocks() {
      return z.array(Block);
    },
  }),
]);
const TEXT = { kind: "text", text: "a", size: 1.5 };
const BLOCKS = { block: { kind: "list", blocks: [TEXT, { kind: "list", blocks: [] }] } };

const OBJECTS: readonly (readonly [name: string, type: z.ZodObject, valid: object, invalid: object])[] = [
  ["an order", Order, VALUE, { ...VALUE, kind: "other" }],
  ["a tree", z.object({ block: Block }), BLOCKS, { block: { kind: "list", blocks: [{ ...TEXT, size: 1.2 }] } }],
];
const MODEL = "gpt-5.1";
const PROMPT = "Twelve bolts.";

const setupOf = ({ url, apiKey }: TestService) => ({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const aiSdk = (service: TestService) => ({
  model: createOpenAI(setupOf(service))(MODEL),
  prompt: PROMPT,
  maxRetries: 0,
});

const CASES: Readonly<Record<string, (service: TestService, type: z.ZodObject) => Promise<unknown>>> = {
  async "openai, chat.completions.parse"(service, type) {
    const { chat } = new OpenAI(setupOf(service));
    const messages = [{ role: "user" as const, content: PROMPT }];
    const format = zodResponseFormat(type, "object");
    return (await chat.completions.parse({ model: MODEL, messages, response_format: format })).choices[0]?.message
      .parsed;
  },
  async "openai, responses.parse"(service, type) {
    const { responses } = new OpenAI(setupOf(service));
    const text = { format: zodTextFormat(type, "object") };
    return (await responses.parse({ model: MODEL, input: PROMPT, text })).output_parsed;
  },
  async "openai, responses.stream"(service, type) {
    const { responses } = new OpenAI(setupOf(service));
    const text = { format: zodTextFormat(type, "object") };
    const stream = responses.stream({ model: MODEL, input: PROMPT, text });
    let written = "";
    stream.on("response.output_text.delta", ({ delta }) => {
      written += delta;
    });
    const { output_parsed } = await stream.finalResponse();
    assert.deepEqual(JSON.parse(written), output_parsed);
    return output_parsed;
  },
  async "AI SDK, generateText"(service, type) {
    return (await generateText({ ...aiSdk(service), output: Output.object({ schema: type }) })).output;
  },
  async "AI SDK, streamText"(service, type) {
    return await streamText({ ...aiSdk(service), output: Output.object({ schema: type }), onError: () => undefined })
      .output;
  },
};

describe.for(OBJECTS)("%s of zod", ([, type, valid, invalid]) => {
  test.for(Object.entries(CASES))("reaches %s", async ([, ask], { service, vendor }) => {
    vendor.always({ text: JSON.stringify(valid) });
    assert.deepEqual(await ask(service, type), valid);
    vendor.always({ text: JSON.stringify(invalid) });
    await assert.rejects(ask(service, type));
  });
});

for (const kind of KINDS)
  served(
    `a tree of zod reaches openai through the wire of ${kind}, whole and streamed, after a wrong one`,
    async ({ serve }) => {
      const [, [, type, valid, invalid] = []] = OBJECTS;
      assert.ok(type);
      const { service, vendor } = await serve(kind);
      const { chat } = new OpenAI(setupOf(service));
      const messages = [{ role: "user" as const, content: PROMPT }];
      const asked = { model: "chorus-low", messages, response_format: zodResponseFormat(type, "object") };
      for (const ask of [
        () => chat.completions.parse(asked),
        () => chat.completions.stream(asked).finalChatCompletion(),
      ]) {
        vendor.reset();
        vendor.reply({ text: JSON.stringify(invalid) }, { text: JSON.stringify(valid) });
        assert.deepEqual((await ask()).choices[0]?.message.parsed, valid);
        const [, second, ...more] = vendor.calls;
        assert.match(second?.body ?? "", /blocks\[0\]\.size: must be multiple of 0\.5/);
        assert.equal(more.length, 0);
      }
    },
  );

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
