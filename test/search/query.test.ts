import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { searchQuery } from "../../src/search/query.ts";
import { codePoint } from "../helpers/code-point.ts";

const user = (text: string) => ({ role: "user" as const, text });
const assistant = (text: string) => ({ role: "assistant" as const, text });
const PROSE = "It was a long day, and nobody had expected that it would rain. ".repeat(20);

test("uses the last user message as the query, on one line", () => {
  const messages = [
    user("Who won?"),
    assistant("The blue team."),
    user("  And\n\twhen was\u0000 that? "),
    assistant("It was"),
  ];
  assert.equal(searchQuery(messages), "And when was that?");
  assert.equal(searchQuery([user("Who won?"), user(" \n ")]), "Who won?");
  assert.equal(searchQuery([]), "");
  assert.equal(searchQuery([assistant("Hello")]), "");
});

test("uses the last meaningful question of a long text", () => {
  assert.equal(
    searchQuery([user(`What is rain made of? ${PROSE}Who invented the umbrella?\n${PROSE} Right?`)]),
    "Who invented the umbrella?",
  );
  assert.equal(
    searchQuery([user(`${PROSE}\nShe asked "where do umbrellas come from?"\n${PROSE}`)]),
    'She asked "where do umbrellas come from?"',
  );
  assert.equal(
    searchQuery([
      user(
        "今天下了一整天的雨。".repeat(50) +
          "雨伞究竟是在什么时候由谁第一次发明出来的呢？" +
          "今天下了一整天的雨。".repeat(50),
      ),
    ]),
    "雨伞究竟是在什么时候由谁第一次发明出来的呢？",
  );
});

test("finds the short questions of scripts that need fewer letters", () => {
  for (const [prose, asked, vague] of [
    ["今天下了一整天的雨。", "雨伞是谁发明的？", "对吗？"],
    ["今日は一日中雨が降りました。", "傘は誰が発明しましたか？", "なぜ？"],
    ["오늘은 하루 종일 비가 왔다. ", "우산은 누가 발명했나요?", " 왜요?"],
    ["كان يوما طويلا وممطرا. ", "ما هي عاصمة فرنسا؟", " لماذا؟"],
    ["היה יום ארוך וגשום. ", "מי המציא את המטרייה?", " למה?"],
  ] as const)
    assert.equal(searchQuery([user(`${prose.repeat(50)}${asked} ${prose.repeat(50)}${vague}`)]), asked);
});

test("uses the beginning of a long text without a question, cut between words", () => {
  const query = searchQuery([user(`Summarise the news of the day. ${PROSE}`)]);
  assert.match(query, /^Summarise the news of the day\. It was .* [a-z]+[.,]?$/);
  assert.equal(query.split(" ").length, 50);
  const long = searchQuery([user("überlange ".repeat(1_000).replaceAll("überlange", "überlangewörter"))]);
  assert.ok(long.length <= 400 && long.endsWith("überlangewörter"));
});

test("looks for a question in the end and the beginning of a very long text only", () => {
  const [long, asked] = [PROSE.repeat(20), "Who invented the umbrella?"];
  assert.equal(searchQuery([user(`${long}${asked} ${PROSE}`)]), asked);
  assert.equal(searchQuery([user(`${PROSE}${asked} ${long}`)]), asked);
  // Looking at all of a text of megabytes would hold up other requests.
  assert.match(searchQuery([user(`${long}${asked} ${long}`)]), /^It was a long day/);
});

test("limits any conversation to one well-formed line of 400 characters and 50 words", () => {
  const text = fc.oneof(
    fc.string({ unit: codePoint, maxLength: 2_000 }),
    fc
      .array(fc.constantFrom("word", "?", ". ", "\n", " ", "😀", "。", '"'), { maxLength: 2_000 })
      .map((all) => all.join("")),
  );
  const message = fc.record({ role: fc.constantFrom("user" as const, "assistant" as const), text });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 4 }), (messages) => {
      const query = searchQuery(messages);
      assert.ok(query.length <= 400 && query.isWellFormed() && query === query.trim());
      assert.ok(query.split(/\s/).length <= 50);
      assert.doesNotMatch(query, /\p{Cc}/u);
    }),
  );
});
