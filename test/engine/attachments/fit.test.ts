import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { fitTexts } from "../../../src/engine/attachments/fit.ts";
import { Encoding } from "../../../src/engine/tokens/bpe.ts";

const encoding = new Encoding();

/** Texts with paragraphs, long lines, other scripts, and pieces whose tokens change where they are joined. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom("XYZ'", "re", " ", "\n", "\n\n", ". ", "。", "😀", "中文的文本", "hello world", "[…]"),
      fc
        .constantFrom("a", " ", "😀", "word ", "中", "\n", "-")
        .chain((unit) => fc.nat({ max: 900 }).map((n) => unit.repeat(n))),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

describe("fitTexts", () => {
  it("never exceeds the budget and keeps parts of the original in their order", () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 4 }), fc.string(), fc.nat({ max: 600 }), (texts, question, budget) => {
        const fitted = fitTexts(texts, question, budget, encoding);
        assert.equal(fitted.length, texts.length);
        let total = 0;
        for (const [i, { text: out, tokens, kept }] of fitted.entries()) {
          const original = texts[i] ?? "";
          assert.equal(tokens, encoding.count(out));
          total += tokens;
          assert.ok(out.isWellFormed());
          if (kept === original.length) assert.equal(out, original);
          else assert.ok(isAbridged(out, original, kept), JSON.stringify({ out, original }));
        }
        assert.ok(total <= budget, `${total} of ${budget}`);
        const unabridged = texts.reduce((sum, each) => sum + encoding.count(each), 0);
        if (unabridged <= budget)
          assert.deepEqual(
            fitted.map(({ text: out }) => out),
            texts,
          );
      }),
      { numRuns: 200 },
    );
  });

  it("keeps the beginning of each text and the passages nearest to the question", () => {
    const filler = (about: string) => `The weather in ${about} was as usual at this time of the year. `.repeat(30);
    const texts = ["Oslo", "Rome"].map(
      (city) => `Guide to ${city}.\n\n${filler(city)}\n\nTrams of ${city} run until midnight.\n\n${filler(city)}`,
    );
    const [oslo, rome] = fitTexts(texts, "When does the last tram in Rome run?", 300, encoding);
    assert.ok(oslo?.text.startsWith("Guide to Oslo.") && oslo.text.endsWith("[…]"));
    assert.ok(rome?.text.startsWith("Guide to Rome."));
    assert.ok(rome?.text.includes("Trams of Rome run until midnight."));
  });

  it("uses most of the budget", () => {
    const [fitted] = fitTexts(["Some words of a long text. ".repeat(10_000)], "", 2000, encoding);
    assert.ok((fitted?.tokens ?? 0) > 1600);
  });
});

/** Whether `out` has parts of `original` in order, `kept` units in total, and a mark where something is missing. */
function isAbridged(out: string, original: string, kept: number): boolean {
  if (out === "") return kept === 0;
  const gap = "\n\n[…]\n\n";
  // The originals can contain such marks too, so this matches one part after the other from the left.
  let at = 0;
  let units = 0;
  const parts = out.split(gap.trimEnd());
  for (const [i, part] of parts.entries()) {
    const own = i === 0 ? part : part.replace(/^\n\n/, "");
    const found = original.indexOf(own, at);
    if (found < 0) return false;
    at = found + own.length;
    units += own.length;
  }
  return units <= kept + parts.length * gap.length && kept < original.length;
}
