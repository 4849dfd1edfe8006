import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { createStopper } from "../../src/engine/stop.ts";

/** What the stopper must come to: the text before the first place where any sequence stands. */
function before(text: string, sequences: readonly string[]): string {
  const starts = sequences.map((sequence) => text.indexOf(sequence)).filter((start) => start >= 0);
  return text.slice(0, Math.min(text.length, ...starts));
}

function run(pieces: readonly string[], sequences: readonly string[]): string {
  const stopper = createStopper(sequences);
  let out = "";
  for (const piece of pieces) {
    const { text, stopped } = stopper.push(piece);
    out += text;
    if (stopped) {
      assert.deepEqual(stopper.push("more"), { text: "", stopped: true });
      return out + stopper.flush();
    }
  }
  return out + stopper.flush();
}

/** Few letters, so that sequences overlap with others and themselves. The two emoji share their first surrogate. */
const letters = (maxLength: number, minLength = 0) =>
  fc.array(fc.constantFrom("a", "a", "b", "c", "😀", "😁"), { minLength, maxLength }).map((parts) => parts.join(""));

describe("createStopper", () => {
  it("gives the text before the first stop sequence, however it is split", () => {
    fc.assert(
      fc.property(
        letters(40),
        fc.array(letters(5, 1), { maxLength: 4 }),
        fc.array(fc.nat()),
        (text, sequences, cuts) => {
          const ends = [...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
          const pieces = ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end));
          const expected = before(text, sequences);
          assert.equal(run(pieces, sequences), expected);
          assert.equal(run(text.split(""), sequences), expected);
          assert.equal(run([text], sequences), expected);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("holds back only the longest end that may become a stop sequence", () => {
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

  it("passes everything on where there is nothing to look for", () => {
    const stopper = createStopper([]);
    assert.deepEqual(stopper.push("abc"), { text: "abc", stopped: false });
    assert.deepEqual(stopper.push(""), { text: "", stopped: false });
    assert.equal(stopper.flush(), "");
  });

  it("keeps what it holds over an empty piece", () => {
    const stopper = createStopper(["STOP"]);
    assert.deepEqual(stopper.push("go ST"), { text: "go ", stopped: false });
    assert.deepEqual(stopper.push(""), { text: "", stopped: false });
    assert.deepEqual(stopper.push("OP it"), { text: "", stopped: true });
    assert.equal(stopper.flush(), "");
  });

  it("lets hostile text through whole", () => {
    const sequences = ["b", "c", "d", "e"].map((end) => "a".repeat(999) + end);
    const text = `${"a".repeat(998)}x`.repeat(131);
    // 20 ms in all; comparing afresh at each character would take half a second for the first of the two alone.
    assert.equal(run([text], sequences), text);
    assert.equal(run(text.split(""), sequences), text);
  });
});
