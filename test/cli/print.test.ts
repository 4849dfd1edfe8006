import assert from "node:assert/strict";
import * as fc from "fast-check";
import { test, vi } from "vitest";
import { durationText, grouped, printTable, safe } from "../../src/cli/print.ts";
import { codePoint } from "../helpers/code-point.ts";

test("escapes terminal control characters and keeps all other text", () => {
  assert.equal(safe("\u001b[31mred\u001b]0;title\u0007"), "\\u001b[31mred\\u001b]0;title\\u0007");
  assert.equal(safe("a\rb\bc\u007f\u009b31m\u0000"), "a\\u000db\\u0008c\\u007f\\u009b31m\\u0000");
  assert.equal(safe("admin\u202etxt.exe\u2066"), "admin\\u202etxt.exe\\u2066");
  assert.equal(safe("Zoë 語 👩‍🔧\n\tx"), "Zoë 語 👩‍🔧\n\tx");
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), (text) => {
      const clean = safe(text);
      assert.doesNotMatch(clean, /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u);
      assert.equal(safe(clean), clean);
    }),
  );
});

test("keeps the value of a JSON document", () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), (text) => {
      assert.equal(JSON.parse(safe(JSON.stringify({ text }, null, 2))).text, text);
    }),
  );
});

test("groups digits and stays exact", () => {
  assert.deepEqual(["0.000001", "-1234.5", "1000000000000.123456"].map(grouped), [
    "0.000001",
    "-1,234.5",
    "1,000,000,000,000.123456",
  ]);
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), (value) => {
      assert.equal(grouped(value).replaceAll(",", ""), `${value}`);
    }),
  );
});

test("rounds durations up", () => {
  const durations = [1, 120_000, 120_001, 7_200_000, 7_200_001, 172_800_001].map(durationText);
  assert.deepEqual(durations, ["1 s", "120 s", "3 min", "120 min", "3 h", "3 days"]);
});

test("prints tables of any number of rows", () => {
  const print = vi.spyOn(console, "log").mockReturnValue();
  try {
    printTable(["ID"], [...Array.from({ length: 200_000 }, () => ["a"]), ["longer"]]);
    assert.equal(print.mock.calls.length, 200_002);
  } finally {
    print.mockRestore();
  }
});
