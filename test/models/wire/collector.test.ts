import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { Collector, tokenCount, withRawMember } from "../../../src/models/wire/wire.ts";

describe("tokenCount", () => {
  test("is a whole number from 0 to a billion for any claim", () => {
    fc.assert(
      fc.property(fc.anything(), (claim) => {
        const count = tokenCount(claim);
        assert.ok(Number.isInteger(count) && count >= 0 && count <= 1_000_000_000);
      }),
    );
    for (const [claim, count] of [
      [12, 12],
      [1.9, 1],
      [-5, 0],
      [1e300, 1_000_000_000],
      [Number.NaN, 0],
      ["7", 0],
      [null, 0],
    ] as const) {
      assert.equal(tokenCount(claim), count);
    }
  });
});

describe("Collector", () => {
  test("bounds cached tokens by the input, and thinking by the output", () => {
    const into = new Collector();
    into.report({ inputTokens: 10, cachedTokens: 99, outputTokens: 5, thinkingTokens: 6 });
    assert.deepEqual(into.usage, { inputTokens: 10, cachedTokens: 10, outputTokens: 5, thinkingTokens: 5 });
  });

  test("keeps earlier figures where later ones are missing", () => {
    const into = new Collector();
    assert.equal(into.usage, undefined);
    into.report({ inputTokens: 10, outputTokens: 1 });
    into.report({ inputTokens: null, outputTokens: 7 });
    assert.deepEqual(into.usage, { inputTokens: 10, cachedTokens: 0, outputTokens: 7, thinkingTokens: 0 });
  });

  test("takes the first reason, a refusal before any other, and `unknown` without one", () => {
    const into = new Collector();
    assert.equal(into.reason, "unknown");
    into.finish("length");
    into.finish("stop");
    assert.equal(into.reason, "length");
    into.refuse();
    assert.equal(into.reason, "content_filter");
  });

  test("skips what is no text", () => {
    const into = new Collector();
    for (const text of ["a", undefined, null, 7, {}, "b"]) into.write(text);
    assert.equal(into.take(), "ab");
    assert.equal(into.take(), "");
  });
});

test("withRawMember writes a value as the text that it is given as", () => {
  assert.equal(withRawMember('{"a":1}', "b", '{"2":1.0}'), '{"a":1,"b":{"2":1.0}}');
});
