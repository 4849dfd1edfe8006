import assert from "node:assert/strict";
import { test } from "vitest";
import { counted, duration, short } from "../../console/src/format.ts";
import { dollars } from "../../console/src/operator/money.ts";
import { runningPoint } from "../../console/src/parts/running-point.ts";

/** Marks of an axis. */
const marks = (write: (value: number, step: number) => string, step: number, n = 4) =>
  Array.from({ length: n }, (_, i) => write(i * step, step));

test("writes all marks of an axis with the decimals that their distance needs", () => {
  assert.deepEqual(marks(dollars, 0.5), ["$0.00", "$0.50", "$1.00", "$1.50"]);
  assert.deepEqual(marks(dollars, 0.002), ["$0.000", "$0.002", "$0.004", "$0.006"]);
  assert.deepEqual(marks(dollars, 0.0025), ["$0.0000", "$0.0025", "$0.0050", "$0.0075"]);
  assert.deepEqual(marks(dollars, 20), ["$0.00", "$20.00", "$40.00", "$60.00"]);
  assert.deepEqual(marks(short, 0.25, 5), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
  assert.deepEqual(marks(short, 0.1), ["0.0", "0.1", "0.2", "0.3"]);
  assert.deepEqual(marks(short, 2.5), ["0.0", "2.5", "5.0", "7.5"]);
  assert.deepEqual(marks(short, 500), ["0", "500", "1K", "1.5K"]);
});

test("writes single values as before", () => {
  assert.deepEqual(
    [0.0105, 0, 1, 1234.5].map((value) => dollars(value)),
    ["$0.0105", "$0.00", "$1.00", "$1,234.50"],
  );
  assert.deepEqual(
    [0.1234, 12, 999.9, 12_345].map((value) => short(value)),
    ["0.123", "12", "1000", "12.3K"],
  );
});

test("writes a count with its noun", () => {
  const written = [0, 1, 2, 1_000].map((value) => counted(value, "request"));
  assert.deepEqual(written, ["0 requests", "1 request", "2 requests", "1,000 requests"]);
});

test("carries the rounded part of a duration", () => {
  assert.deepEqual(
    [119_400, 119_600, 3_599_600, 7_199_900, 172_790_000].map((ms) => duration(ms)),
    ["1 min 59 s", "2 min 0 s", "1 h 0 min", "2 h 0 min", "2 days"],
  );
});

test("marks the interval that still runs, also in a period that ends later", () => {
  const hour = 3600;
  const start = Math.floor(Date.now() / 1000) - hour / 2;
  const at = [-2, -1, 0, 1, 2].map((hours) => start + hours * hour);
  assert.equal(runningPoint({ at, runs: true }), 2);
  assert.equal(runningPoint({ at: at.slice(0, 3), runs: true }), 2);
  assert.equal(runningPoint({ at: at.slice(3), runs: true }), undefined);
  assert.equal(runningPoint({ at: at.slice(0, 2), runs: false }), undefined);
});
