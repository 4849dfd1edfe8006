import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { passages } from "../../../src/engine/attachments/passages.ts";

test("covers the text with consecutive passages of bounded length", () => {
  const text = fc
    .array(fc.constantFrom("a", "bc ", "\n", "\n\n", ". ", "😀", "中。"), { maxLength: 80 })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 40 }), (original, length) => {
      const found = passages(original, length);
      let at = 0;
      for (const { start, end } of found) {
        assert.equal(start, at);
        assert.ok(end > start && end - start <= length);
        assert.ok(original.slice(start, end).isWellFormed());
        at = end;
      }
      assert.equal(at, original.length);
    }),
  );
});

test("ends a passage at a paragraph if possible, else at a line, a sentence or a word", () => {
  const first = (text: string) => text.slice(0, passages(text, 20)[0]?.end);
  assert.equal(first("One two. Three\n\nfour five six seven"), "One two. Three\n\n");
  assert.equal(first("One two. Three\nfour five six seven"), "One two. Three\n");
  assert.equal(first("One two three. Four five six"), "One two three. ");
  assert.equal(first("One two three four five six"), "One two three four ");
  assert.equal(first("OneTwoThreeFourFiveSixSeven"), "OneTwoThreeFourFiveS");
});
