import assert from "node:assert/strict";
import { test } from "vitest";
import { foldText } from "../../../../src/engine/difficulty/marks/fold.ts";
import { createLexicon } from "../../../../src/engine/difficulty/marks/lexicon.ts";

const lexicon = createLexicon([
  ["proof", "prove, prove that, beweis*, 证明, برهن, 증명"],
  ["law", "§, contrat d'assurance"],
]);

/** Topic of the longest mark at a place of a text, by number; -1 for none. */
function at(text: string, place = 0): number {
  const folded = foldText(text);
  return lexicon.at(
    Uint16Array.from(folded, (unit) => unit.charCodeAt(0)),
    place,
    folded.length,
  );
}

test("finds whole words, beginnings of words and phrases, in any case and with any accents", () => {
  assert.deepEqual([at("Prove it"), at("PROVE"), at("proves it"), at("prov")], [0, 0, -1, -1]);
  assert.deepEqual([at("Beweise"), at("bewéis"), at("beweg")], [0, 0, -1]);
  assert.deepEqual([at("Contrat d’assurance"), at("contrat")], [1, -1]);
});

test("finds marks of scripts without spaces in the middle of a text", () => {
  assert.deepEqual([at("请证明它", 1), at("وبرهن أن", 1), at("증명하시오")], [0, 0, 0]);
});

test("finds a sign, and a mark at the end of a text", () => {
  assert.deepEqual([at("§ 280"), at("to prove", 3), at("to prove that", 3)], [1, 0, 0]);
});

test("refuses a mark of two topics", () => {
  assert.throws(
    () =>
      createLexicon([
        ["one", "alpha, beta"],
        ["two", "Beta"],
      ]),
    /"beta" belongs to "one" and "two"/,
  );
});
