import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { passages } from "../../../src/engine/attachments/passages.ts";

test("passages follow each other, cover the text and are of bounded length", () => {
  const text = fc
    .array(fc.constantFrom("a", "bc ", "\n", "\n\n", ". ", "😀", "中。"), { maxLength: 80 })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 40 }), (whole, length) => {
      const found = passages(whole, length);
      let at = 0;
      for (const { start, end } of found) {
        assert.equal(start, at);
        assert.ok(end > start && end - start <= length);
        assert.ok(whole.slice(start, end).isWellFormed());
        at = end;
      }
      assert.equal(at, whole.length);
    }),
  );
});

test("a passage ends with a paragraph where it can, else with a line, a sentence, a word", () => {
  const first = (text: string) => text.slice(0, passages(text, 20)[0]?.end);
  assert.equal(first("One two. Three\n\nfour five six seven"), "One two. Three\n\n");
  assert.equal(first("One two. Three\nfour five six seven"), "One two. Three\n");
  assert.equal(first("One two three. Four five six"), "One two three. ");
  assert.equal(first("One two three four five six"), "One two three four ");
  assert.equal(first("OneTwoThreeFourFiveSixSeven"), "OneTwoThreeFourFiveS");
});
