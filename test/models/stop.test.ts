import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { createStopper } from "../../src/models/stop.ts";

/** The expected result: the text before the first occurrence of any sequence. */
function textBefore(text: string, sequences: readonly string[]): string {
  const starts = sequences.map((sequence) => text.indexOf(sequence)).filter((start) => start >= 0);
  return text.slice(0, Math.min(text.length, ...starts));
}

/** The sequence that occurs first. Of several that begin there, the one that is complete first. */
function foundIn(text: string, sequences: readonly string[]): string | undefined {
  const start = textBefore(text, sequences).length;
  return sequences.filter((one) => text.startsWith(one, start)).sort((a, b) => a.length - b.length)[0];
}

function run(pieces: readonly string[], sequences: readonly string[]): string {
  const stopper = createStopper(sequences);
  let out = "";
  for (const piece of pieces) {
    const { text, stopped } = stopper.push(piece);
    out += text;
    if (stopped) {
      assert.deepEqual(stopper.push("more"), { text: "", stopped: true });
      break;
    }
  }
  out += stopper.flush();
  assert.equal(stopper.found, foundIn(pieces.join(""), sequences));
  return out;
}

/** Few letters, so that sequences overlap with others and themselves. The two emoji share their first surrogate. */
const letters = (maxLength: number, minLength = 0) =>
  fc.array(fc.constantFrom(..."aabc😀😁"), { minLength, maxLength }).map((parts) => parts.join(""));

describe("createStopper", () => {
  it("gives the text before the first stop sequence for every split", () => {
    fc.assert(
      fc.property(
        letters(40),
        fc.array(letters(5, 1), { maxLength: 4 }),
        fc.array(fc.nat()),
        (text, sequences, cuts) => {
          const ends = [...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
          const pieces = ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end));
          const expected = textBefore(text, sequences);
          assert.equal(run(pieces, sequences), expected);
          assert.equal(run(text.split(""), sequences), expected);
          assert.equal(run([text], sequences), expected);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("finds a sequence of 200,000 characters that overlaps with itself", () => {
    const sequence = `${"a".repeat(199_999)}b`;
    const text = `start ${"a".repeat(150_000)}c${"a".repeat(50_000)}${sequence} end`;
    const expected = textBefore(text, [sequence]);
    assert.equal(run([text], [sequence]), expected);
    assert.equal(run([text.slice(0, 180_000), text.slice(180_000)], [sequence]), expected);
  });

  it("holds back only the longest suffix that may become a stop sequence", () => {
    fc.assert(
      fc.property(letters(20), fc.array(letters(5, 1), { minLength: 1, maxLength: 4 }), (text, sequences) => {
        const stopper = createStopper(sequences);
        let seen = "";
        let out = "";
        for (const unit of text.split("")) {
          const { text: given, stopped } = stopper.push(unit);
          if (stopped) return;
          seen += unit;
          out += given;
          if (sequences.some((sequence) => seen.includes(sequence))) return;
          const held = seen.slice(out.length);
          assert.ok(held === "" || sequences.some((sequence) => sequence.startsWith(held)), `${held} of ${sequences}`);
        }
      }),
    );
  });

  it("finds a sequence that overlaps with itself or with another", () => {
    assert.equal(run(["a", "a", "ab"], ["aab"]), "a");
    assert.equal(run(["xab", "ab", "cabd"], ["ababcabd"]), "x");
    assert.equal(run(["xabcd"], ["bc", "abcd"]), "x");
    assert.equal(run(["xab", "c", "e"], ["bc", "abcd"]), "xa");
    assert.equal(run(["xab", "c"], ["bc", "abcd"]), "xa");
    assert.equal(run(["one\n", "\nHuman", ": two"], ["\n\nHuman:"]), "one");
  });

  it("passes everything on when there are no stop sequences", () => {
    const stopper = createStopper([]);
    assert.deepEqual(stopper.push("abc"), { text: "abc", stopped: false });
    assert.deepEqual(stopper.push(""), { text: "", stopped: false });
    assert.equal(stopper.flush(), "");
  });

  it("keeps the text that it holds back after an empty piece", () => {
    const stopper = createStopper(["STOP"]);
    assert.deepEqual(stopper.push("go ST"), { text: "go ", stopped: false });
    assert.deepEqual(stopper.push(""), { text: "", stopped: false });
    assert.deepEqual(stopper.push("OP it"), { text: "", stopped: true });
    assert.equal(stopper.flush(), "");
  });

  it("passes hostile text without a loss, in linear time", () => {
    const sequences = ["b", "c", "d", "e"].map((end) => "a".repeat(999) + end);
    const text = `${"a".repeat(998)}x`.repeat(131);
    // About 20 ms; a quadratic search takes half a second for the first text.
    assert.equal(run([text], sequences), text);
    assert.equal(run(text.split(""), sequences), text);
  });
});
