import assert from "node:assert/strict";
import { test } from "vitest";
import { createOfflineModel } from "../../../src/models/offline/model.ts";
import type { Tools } from "../../../src/models/port/model.ts";
import { call, collect, textOf } from "../fake-model.ts";
import { ask, conversation, generate, type Options, schemaFormat } from "./ask.ts";
import { ARTICLE, BRIDGE, US_INVOICE } from "./texts.ts";

const read = (text: string, options: Options = {}) =>
  createOfflineModel({ name: "offline-strong" }).ask(call({ prompt: conversation(text), ...options }));

test("has the name of its entry, and so has the end of its completion", async () => {
  const model = createOfflineModel({ name: "my-model" });
  assert.equal(model.name, "my-model");
  const last = (await collect(model.ask(call()))).at(-1);
  assert.equal(last?.type === "end" && last.model, "my-model");
});

test("streams the same answer word by word", async () => {
  const schema = { type: "object", properties: { total: { type: "number" } }, required: ["total"] };
  const variants: Options[] = [{}, { format: schemaFormat(schema) }, { maxTokens: 5 }, { stops: ["city"] }];
  for (const prompt of [`Summarise:\n\n${ARTICLE}`, US_INVOICE, "hello", "2 + 2"]) {
    for (const options of variants) {
      const whole = await generate(prompt, { ...options });
      const streamed = await collect(read(prompt, { ...options }));
      assert.equal(textOf(streamed), whole.text);
      assert.deepEqual(streamed.at(-1), whole.end);
    }
  }
  const words = (await collect(read(`Summarise:\n\n${ARTICLE}`))).slice(0, -1);
  assert.ok(words.length > 50);
  for (const piece of words) assert.ok(piece.type === "text" && piece.text.trim().split(/\s+/).length === 1);
});

test("gives the same answer for the same prompt", async () => {
  const prompt = `Give me the key points:\n\n${ARTICLE}`;
  assert.equal(await ask(prompt), await ask(prompt));
});

test("throws the reason of an abort", async () => {
  const reason = new Error("the caller is gone");
  const aborted = { signal: AbortSignal.abort(reason) };
  await assert.rejects(generate("hello", aborted), reason);
  await assert.rejects(collect(read("hello", aborted)), reason);

  const controller = new AbortController();
  const pieces = read(`Summarise:\n\n${ARTICLE}`, { signal: controller.signal });
  for (let piece = 0; piece < 5; piece++) await pieces.next();
  controller.abort(reason);
  await assert.rejects(async () => pieces.next(), reason);
});

test("ends when the reader leaves", async () => {
  const pieces = read(`Summarise:\n\n${ARTICLE}`);
  await pieces.next();
  await pieces.return?.();
  assert.deepEqual(await pieces.next(), { done: true, value: undefined });
});

test("cuts the answer at the ceiling, at four characters a token", async () => {
  const whole = await ask(`Summarise:\n\n${ARTICLE}`);
  const { text, end } = await generate(`Summarise:\n\n${ARTICLE}`, { maxTokens: 10 });
  assert.equal(text, whole.slice(0, 40));
  assert.deepEqual([end.reason, end.usage?.outputTokens], ["length", 10]);
  assert.equal((await generate("2 + 2", { maxTokens: 3 })).end.reason, "stop");
  const emoji = await ask(`When?\n\n${"😀".repeat(30)} in 1932.`, { maxTokens: 1 });
  assert.ok(emoji.isWellFormed());
});

test("ends the answer before the first stop sequence", async () => {
  const prompt = `Who designed the bridge?\n\n${BRIDGE}`;
  assert.equal(await ask(prompt, { stops: ["1932", " and", ""] }), "It was designed by Ingrid Holm");
  assert.equal((await generate(prompt, { stops: [" and"] })).end.reason, "stop");
  assert.equal(await ask(prompt, { stops: ["It"] }), "");
});

test("counts the prompt and the answer", async () => {
  const { end, text } = await generate("What is 17 * 23 + 4?");
  assert.equal(end.usage?.outputTokens, Math.ceil(text.length / 4));
  const input = end.usage?.inputTokens ?? 0;
  assert.ok(input >= 5 && input < 40);
  const longer = await generate(["What is 17 * 23 + 4?", "395", "And 2 + 2?"], { system: "Be brief." });
  assert.ok((longer.end.usage?.inputTokens ?? 0) > input);
});

test("continues an assistant's text at the end of the prompt", async () => {
  const question = `Who designed the bridge?\n\n${BRIDGE}`;
  assert.equal(await ask([question, "It was designed by"]), " Ingrid Holm and opened in 1932.");
  assert.equal(await ask([question, "Answer: "]), "It was designed by Ingrid Holm and opened in 1932.");
});

test("accepts messages without text, images and an empty conversation", async () => {
  const images = [{ mediaType: "image/png", data: new Uint8Array([1, 2]) }];
  const messages = [
    { role: "assistant" as const, text: "" },
    { role: "user" as const, text: "", images },
  ];
  assert.match(await ask("", { prompt: { system: "", messages } }), /offline model/);
  assert.match(await ask("", { prompt: { system: "", messages: [] } }), /offline model/);
});

test("answers a question at the end of a long text, and one about a text after a long one", async () => {
  const question = "Who designed the bridge?";
  const filler = ARTICLE.repeat(600);
  const answer = "It was designed by Ingrid Holm and opened in 1932.";
  assert.equal(await ask(`${BRIDGE}\n${filler}\n\n${question}`), answer);
  assert.equal(await ask([filler, "Noted.", BRIDGE, "Noted.", "hello", "Hello!", question]), answer);
});

test("answers 4,000,000 characters of any text within half a second", async () => {
  await ask(`What is this?\n\n${ARTICLE}`);
  const fill = (part: string) => part.repeat(4_000_000 / part.length);
  const hostile = {
    letters: fill("a"),
    newlines: fill("\n"),
    hyphens: fill("-"),
    capitals: fill("Ab "),
    digits: fill("1.1."),
    thousands: fill("1,111,111."),
    percent: fill("1% "),
    lines: fill("a\n"),
    labels: fill("total: "),
    colons: fill("a:b "),
    braces: fill('json {"a": '),
    tags: fill("<text>"),
    mails: fill("a@b."),
    codes: fill("a-1/"),
    questions: fill("a b? "),
    Chinese: fill("日本語"),
    surrogates: fill("\ud800"),
    prose: fill(ARTICLE),
    line: fill(ARTICLE.replace(/\n+/g, " ")),
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
    const calls: [string | string[], Options][] = [
      [`Summarise:\n${text}`, {}],
      [Array.from({ length: 201 }, () => text), {}],
      [text, { format: schemaFormat(schema) }],
    ];
    for (const [prompt, options] of calls) {
      const start = process.cpuUsage();
      await ask(prompt, options);
      // Processor time, because other tests run at the same time.
      const took = process.cpuUsage(start).user / 1_000;
      assert.ok(took < 500, `${name}: ${took} ms`);
    }
  }
});

test("calls the tool that must be called, with arguments from the message", async () => {
  const tool = (name: string, description: string, parameters: object) => ({
    ...{ name, description },
    parameters: JSON.stringify(parameters),
  });
  const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const list = [
    tool("send_mail", "Sends a mail.", { properties: { to: { type: "string" }, copies: { items: {} } } }),
    tool("get_weather", "The weather of a city.", city),
    tool("now", "", {}),
    // The service takes such schemas, too, with a notice.
    tool("odd", "", { type: 5, properties: { a: {} } }),
    tool("old", "", { type: "object", required: true, properties: { a: { type: {} } } }),
  ];
  const calls = async (text: string, choice: Tools["choice"]) =>
    (await generate(text, { tools: { list, choice, parallel: true } })).calls;
  const question = "What is the weather in New York?";
  assert.deepEqual(await calls(question, "required"), [{ name: "get_weather", arguments: '{"city":"New York"}' }]);
  assert.deepEqual(await calls("weather, city: Oslo", "required"), [
    { name: "get_weather", arguments: '{"city":"Oslo"}' },
  ]);
  assert.deepEqual(await calls(question, { name: "now" }), [{ name: "now", arguments: "{}" }]);
  for (const name of ["odd", "old"]) assert.deepEqual(await calls(question, { name }), [{ name, arguments: "{}" }]);
  assert.deepEqual(await calls(question, { name: "send_mail" }), [{ name: "send_mail", arguments: "{}" }]);
  assert.deepEqual(await calls(question, "auto"), []);
  assert.match((await generate(question, { tools: { list, choice: "auto", parallel: true } })).text, /offline model/);
});
