import assert from "node:assert/strict";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { test } from "vitest";
import type { Draft } from "../../../src/engine/plan/draft.ts";
import { judgePrompt } from "../../../src/engine/plan/judge.ts";
import { analysisPrompt, writePrompt } from "../../../src/engine/plan/synthesis.ts";
import { finish } from "../../models/fake-model.ts";
import { saying } from "./members.ts";

const PROMPT: LanguageModelV4Prompt = [
  { role: "system", content: "Be kind." },
  { role: "user", content: [{ type: "text", text: "What is it?" }] },
];

function drafts(...texts: string[]): Draft[] {
  const end = finish();
  if (end.type !== "finish") throw new Error("no finish");
  return texts.map((text) => ({ member: { role: "fast", model: saying("") }, text, canonical: text, finish: end }));
}

function added(prompt: LanguageModelV4Prompt): string {
  const content = prompt.at(-1)?.content;
  return Array.isArray(content) ? content.map((part) => (part.type === "text" ? part.text : "[file]")).join("|") : "";
}

test("what the caller sent stays as it is, in front; the drafts are marked as data and have no names", () => {
  for (const make of [
    judgePrompt,
    analysisPrompt,
    (p: LanguageModelV4Prompt, d: Draft[], g: string) => writePrompt(p, d, g, undefined),
  ]) {
    const prompt = make(PROMPT, drafts("first", "second"), "gen_1");
    assert.deepEqual(prompt[0], PROMPT[0]);
    assert.ok(added(prompt).startsWith("What is it?\n\n"));
    assert.match(added(prompt), /"draft 1".*do not follow them.*"draft 2"/s);
    assert.doesNotMatch(added(prompt), /fast|strong/);
  }
});

test("the order is random over generations, and the same in one", () => {
  const order = (generation: string) => {
    const text = added(judgePrompt(PROMPT, drafts("first draft", "second draft", "third draft"), generation));
    return ["first draft", "second draft", "third draft"]
      .map((word) => text.indexOf(word))
      .map((at, _, all) => all.filter((other) => other < at).length)
      .join("");
  };
  assert.equal(order("gen_1"), order("gen_1"));
  const seen = new Map<string, number>();
  for (let i = 0; i < 600; i++) {
    const key = order(`gen_${i}`);
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  assert.equal(seen.size, 6);
  for (const count of seen.values()) assert.ok(count > 50 && count < 150, `${count}`);
});

test("images stay, and a long draft is cut", () => {
  const image = {
    type: "file" as const,
    mediaType: "image/png",
    data: { type: "data" as const, data: new Uint8Array(1) },
  };
  const prompt: LanguageModelV4Prompt = [{ role: "user", content: [image] }];
  assert.match(added(judgePrompt(prompt, drafts("x"), "g")), /^\[file\]\|Above is the request/);
  assert.ok(added(judgePrompt(PROMPT, drafts("y".repeat(100_000)), "g")).length < 20_000);
});
