import assert from "node:assert/strict";
import { test } from "vitest";
import { votePart } from "../../eval/vote.ts";
import { rowsOf } from "./rows.ts";

const choice = (panel: string[]) => ({ weak: [], strong: undefined, panel });

/** Right answers that are many enough for one mistake to make no member dominant. */
const RIGHT = "A".repeat(30);

test("a vote improves on peers that err on different questions", async () => {
  const rows = rowsOf({ one: `BAA${RIGHT}`, two: `ABA${RIGHT}`, three: `AAB${RIGHT}` });
  const part = await votePart(rows, choice(["one", "two", "three"]));
  assert.equal(part?.accuracy, 1);
  assert.ok(part.gain > 0 && part.low < part.gain && part.gain < part.high);
  assert.equal(part.best, 32 / 33);
});

test("does not outvote a dominant member", async () => {
  const rows = rowsOf({ one: "BBBBBAAAAA", two: "BBBBBAAAAA", strong: "AAAAAAAAAB" });
  const part = await votePart(rows, choice(["one", "two", "strong"]));
  assert.deepEqual([part?.gain, part?.low, part?.high], [0, 0, 0]);
});

test("uses the answer of the best member on other folds without a majority", async () => {
  const rows = rowsOf({ one: `ABBA${RIGHT}`, two: `ACAC${RIGHT}`, best: `AAAA${RIGHT}` });
  assert.equal((await votePart(rows, choice(["one", "two", "best"])))?.accuracy, 1);
});

test("counts one vote for a model that is named twice", async () => {
  const rows = rowsOf({ one: `AB${RIGHT}`, two: `BA${RIGHT}`, three: `AA${RIGHT}` });
  assert.equal((await votePart(rows, choice(["one", "one", "two", "three"])))?.accuracy, 1);
});

test("reports missing answers separately, and returns undefined without votes", async () => {
  const part = await votePart(rowsOf({ one: "A-AA", two: "AAAA", three: "AABA" }), choice(["one", "two", "three"]));
  assert.deepEqual([part?.rows, part?.all_answered.rows], [4, 3]);
  assert.equal(await votePart(rowsOf({ one: "--", two: "AA" }), choice(["one", "two"])), undefined);
  assert.equal(await votePart(rowsOf({ one: "AA" }), choice(["one"])), undefined);
  assert.equal(await votePart(rowsOf({ one: "AA" }), choice(["one", "nobody"])), undefined);
});

test("uses the strongest member's answer for graded prose without a final answer", async () => {
  const prose = (answer: string, score: number) => ({ answer: `${answer} ${"word ".repeat(40)}`, score });
  const rows = Array.from({ length: 6 }, (_, index) => ({
    id: `${index}`,
    group: "writing",
    prompt: "Write.",
    gold: null,
    models: { one: prose("One", 8.5), two: prose("Two", 9) },
  }));
  const part = await votePart(rows, choice(["one", "two"]));
  assert.deepEqual([part?.best, part?.accuracy, part?.gain], [9, 9, 0]);
});
