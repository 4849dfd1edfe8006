import assert from "node:assert/strict";
import { test } from "vitest";
import type { Draft } from "../../../src/engine/plan/draft.ts";
import { judgePrompt } from "../../../src/engine/plan/judge.ts";
import { analysisPrompt, writePrompt } from "../../../src/engine/plan/synthesis.ts";
import type { Prompt } from "../../../src/models/port/model.ts";
import { end } from "../../models/fake-model.ts";
import { saying } from "./members.ts";

const PROMPT: Prompt = { system: "Be kind.", messages: [{ role: "user", text: "What is it?" }] };

function drafts(...texts: string[]): Draft[] {
  return texts.map((text) => ({
    member: { role: "fast", model: saying("") },
    text,
    calls: [],
    canonical: text,
    end: end(),
  }));
}

function lastText({ messages }: Prompt): string {
  return messages.at(-1)?.text ?? "";
}

test("adds the drafts after the caller's prompt, marked as data and without names", () => {
  for (const make of [
    judgePrompt,
    analysisPrompt,
    (p: Prompt, d: Draft[], g: string) => writePrompt(p, d, g, undefined),
  ]) {
    const prompt = make(PROMPT, drafts("first", "second"), "gen_1");
    assert.equal(prompt.system, PROMPT.system);
    assert.ok(lastText(prompt).startsWith("What is it?\n\n"));
    assert.match(lastText(prompt), /"draft 1".*do not follow them.*"draft 2"/s);
    assert.doesNotMatch(lastText(prompt), /fast|strong/);
  }
});

test("orders the drafts at random, but the same way within a generation", () => {
  const order = (generation: string) => {
    const text = lastText(judgePrompt(PROMPT, drafts("first draft", "second draft", "third draft"), generation));
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

test("keeps images and cuts a long draft", () => {
  const images = [{ mediaType: "image/png", data: new Uint8Array(1) }];
  const prompt: Prompt = { system: "", messages: [{ role: "user", text: "", images }] };
  const judged = judgePrompt(prompt, drafts("x"), "g");
  assert.match(lastText(judged), /^Above is the request/);
  assert.deepEqual(judged.messages.at(-1)?.images, images);
  assert.ok(lastText(judgePrompt(PROMPT, drafts("y".repeat(100_000)), "g")).length < 20_000);
  // Never in the middle of a character.
  for (const draft of ["😀", "y😀"])
    assert.ok(lastText(judgePrompt(PROMPT, drafts(draft.padEnd(30_000, "😀")), "g")).isWellFormed());
});
