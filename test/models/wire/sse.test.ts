import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { SseParser } from "../../../src/models/wire/sse.ts";

/** The data of each event of a text that arrives in these chunks. */
function dataOf(...chunks: string[]): string[] {
  return dataOfAll(chunks);
}

function dataOfAll(chunks: Iterable<string>): string[] {
  const found: string[] = [];
  const parser = new SseParser((data) => found.push(data));
  for (const chunk of chunks) parser.push(chunk);
  parser.end();
  return found;
}

/** Cuts a text at the given offsets. */
function split(text: string, offsets: readonly number[]): string[] {
  const at = [0, ...offsets.map((offset) => offset % (text.length + 1)).sort((a, b) => a - b), text.length];
  return at.slice(1).map((end, i) => text.slice(at[i], end));
}

describe("SseParser", () => {
  test("accepts LF, CRLF and lone CR as line ends", () => {
    for (const end of ["\n", "\r\n", "\r"]) {
      assert.deepEqual(dataOf(["data: one", "", "data: two", "", ""].join(end)), ["one", "two"], JSON.stringify(end));
    }
  });

  test("reads the field in which older llama.cpp servers send an error", () => {
    assert.deepEqual(dataOf('error: {"code":400}\n\ndata: [DONE]\n\n'), ['{"error":{"code":400}}', "[DONE]"]);
    assert.deepEqual(dataOf("error: no\ndata: yes\n\n"), ["yes"]);
  });

  test("skips a byte order mark, comments, names, ids and unknown fields", () => {
    assert.deepEqual(dataOf("\uFEFF: comment\nevent: x\nid: 1\nretry: 5\ndatax: no\ndata: yes\n\n"), ["yes"]);
  });

  test("accepts data without a space, without a value and over several lines", () => {
    assert.deepEqual(dataOf("data:a\n\ndata\n\ndata: b\ndata:  c\n\n"), ["a", "", "b\n c"]);
  });

  test("gives the last event when its blank line, or its line end, is missing", () => {
    assert.deepEqual(dataOf("data: a\n"), ["a"]);
    assert.deepEqual(dataOf("data: a"), ["a"]);
  });

  test("does not treat U+2028 and U+0085 as line ends", () => {
    assert.deepEqual(dataOf("data: a\u2028b\u0085c\n\n"), ["a\u2028b\u0085c"]);
  });

  test("gives the same events for every split of the text", () => {
    const line = fc.oneof(
      fc.constantFrom("", "", ": ping", "event: delta", "data:", "data: [DONE]"),
      fc.string({ maxLength: 12 }).map((text) => `data: ${text.replace(/[\r\n\uFEFF]/g, "")}`),
    );
    const text = fc
      .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 12 })
      .map((lines) => lines.map(([content, end]) => content + end).join(""));
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 20 }), (whole, offsets) => {
        assert.deepEqual(dataOf(...split(whole, offsets)), dataOf(whole));
        assert.deepEqual(dataOf(...whole), dataOf(whole));
      }),
      { numRuns: 1_000 },
    );
  });

  test("reads a line of one megabyte that arrives in pieces of a few bytes", () => {
    const value = "x".repeat(1_000_000);
    const text = `data: ${value}\n\n`;
    const pieces = Array.from({ length: Math.ceil(text.length / 7) }, (_, i) => text.slice(i * 7, i * 7 + 7));
    assert.deepEqual(dataOfAll(pieces), [value]);
  });

  test("fails on an event that is longer than its bound", () => {
    const parser = new SseParser(() => {});
    assert.throws(() => {
      for (let i = 0; i < 100; i++) parser.push("data: ".padEnd(1_000_000, "x"));
    }, /event that is too long/);
  });
});
