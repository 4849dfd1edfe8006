import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { Collector, tokenCount } from "../../../src/models/wire/collector.ts";
import { endReason, frameFailure, withRawMember, wordsOf } from "../../../src/models/wire/wire.ts";

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

  test("has no usage where the vendor names it without figures", () => {
    const into = new Collector();
    into.report({});
    into.report({ inputTokens: null, cachedTokens: undefined });
    assert.equal(into.usage, undefined);
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

test("endReason takes a word that every object has for an unknown one", () => {
  for (const word of ["constructor", "toString", "__proto__", "valueOf", "new"]) {
    assert.equal(endReason({ stop: "stop" }, word), "unknown", word);
  }
  assert.equal(endReason({ stop: "stop" }, "stop"), "stop");
});

describe("frameFailure", () => {
  test("takes a number from 400 to 599 for the status, and nothing else", () => {
    for (const status of [400, 429, 599]) assert.equal(frameFailure({ about: "" }, status).status, status);
    for (const status of [undefined, "400", 200, 50_001, -1, Number.NaN, Number.POSITIVE_INFINITY, {}]) {
      const error = frameFailure({ about: "" }, status);
      assert.deepEqual([error.status, error.retryable], [undefined, true], String(status));
    }
  });

  test("is retried like the status, and never after a refusal or a prompt that is too long", () => {
    for (const [status, retryable] of [
      [400, false],
      [402, false],
      [429, true],
      [503, true],
    ] as const) {
      assert.equal(frameFailure({ about: "" }, status).retryable, retryable);
    }
    for (const kind of ["refused", "too_long"] as const) {
      assert.equal(frameFailure({ about: "", kind }, 503).retryable, false);
    }
  });

  test("has the vendor's words as its cause only", () => {
    const error = frameFailure({ about: "secret words" });
    assert.match(String(error.cause), /secret words/);
    assert.doesNotMatch(error.message, /secret/);
  });
});

test("wordsOf bounds what a vendor sends", () => {
  assert.equal(wordsOf("a", undefined, 7, { b: 1 }), "a undefined 7 ");
  assert.ok(wordsOf("x".repeat(1_000_000)).length < 10_000);
});

test("withRawMember writes a value as the text that it is given as", () => {
  assert.equal(withRawMember('{"a":1}', "b", '{"2":1.0}'), '{"a":1,"b":{"2":1.0}}');
});
