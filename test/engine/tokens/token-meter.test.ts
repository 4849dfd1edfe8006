import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Encoding } from "../../../src/engine/tokens/bpe.ts";
import { TokenMeter } from "../../../src/engine/tokens/token-meter.ts";

const encoding = new Encoding();

/** Text that moves token boundaries: case, spaces, line ends, contractions, combining marks, multi-byte characters. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "a",
        "B",
        "中",
        "龘",
        "'",
        "s",
        "re",
        " ",
        "  ",
        "\n",
        "\r",
        "/",
        "!",
        "7",
        "é",
        "e\u0301",
        "😀",
        "𝒜",
      ),
      fc.constantFrom("hello", " world", "XYZ're", "\ud835", "\udc9c", "<|endoftext|>"),
      fc.constantFrom("A", " ", "\n", "中", "a", "-").map((unit) => unit.repeat(254)),
    ),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(""));

function split(unsplit: string, cuts: readonly number[]): string[] {
  const ends = [...cuts.map((cut) => cut % (unsplit.length + 1)), unsplit.length].sort((a, b) => a - b);
  return ends.map((end, index) => unsplit.slice(ends[index - 1] ?? 0, end));
}

function run(pieces: readonly string[], cap: number): { text: string; tokens: number; full: boolean } {
  const meter = new TokenMeter(encoding, cap);
  let out = "";
  for (const piece of pieces) {
    out += meter.push(piece);
    assert.equal(meter.tokens, encoding.count(out));
    assert.ok(meter.tokens <= cap);
  }
  out += meter.flush();
  return { text: out, tokens: meter.tokens, full: meter.full };
}

describe("TokenMeter", () => {
  it("passes the same text for every split, and counts it like the unsplit text", () => {
    fc.assert(
      fc.property(text, fc.array(fc.nat()), fc.nat({ max: 40 }), (unsplit, cuts, cap) => {
        const { text: out, tokens, full } = run(split(unsplit, cuts), cap);
        assert.deepEqual({ text: out, tokens, full }, run([unsplit], cap));
        const whole = unsplit.toWellFormed();
        assert.ok(whole.startsWith(out));
        assert.equal(tokens, encoding.count(out));
        assert.ok(tokens <= cap);
        assert.equal(full, out !== whole);
        if (encoding.count(unsplit) <= cap) assert.equal(out, whole);
        assert.ok(out.isWellFormed());
      }),
      { numRuns: 300 },
    );
  });

  it("gives the text of the first tokens", () => {
    assert.deepEqual(run(["hel", "lo wor", "ld and more"], 2), { text: "hello world", tokens: 2, full: true });
    assert.deepEqual(run(["hel", "lo wor", "ld"], 2), { text: "hello world", tokens: 2, full: false });
    assert.deepEqual(run(["anything"], 0), { text: "", tokens: 0, full: true });
    assert.deepEqual(run([], 5), { text: "", tokens: 0, full: false });
  });

  it("never splits a character", () => {
    const emoji = "🏴󠁧󠁢󠁥󠁮󠁧󠁿".repeat(3);
    for (let cap = 0; cap <= encoding.count(emoji); cap += 1) {
      const { text: out } = run(
        [...emoji].flatMap((character) => character.split("")),
        cap,
      );
      assert.ok(emoji.startsWith(out) && out.isWellFormed());
    }
  });

  it("holds back only half a surrogate pair while the cap is far", () => {
    const meter = new TokenMeter(encoding, 32_000);
    assert.equal(meter.push("He"), "He");
    assert.equal(meter.push("llo \ud83d"), "llo ");
    assert.equal(meter.push("\ude00"), "😀");
    assert.equal(meter.push("\ud83d"), "");
    assert.equal(meter.flush(), "\ufffd");
    assert.equal(meter.tokens, encoding.count("Hello 😀\ufffd"));
    for (let i = 0; i < 5000; i += 1) assert.equal(meter.push(" word"), " word");
  });
});
