import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { afterUnopened, ThinkFilter } from "../../../src/models/wire/think.ts";

function filtered(...pieces: string[]): string {
  const filter = new ThinkFilter();
  return pieces.map((piece) => filter.push(piece)).join("") + filter.end();
}

describe("ThinkFilter", () => {
  test("drops the thinking at the head and the white space after it", () => {
    assert.equal(filtered("<think>Let me see.</think>\n\nForty-two."), "Forty-two.");
    assert.equal(filtered("\n <think></think>yes"), "yes");
  });

  test("keeps the same words elsewhere", () => {
    const text = "The tag <think>a</think> is used by some models.";
    assert.equal(filtered(text), text);
    assert.equal(filtered("<think>a</think>b <think>c</think>"), "b <think>c</think>");
  });

  test("keeps a text that only begins like the mark", () => {
    assert.equal(filtered("<thin"), "<thin");
    assert.equal(filtered("<", "b>bold</b>"), "<b>bold</b>");
  });

  test("gives no text for thinking that does not end", () => {
    assert.equal(filtered("<think>I wonder", " whether"), "");
  });

  test("gives no text for white space alone", () => {
    assert.equal(filtered("\n", "\n "), "");
    assert.equal(filtered("\n", "a\n"), "\na\n");
  });

  test("drops thinking without its first mark if the model is known for that", () => {
    const read = (isCut: boolean, unopened: "perhaps" | "yes", ...pieces: string[]) => {
      const filter = new ThinkFilter(unopened);
      return pieces.map((piece) => filter.push(piece)).join("") + filter.end(isCut);
    };
    for (const unopened of ["perhaps", "yes"] as const) {
      assert.equal(read(false, unopened, "Okay, ", "the user\n</th", "ink>\n\nForty", "-two."), "Forty-two.");
      assert.equal(read(false, unopened, "<think>Okay</think>", "yes"), "yes");
      assert.equal(read(false, unopened, "No thinking", " at all."), "No thinking at all.");
      assert.equal(read(true, unopened, "<think>Okay"), "");
    }
    assert.equal(read(true, "yes", "Okay, the"), "");
    const isUnopened = (text: string) => {
      const filter = new ThinkFilter("yes");
      filter.push(text);
      return filter.isUnopened;
    };
    assert.deepEqual(["hm</think>a", "<think>hm</think>a", "a"].map(isUnopened), [true, false, false]);
    assert.equal(read(true, "perhaps", "Okay, the"), "Okay, the");
  });

  test("finds the end of thinking without its first mark on a line of its own", () => {
    for (const [text, rest] of [
      ["Okay.\n</think>\n\nYes.", "\nYes."],
      ["</think>\nYes.", "Yes."],
      ["The mark </think> ends it.", undefined],
      ["```\n<think>\nhm\n</think>\n```", undefined],
      ["Yes.", undefined],
    ] as const) {
      const start = afterUnopened(text);
      assert.equal(start === 0 ? undefined : text.slice(start), rest, text);
    }
  });

  test("says whether the text began with thinking", () => {
    const filter = new ThinkFilter();
    filter.push("<think>a</think>b");
    assert.equal(filter.hasThought, true);
  });

  test("gives the same text for every split", () => {
    const text = fc
      .array(fc.constantFrom("<think>", "</think>", "<", "/", "think", ">", " ", "\n", "a"), { maxLength: 12 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, (whole) => {
        assert.equal(filtered(...whole), filtered(whole));
      }),
      { numRuns: 1_000 },
    );
  });
});
