import assert from "node:assert/strict";
import { test } from "vitest";
import type { Context, DifficultyRating } from "../../src/engine/difficulty/difficulty.ts";
import type { Conversation } from "../../src/engine/prompt.ts";
import { chooseLevel } from "../../src/generate/level.ts";

const THRESHOLDS = { medium: 0.4, high: 0.8 };

/** A rater that gives one difficulty, and what it was given. */
function raterOf(difficulty: number) {
  const read: Array<{ text: string; context: Context | undefined }> = [];
  return {
    read,
    rate(text: string, context?: Context): DifficultyRating {
      read.push({ text, context });
      return { difficulty, kind: "prose", explain: () => ["it is long"] };
    },
  };
}

const said = (...messages: [role: "user" | "assistant", text: string][]): Conversation => ({
  system: ["Be brief.", ""],
  messages: messages.map(([role, text]) => ({ role, text })),
  continues: false,
});

test("follows the difficulty with auto, and applies an effort that the caller names", () => {
  const conversation = said(["user", "Why?"]);
  for (const [difficulty, level] of [
    [0, "low"],
    [0.39, "low"],
    [0.4, "medium"],
    [0.8, "high"],
    [1, "high"],
  ] as const) {
    const rater = raterOf(difficulty);
    const auto = chooseLevel(rater, THRESHOLDS, { effort: "auto", conversation, trace: true });
    assert.deepEqual([auto.level, auto.reasons], [level, ["it is long"]]);
    for (const effort of ["low", "medium", "high"] as const) {
      const named = chooseLevel(rater, THRESHOLDS, { effort, conversation, trace: true });
      assert.deepEqual([named.level, named.difficulty], [effort, effort === "medium" ? difficulty : undefined]);
      assert.deepEqual(named.reasons, [`the request asks for effort ${effort}`]);
    }
  }
});

test("rates the user's last text, with earlier ones and the caller's instructions as its context", () => {
  for (const [conversation, text, earlier] of [
    [said(["user", "First."], ["assistant", "Yes."], ["user", "a"], ["user", "b"]), "a\n\nb", ["First."]],
    [said(["user", "First."], ["assistant", "It is"]), "First.", []],
  ] as const) {
    const rater = raterOf(0);
    const { reasons } = chooseLevel(rater, THRESHOLDS, { effort: "auto", conversation, trace: false });
    assert.deepEqual(reasons, []);
    assert.deepEqual(rater.read, [{ text, context: { earlier, instructions: ["Be brief.", ""] } }]);
  }
});

test("rates the caller's instructions where the user says nothing", () => {
  for (const conversation of [said(["assistant", "So"]), said(["user", " "]), said()]) {
    const rater = raterOf(0);
    chooseLevel(rater, THRESHOLDS, { effort: "auto", conversation, trace: false });
    assert.deepEqual(rater.read, [{ text: "Be brief.\n\n", context: { earlier: [], instructions: [] } }]);
  }
});

test("reads a bounded number of earlier texts", () => {
  const turns = Array.from({ length: 2_000 }, (_, at): ["user" | "assistant", string] => [
    at % 2 === 0 ? "user" : "assistant",
    String(at),
  ]);
  const rater = raterOf(0);
  chooseLevel(rater, THRESHOLDS, { effort: "auto", conversation: said(...turns), trace: false });
  assert.deepEqual(rater.read[0]?.context?.earlier, ["1996", "1994", "1992", "1990"]);
});
