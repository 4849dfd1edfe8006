import assert from "node:assert/strict";
import { test } from "vitest";
import { type Player, replay } from "../../eval/replay.ts";

const player = (name: string, answer: string | null | undefined, accuracy?: number): Player => ({
  name,
  tier: name.startsWith("strong") ? "strong" : "fast",
  accuracy,
  recording: answer === undefined ? undefined : { answer, score: 1 },
});
const closed = (level: "medium" | "high") => ({
  level,
  shape: "text" as const,
  prompt: "Which?",
  read: () => undefined,
});

test("stops after two models that agree", async () => {
  const players = [player("a", "The answer is B."), player("b", "(b)"), player("strong", "C")];
  const { text, calls } = await replay(players, closed("medium"));
  assert.equal(text, "The answer is B.");
  assert.deepEqual(calls.toSorted(), ["a", "b"]);
});

test("calls the strong model after a disagreement, an unreadable answer or a missing recording", async () => {
  for (const other of ["C", null, undefined]) {
    const { text, calls } = await replay(
      [player("a", "B"), player("b", other), player("strong", "D")],
      closed("medium"),
    );
    assert.equal(text, "D");
    assert.deepEqual(calls.toSorted(), ["a", "b", "strong"]);
  }
});

test("uses the strongest model's answer without a majority, and fails without recordings", async () => {
  const players = [player("a", "B", 0.6), player("b", "C", 0.65), player("c", "D", 0.62)];
  assert.equal((await replay(players, closed("high"))).text, "C");
  await assert.rejects(replay([player("a", undefined), player("b", undefined)], closed("high")), {
    name: "UpstreamError",
  });
});
