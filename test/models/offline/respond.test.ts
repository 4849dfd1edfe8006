import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { buildPrompt } from "../../../src/engine/prompt.ts";
import { codePoint } from "../../helpers/code-point.ts";
import { ask, askJson } from "./ask.ts";
import { ARTICLE, BRIDGE, US_INVOICE } from "./texts.ts";

/** The sentences of a summary, each of which must stand in the text as it is. */
function quoted(summary: string, text: string): string[] {
  const flat = text.replace(/\s+/g, " ");
  const sentences = summary.split(/(?<=[.!?]"?)\s+(?=\p{Lu}|")/u);
  for (const sentence of sentences) assert.ok(flat.includes(sentence), sentence);
  return sentences;
}

test("summarises an article in a few of its sentences", async () => {
  for (const prompt of [
    `Summarise this article:\n\n${ARTICLE}`,
    `${ARTICLE}\n\nPlease summarize the text above.`,
    `TL;DR\n\n${ARTICLE}`,
    `<article>${ARTICLE}</article>\nWhat is this article about?`,
    ARTICLE,
  ]) {
    const summary = await ask(prompt);
    const count = quoted(summary, ARTICLE).length;
    assert.ok(count >= 2 && count <= 5, summary);
    assert.ok(summary.length < ARTICLE.length / 3);
    assert.match(summary, /electric ferry/);
  }
});

test("gives a summary the requested form and topic", async () => {
  const summarise = (how: string) => ask(`Summarise ${how}:\n\n${ARTICLE}`);
  assert.equal(quoted(await summarise("in one sentence"), ARTICLE).length, 1);
  assert.equal(quoted(await ask(`Give me a one-sentence summary.\n\n${ARTICLE}`), ARTICLE).length, 1);
  assert.equal(quoted(await summarise("in 4 sentences"), ARTICLE).length, 4);
  assert.match(await summarise("in 3 bullet points"), /^- .+\n- .+\n- .+$/);
  assert.match(await summarise("in two bullet points"), /^- .+\n- .+$/);
  assert.match(await summarise("what it says about the fishermen"), /^Fishermen complain/);
  const system = "You summarise every text in one sentence.";
  assert.equal(quoted(await ask(ARTICLE, { system }), ARTICLE).length, 1);
});

test("answers questions with a sentence of the text", async () => {
  for (const [question, expected] of [
    ["When did the bridge open?", /1932/],
    ["Who designed the bridge?", /Ingrid Holm/],
    ["How long is the bridge?", /503 metres/],
    ["How many vehicles cross it every day?", /160,000/],
    ["How much is the toll?", /4 euros/],
    ["Where is the bridge?", /Horsa river/],
  ] as const) {
    for (const prompt of [
      `${question}\n\n${BRIDGE}`,
      `${BRIDGE} ${question}`,
      `Context: ${BRIDGE}\n\nQuestion: ${question}\nAnswer:`,
      `Answer from the text.\nText: """${BRIDGE}"""\n${question}`,
    ]) {
      const answer = await ask(prompt);
      assert.match(answer, expected);
      assert.ok(BRIDGE.includes(answer), answer);
    }
  }
});

test("finds the text in an earlier message and in the system message", async () => {
  assert.match(await ask([BRIDGE, "Noted.", "Who designed the bridge?"]), /Ingrid Holm/);
  assert.equal(await ask(["The code is 4711.", "Noted.", "What is the code?"]), "The code is 4711.");
  assert.match(await ask([`Summarise:\n${ARTICLE}`, "…", "Who leads the project?"]), /Jonas Weber/);
  const system = `Answer briefly.\n\n${BRIDGE}`;
  assert.match(await ask("Who designed the bridge?", { system }), /Ingrid Holm/);
  assert.match(await ask([ARTICLE, "Noted.", "Now summarise it in one sentence."]), /first electric ferry/);
});

test("says when it cannot know the answer", async () => {
  const unknown = ["What is the capital of France?", "Write a poem about spring", "Explain quantum computing", "?", ""];
  for (const prompt of unknown) {
    assert.match(await ask(prompt), /^I cannot know that\. I am the built-in offline model/, prompt);
  }
  const questions = ["What is the capital of France?", "Who is the mayor of Lindmark?", "Why was it painted red?"];
  for (const question of [...questions, "Translate to German:"]) {
    assert.match(await ask(`${question}\n\n${BRIDGE}`), /^The given text does not say/, question);
  }
  assert.match(await ask("Summarise the text."), /no text to summarise/);
});

test("does not answer from the service's instructions", async () => {
  const talk = async (...texts: string[]) => {
    const messages = texts.map((text, i) => ({ role: i % 2 === 0 ? ("user" as const) : ("assistant" as const), text }));
    const prompt = buildPrompt({ system: [], messages, continues: true }, "text");
    return ask("", { prompt });
  };
  assert.match(await talk("Who sends requests through an API?"), /^I cannot know/);
  assert.equal(await talk(`The request was late. ${ARTICLE}`), await ask(`The request was late. ${ARTICLE}`));
  assert.equal(await talk(`Who designed it?\n\n${BRIDGE}`, "It was designed"), " by Ingrid Holm and opened in 1932.");
});

test("answers greetings briefly", async () => {
  for (const prompt of ["hello", "Hi there!", "Good morning, how are you?"]) {
    assert.match(await ask(prompt), /^Hello! I am the built-in offline model/);
  }
});

test("calculates", async () => {
  for (const [question, value] of [
    ["what is 17 * 23 + 4?", 395],
    ["12% of 250", 30],
    ["What is 15 percent of 80?", 12],
    ["200 + 10%", 220],
    ["(3+4)/2", 3.5],
    ["Calculate: 12 * (3 + 4) - 5", 79],
    ["What is 5 plus 6 times 2?", 17],
    ["What is 100 divided by 8 minus 2?", 10.5],
    ["-(3-5)*2", 4],
    ["0.1 + 0.2", 0.3],
    ["1,234.50 + 1", 1235.5],
    ["3 x 4 =", 12],
  ] as const) {
    const answer = await ask(question);
    assert.ok(answer.endsWith(` = ${value}`), `${question}: ${answer}`);
  }
  for (const question of ["1/0", "2 +", "((3)", "3 * ) 4", "2026-03-14", "(".repeat(400), "7"]) {
    assert.match(await ask(question), /^I cannot know/, question);
  }
});

test("calculates sums, differences and products as JavaScript does", async () => {
  const integers = fc.integer({ min: -999, max: 999 });
  const signs = fc.constantFrom("+", "-", "*");
  const apply = (sign: string, x: number, y: number) => (sign === "+" ? x + y : sign === "-" ? x - y : x * y);
  await fc.assert(
    fc.asyncProperty(integers, integers, integers, signs, signs, async (a, b, c, p, q) => {
      const value = q === "*" && p !== "*" ? apply(p, a, apply(q, b, c)) : apply(q, apply(p, a, b), c);
      const answer = await ask(`What is ${a} ${p} (${b}) ${q} (${c})?`);
      assert.ok(answer.endsWith(` = ${value}`), answer);
    }),
    { numRuns: 100 },
  );
});

test("answers requests for data with JSON, also in prose mode", async () => {
  assert.equal(
    await ask(`Extract the invoice number, date and total from this invoice:\n${US_INVOICE}`),
    '{"invoice_number":"INV-2041","date":"2026-03-14","total":1333.26}',
  );
  assert.equal(await ask(`List all dates in the text.\n\n${US_INVOICE}`), '{"dates":["2026-03-14","2026-04-13"]}');
});

test("answers any conversation", async () => {
  const texts = fc.oneof(
    fc.string({ unit: codePoint }),
    fc.string({ unit: "grapheme" }),
    fc.constantFrom(ARTICLE, US_INVOICE, "Summarise", '"""', "{", "<text>"),
  );
  const messages = fc.array(texts, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(messages, texts, async (said, system) => {
      assert.equal(typeof (await ask(said, { system })), "string");
      const answer = await askJson(said.slice(0, said.length - ((said.length + 1) % 2)), undefined, { system });
      assert.ok(typeof answer === "object" && answer !== null && !Array.isArray(answer));
    }),
    { numRuns: 100 },
  );
});
