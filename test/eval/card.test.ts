import assert from "node:assert/strict";
import { test } from "vitest";
import { CARDS, type CardPrompt, cardPart, cardSection, readCard } from "../../eval/card.ts";
import type { Level } from "../../src/contract/terms.ts";

test("has 150 different prompts, with a level and a reason each, and at least ten in each of eight languages", () => {
  const card = readCard();
  assert.equal(new Set(card.map(({ prompt }) => prompt)).size, 150);
  for (const { level, prompt, why, topic } of card) {
    assert.ok(["low", "medium", "high"].includes(level), prompt);
    assert.ok(why.length > 3 && topic.length > 2, prompt);
  }
  for (const language of ["en", "de", "fr", "es", "pt", "zh", "ja", "ar"])
    assert.ok(card.filter((one) => one.language === language).length >= 10, language);
});

test("has two cards of 60 prompts: one in twelve languages, one with follow-ups, wrapped questions and systems", () => {
  const [languages, contexts] = [readCard(CARDS["card of languages"]), readCard(CARDS["card of contexts"])];
  assert.deepEqual([languages.length, contexts.length], [60, 60]);
  assert.equal(new Set(languages.map(({ language }) => language)).size, 12);
  assert.ok(contexts.every(({ earlier, system, topic }) => (earlier ?? system ?? topic) !== ""));
  for (const { one_answer, why } of [...languages, ...contexts]) assert.ok(one_answer !== undefined && why.length > 3);
});

test("counts whether the kind is right on one answer", () => {
  const rate = () => ({ difficulty: 0, kind: "closed" as const, explain: () => [] });
  const prompt = { level: "low" as const, language: "en", topic: "chat", prompt: "b", why: "", one_answer: true };
  const card = [
    { ...prompt, earlier: ["a", "A"], system: "Be brief." },
    { ...prompt, one_answer: false },
  ];
  assert.equal(cardPart(card, { rate }, { medium: 0.4, high: 0.8 }).one_answer, 0.5);
});

test("counts exact levels and those that are two off", () => {
  const prompt = (level: Level, difficulty: number): CardPrompt => ({
    level,
    language: level === "low" ? "en" : "de",
    topic: "chat",
    prompt: String(difficulty),
    why: "",
  });
  const card = [prompt("low", 0), prompt("low", 0.9), prompt("medium", 0.5), prompt("high", 0.5)];
  const rate = (text: string) => ({ difficulty: Number(text), kind: "prose" as const, explain: () => [] });
  const part = cardPart(card, { rate }, { medium: 0.4, high: 0.8 });
  assert.deepEqual([part.prompts, part.exact, part.two_levels_off], [4, 0.5, 1]);
  assert.deepEqual(part.levels.low, { low: 1, medium: 0, high: 1 });
  assert.deepEqual(part.exact_by_language, { en: 0.5, de: 0.5 });
  assert.match(cardSection(part), /Exact: 50 %. Two levels off: 1\./);
});
