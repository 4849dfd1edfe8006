import assert from "node:assert/strict";
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { test } from "vitest";
import { createOfflineModel } from "../../../src/models/offline/model.ts";
import { ask, conversation, generate, TIERS } from "./ask.ts";
import { ARTICLE, BRIDGE, US_INVOICE } from "./texts.ts";

type Options = Omit<LanguageModelV4CallOptions, "prompt">;

async function stream(text: string, options: Options = {}, tier: "fast" | "strong" = "strong") {
  const result = await createOfflineModel(tier).doStream({ ...options, prompt: conversation(text) });
  return result.stream;
}

async function collect(stream: AsyncIterable<LanguageModelV4StreamPart>): Promise<LanguageModelV4StreamPart[]> {
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

const deltas = (parts: LanguageModelV4StreamPart[]) =>
  parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []));

test("the model says who it is", () => {
  for (const tier of TIERS) {
    const { specificationVersion, provider, modelId, supportedUrls } = createOfflineModel(tier);
    assert.deepEqual(
      { specificationVersion, provider, modelId, supportedUrls },
      { specificationVersion: "v4", provider: "offline", modelId: `offline-${tier}`, supportedUrls: {} },
    );
  }
});

test("a stream holds the same answer, word by word, between its start and its finish", async () => {
  const schema = { type: "object", properties: { total: { type: "number" } }, required: ["total"] };
  const formats: Options[] = [
    {},
    { responseFormat: { type: "json", schema } },
    { maxOutputTokens: 5 },
    { stopSequences: ["city"] },
  ];
  for (const tier of TIERS) {
    for (const prompt of [`Summarise:\n\n${ARTICLE}`, US_INVOICE, "hello", "2 + 2"]) {
      for (const options of formats) {
        const whole = await generate(prompt, { ...options, tier });
        const parts = await collect(await stream(prompt, options, tier));
        assert.deepEqual(parts.slice(0, 2), [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "0" },
        ]);
        assert.deepEqual([{ type: "text", text: deltas(parts).join("") }], whole.content);
        const { finishReason, usage } = whole;
        assert.deepEqual(parts.slice(-2), [
          { type: "text-end", id: "0" },
          { type: "finish", finishReason, usage },
        ]);
      }
    }
  }
  const words = deltas(await collect(await stream(`Summarise:\n\n${ARTICLE}`)));
  assert.ok(words.length > 50 && words.every((word) => word.trim().split(/\s+/).length === 1));
});

test("the same prompt gives the same answer", async () => {
  const prompt = `Give me the key points:\n\n${ARTICLE}`;
  assert.equal(await ask(prompt), await ask(prompt));
});

test("an aborted call ends with the signal's reason", async () => {
  const reason = new Error("the caller is gone");
  const abortSignal = AbortSignal.abort(reason);
  await assert.rejects(async () => generate("hello", { abortSignal }), reason);
  await assert.rejects(async () => stream("hello", { abortSignal }), reason);

  const controller = new AbortController();
  const reader = (await stream(`Summarise:\n\n${ARTICLE}`, { abortSignal: controller.signal })).getReader();
  for (let part = 0; part < 5; part++) await reader.read();
  controller.abort(reason);
  await assert.rejects(reader.read(), reason);
});

test("a stream can be left at any point", async () => {
  const reader = (await stream(`Summarise:\n\n${ARTICLE}`)).getReader();
  await reader.read();
  await reader.cancel("enough");
  assert.deepEqual(await reader.read(), { done: true, value: undefined });
});

test("maxOutputTokens cuts the answer, at four characters a token", async () => {
  const whole = await ask(`Summarise:\n\n${ARTICLE}`);
  const { content, finishReason, usage } = await generate(`Summarise:\n\n${ARTICLE}`, { maxOutputTokens: 10 });
  assert.deepEqual(content, [{ type: "text", text: whole.slice(0, 40) }]);
  assert.deepEqual([finishReason.unified, usage.outputTokens.total], ["length", 10]);
  assert.equal((await generate("2 + 2", { maxOutputTokens: 3 })).finishReason.unified, "stop");
  const emoji = await ask(`When?\n\n${"😀".repeat(30)} in 1932.`, { maxOutputTokens: 1 });
  assert.ok(emoji.isWellFormed());
});

test("the answer ends before the first stop sequence", async () => {
  const prompt = `Who designed the bridge?\n\n${BRIDGE}`;
  assert.equal(await ask(prompt, { stopSequences: ["1932", " and", ""] }), "It was designed by Ingrid Holm");
  assert.equal((await generate(prompt, { stopSequences: [" and"] })).finishReason.unified, "stop");
  assert.equal(await ask(prompt, { stopSequences: ["It"] }), "");
});

test("usage counts the prompt and the answer", async () => {
  const { usage, content } = await generate("What is 17 * 23 + 4?");
  const [answer] = content;
  assert.ok(answer?.type === "text");
  assert.equal(usage.outputTokens.total, Math.ceil(answer.text.length / 4));
  assert.ok(Number(usage.inputTokens.total) >= 5 && Number(usage.inputTokens.total) < 40);
  const longer = await generate(["What is 17 * 23 + 4?", "395", "And 2 + 2?"], { system: "Be brief." });
  assert.ok(Number(longer.usage.inputTokens.total) > Number(usage.inputTokens.total));
});

test("a prompt that ends with an assistant's text is continued", async () => {
  const question = `Who designed the bridge?\n\n${BRIDGE}`;
  assert.equal(await ask([question, "It was designed by"]), " Ingrid Holm and opened in 1932.");
  assert.equal(await ask([question, "Answer: "]), "It was designed by Ingrid Holm and opened in 1932.");
});

test("messages without text, of files and of tools do no harm", async () => {
  const data = { type: "data", data: new Uint8Array([1, 2]) } as const;
  const { content } = await createOfflineModel("fast").doGenerate({
    prompt: [
      { role: "tool", content: [] },
      { role: "assistant", content: [{ type: "reasoning", text: "hm" }] },
      { role: "user", content: [{ type: "file", mediaType: "image/png", data }] },
    ],
  });
  assert.match(content[0]?.type === "text" ? content[0].text : "", /offline model/);
  const empty = await createOfflineModel("strong").doGenerate({ prompt: [] });
  assert.equal(empty.content.length, 1);
});

test("200,000 characters of anything take less than a second", async () => {
  await ask("Loading is not measured: what is this?");
  const hostile = {
    letters: "a".repeat(200_000),
    newlines: "\n".repeat(200_000),
    hyphens: "-".repeat(200_000),
    capitals: "Ab ".repeat(66_666),
    digits: "1.1.".repeat(50_000),
    percent: "1% ".repeat(66_666),
    lines: "a\n".repeat(100_000),
    labels: "total: ".repeat(28_000),
    braces: 'json {"a": '.repeat(18_000),
    tags: "<text>".repeat(33_000),
    mails: "a@b.".repeat(50_000),
    Chinese: "日本語".repeat(66_666),
    surrogates: "\ud800".repeat(200_000),
    prose: ARTICLE.repeat(120).slice(0, 200_000),
    line: ARTICLE.replace(/\n+/g, " ").repeat(120).slice(0, 200_000),
  };
  const item = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
  const properties = {
    total: { type: "number" },
    date: { type: "string" },
    summary: { type: "string" },
    items: { type: "array", items: item, minItems: 1 },
  } as const;
  const schema = { type: "object", properties, required: ["total", "date", "summary", "items"] } as const;
  for (const [name, text] of Object.entries(hostile)) {
    const calls: [string, Options][] = [
      [`Summarise:\n${text}`, {}],
      [text, { responseFormat: { type: "json", schema: { ...schema, required: [...schema.required] } } }],
    ];
    for (const [prompt, options] of calls) {
      const start = process.cpuUsage();
      await ask(prompt, options);
      // Processor time, because other tests run at the same time.
      const took = process.cpuUsage(start).user / 1_000;
      assert.ok(took < 1_000, `${name}: ${took} ms`);
    }
  }
});
