import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { toCsv } from "../../console/src/csv.ts";

test("prefixes formulas with an apostrophe but not numbers", () => {
  const row = ["=1+1", "+1", "-1+1", "@a", "\ta", "\ra", "-0.25", "a=1", -3, 5n];
  assert.equal(toCsv([row]), "\uFEFF'=1+1,'+1,'-1+1,'@a,'\ta,\"'\ra\",-0.25,a=1,-3,5\r\n");
});

test("round-trips any cell text", () => {
  const cell = fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "a", "=", "-", "1", "’", " ") });
  fc.assert(
    fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 4 }), (rows) => {
      const read = parse(toCsv(rows).slice(1));
      assert.deepEqual(
        read.map((row) => row.map((text) => text.replace(/^'(?=[=+\-@\t\r])/, ""))),
        rows,
      );
      for (const text of read.flat()) assert.doesNotMatch(text, /^[=+@\t\r]|^-(?!\d+$)/);
    }),
  );
});

/** A minimal RFC 4180 parser. */
function parse(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, unquoted, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? (unquoted ?? "") : quoted.replaceAll('""', '"'));
    if (end !== ",") {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}
