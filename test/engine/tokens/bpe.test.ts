import assert from "node:assert/strict";
import fc from "fast-check";
import { countTokens, encode } from "gpt-tokenizer/encoding/o200k_base";
import { describe, it } from "vitest";
import { Encoding } from "../../../src/engine/tokens/bpe.ts";
import { codePoint } from "../../helpers/code-point.ts";
import { textsHeld } from "../../helpers/held.ts";

const encoding = new Encoding();
const asOrdinaryText = { disallowedSpecial: new Set<string>() };

const words = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "The",
        " invoice",
        " was",
        "n't",
        " PAID",
        "HTTPServer",
        "\n\n",
        "   ",
        "\t",
        "1234567",
        " 3.14",
        "…",
      ),
      fc.constantFrom(
        "请求",
        "の",
        "한국어",
        "привет",
        "e\u0301",
        "👩‍👩‍👧",
        "<|endoftext|>",
        "//",
        "/*\r\n",
        "'LL",
        "\u00a0",
      ),
      fc.string({ unit: "grapheme", maxLength: 12 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(""));

describe("Encoding", () => {
  it("counts ordinary text exactly as o200k_base does", () => {
    fc.assert(
      fc.property(words, (text) => assert.equal(encoding.count(text), countTokens(text, asOrdinaryText))),
      { numRuns: 300 },
    );
  });

  it("gives the end of each token", () => {
    const text = "Grüße aus 東京, naïve façade 🎉🎉 antidisestablishmentarianism";
    const lengths = [...encoding.pieces(text)].flatMap((piece) => encoding.lengths(piece));
    assert.equal(lengths.length, encode(text).length);
    assert.equal(
      lengths.reduce((sum, length) => sum + length, 0),
      Buffer.byteLength(text),
    );
  });

  it("counts runs up to 256 exactly, and cuts longer ones", () => {
    for (const unit of ["a", "A", " ", "\n", "=", "中"]) {
      const run = unit.repeat(256);
      assert.equal(encoding.count(run), countTokens(run), unit);
    }
    assert.equal(encoding.count("=".repeat(1024)), 4 * encoding.count("=".repeat(256)));
  });

  it("reads special tokens as ordinary text and lone surrogates as U+FFFD", () => {
    assert.ok(encoding.count("<|endoftext|>") > 1);
    assert.equal(encoding.count("a\ud800b"), encoding.count("a\ufffdb"));
    assert.equal(encoding.count(""), 0);
    fc.assert(fc.property(fc.string({ unit: codePoint }), (text) => encoding.count(text) >= 0));
  });

  it("does not hold the texts that it has counted", () => {
    const held = textsHeld(
      (i) => ` ${"abcdefghijklmnopqrstuvwxyz".slice(0, 10)}${String.fromCharCode(97 + (i % 26), 97 + (i >> 3))}zxzxzx`,
      (part) => encoding.count(part),
    );
    assert.ok(held <= 2, `${held}`);
  });

  it("counts hostile text in linear time", () => {
    const letters = Array.from({ length: 200_000 }, (_, i) => String.fromCharCode(97 + ((i * i * 7 + (i >> 3)) % 26)));
    const hostile = ["a", " ", "\n", "!", "😀", "A", "中", "\u0301"].map((unit) => unit.repeat(200_000));
    for (const text of [...hostile, letters.join("")]) {
      const start = process.cpuUsage();
      encoding.count(text);
      // 20 ms to 170 ms each; unbounded pieces would take 20 s.
      assert.ok(process.cpuUsage(start).user < 2_000_000, text.slice(0, 2));
    }
  });
});
