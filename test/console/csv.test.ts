import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { toCsv } from "../../console/src/csv.ts";

test("texts that a spreadsheet would run stand behind an apostrophe, figures do not", () => {
  const row = ["=1+1", "+1", "-1+1", "@a", "\ta", "\ra", "-0.25", "a=1", -3, 5n];
  assert.equal(toCsv([row]), "\uFEFF'=1+1,'+1,'-1+1,'@a,'\ta,\"'\ra\",-0.25,a=1,-3,5\r\n");
});

test("whatever is in a cell, the file reads back as it was", () => {
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

/** A plain reader of RFC 4180. */
function parse(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? (plain ?? "") : quoted.replaceAll('""', '"'));
    if (end !== ",") {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}
