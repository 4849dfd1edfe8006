import assert from "node:assert/strict";
import { test } from "vitest";
import type { DifficultyRater } from "../../src/engine/difficulty/difficulty.ts";
import type { Conversation } from "../../src/engine/prompt.ts";
import { chooseLevel } from "../../src/generate/level.ts";

const THRESHOLDS = { medium: 0.4, high: 0.8 };

/** A rater that gives one difficulty, and the texts that it was given. */
function raterOf(difficulty: number): DifficultyRater & { read: string[] } {
  const read: string[] = [];
  return {
    read,
    rate(text) {
      read.push(text);
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

test("rates the caller's instructions and the user's last text", () => {
  for (const [asked, expected] of [
    [said(["user", "First."], ["assistant", "Yes."], ["user", "a"], ["user", "b"]), "Be brief.\n\na\n\nb"],
    [said(["user", "First."], ["assistant", "It is"]), "Be brief.\n\nFirst."],
    [said(["assistant", "So"]), "Be brief."],
    [said(), "Be brief."],
  ] as const) {
    const rater = raterOf(0);
    const { reasons } = chooseLevel(rater, THRESHOLDS, { effort: "auto", conversation: asked, trace: false });
    assert.deepEqual(reasons, []);
    assert.deepEqual(rater.read, [expected]);
  }
});
