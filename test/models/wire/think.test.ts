import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { ThinkFilter } from "../../../src/models/wire/think.ts";

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

  test("drops thinking without its first mark where that may be missing", () => {
    const read = (isCut: boolean, unopened: "perhaps" | "yes", ...pieces: string[]) => {
      const filter = new ThinkFilter(unopened);
      return pieces.map((piece) => filter.push(piece)).join("") + filter.end(isCut);
    };
    for (const unopened of ["perhaps", "yes"] as const) {
      assert.equal(read(false, unopened, "Okay, ", "the user\n</th", "ink>\n\nForty", "-two."), "Forty-two.");
      assert.equal(read(false, unopened, "a".repeat(99), "\n</think>b"), "b");
      assert.equal(read(false, unopened, "<think>Okay</think>", "yes"), "yes");
      assert.equal(read(false, unopened, "No thinking", " at all."), "No thinking at all.");
      assert.equal(read(false, unopened, "a".repeat(99), "</think>", "\nb"), `${"a".repeat(99)}</think>\nb`);
      assert.equal(read(true, unopened, "<think>Okay"), "");
    }
    assert.equal(read(true, "yes", "Okay, the"), "");
    assert.equal(read(true, "perhaps", "Okay, the"), "Okay, the");
    const isUnopened = (text: string) => {
      const filter = new ThinkFilter("yes");
      filter.push(text);
      return filter.isUnopened;
    };
    assert.deepEqual(["hm\n</think>a", "<think>hm</think>a", "a"].map(isUnopened), [true, false, false]);
  });

  test("gives back what it held if the server sends thinking apart", () => {
    const filter = new ThinkFilter("perhaps");
    assert.deepEqual([filter.push("Par"), filter.trust(), filter.push("is.\n</think>")], ["", "Par", "is.\n</think>"]);
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
