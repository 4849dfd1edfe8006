import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { amountText, MAX_AMOUNT, parseAmount } from "../../../src/admin/shared/amount.ts";

test("converts amounts exactly in both directions", () => {
  const amounts: [string, bigint, string?][] = [
    ["0.1", 100_000n],
    ["0.000001", 1n],
    ["-0.000001", -1n],
    ["1000000000", MAX_AMOUNT],
    ["999999999.999999", MAX_AMOUNT - 1n],
    ["007.50", 7_500_000n, "7.5"],
    ["-0", 0n, "0"],
  ];
  for (const [text, micro, written = text] of amounts) {
    assert.equal(parseAmount("amount", text, -MAX_AMOUNT), micro, text);
    assert.equal(amountText(micro), written);
  }
  fc.assert(
    fc.property(fc.bigInt({ min: -MAX_AMOUNT, max: MAX_AMOUNT }), (micro) => {
      assert.equal(parseAmount("amount", amountText(micro), -MAX_AMOUNT), micro);
    }),
  );
});

test("refuses any other text and names the field", () => {
  const wrong = [
    "",
    " ",
    "NaN",
    "Infinity",
    "1e3",
    "1E3",
    "0x10",
    "+1",
    "1,5",
    "1.",
    ".5",
    "1 ",
    "١",
    "1_000",
    "--1",
    "-",
    "1\n",
  ];
  for (const text of [
    ...wrong,
    "0.0000001",
    "1.0000000",
    "1000000000.000001",
    "9".repeat(400),
    `0.${"1".repeat(400)}`,
  ]) {
    assert.throws(() => parseAmount("price", text, -MAX_AMOUNT), { kind: "invalid_request", field: "price" }, text);
  }
  assert.throws(() => parseAmount("amount", "0.0000001", 0n), /at most six decimals/);
  assert.throws(() => parseAmount("amount", "-0.000001", 0n), /must be from 0 to 1000000000 credits/);
  assert.throws(() => parseAmount("amount", "0", 1n), /must be from 0.000001 to/);
});
