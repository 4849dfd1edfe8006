import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "vitest";
import { envToConfig } from "../../src/config/config.ts";
import type { Level } from "../../src/contract/terms.ts";
import { type Kind, loadDifficultyRater } from "../../src/engine/difficulty/difficulty.ts";
import { chooseLevel } from "../../src/generate/level.ts";
import { EXAMPLES } from "../engine/difficulty/examples.ts";

/** A prompt as a caller asks it. The rater was changed with these, so the cards of eval/ share none. */
interface Asked {
  set: string;
  system?: string;
  /** A user's message, an assistant's and so on. */
  earlier?: string[];
  prompt: string;
  level?: Level;
  kind?: Kind;
  /** Whether answers can be compared, because one is right. */
  one_answer?: boolean;
}

const ASKED = readFileSync(new URL("asked.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line): Asked => JSON.parse(line));

const ONE_ANSWER: ReadonlySet<Kind> = new Set<Kind>(["closed", "maths", "output", "extraction"]);
const rater = loadDifficultyRater();
const { levels } = envToConfig({});

/** What `auto` chooses. */
function chosen({ system, earlier = [], prompt }: Pick<Asked, "system" | "earlier" | "prompt">) {
  const messages = [...earlier, prompt].map((text, at) => {
    return { role: at % 2 === 0 ? ("user" as const) : ("assistant" as const), text };
  });
  const conversation = { system: system === undefined ? [] : [system], messages, continues: false };
  const { level, kind } = chooseLevel(rater, levels, { effort: "auto", conversation, trace: false });
  return { level, kind, one_answer: ONE_ANSWER.has(kind) };
}

for (const [set, asked] of Map.groupBy(ASKED, (one) => one.set)) {
  test(`finds kind and level of ${set}`, () => {
    const wrong = asked.flatMap((one) => {
      const found = chosen(one);
      const differs = (["level", "kind", "one_answer"] as const).filter(
        (key) => one[key] !== undefined && one[key] !== found[key],
      );
      return differs.length > 0 ? [`${one.prompt}: ${differs}, found ${found.level} ${found.kind}`] : [];
    });
    assert.deepEqual(wrong, []);
  });
}

test("finds the same kind and level under any system text that demands no form of the answer", () => {
  for (const system of [
    "You are Ava, the support assistant of a bank. Explain fees simply and never give legal advice.",
    "You are a maths tutor. Prove every step, compare methods and explain why they work in detail.",
    "You are an expert programming assistant. Write tested code:\n```ts\nconst add = (a, b) => a + b;\n```",
    "Act as a lawyer. Analyse clauses, weigh the arguments of landlord and tenant, and draft letters.",
    "# Rules\n1. Use Markdown.\n2. Today is 2026-11-22.\n3. Prices include 19 % VAT.\nA. One\nB. Two",
  ])
    for (const { prompt } of EXAMPLES) assert.deepEqual(chosen({ system, prompt }), chosen({ prompt }), prompt);
});
