import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { bar, sparkline } from "../../src/cli/chart.ts";

const at = (text: string) => timestampFromDate(new Date(text));

test("draws a bar in proportion to its share, and a visible mark for any share above 0", () => {
  assert.equal(bar(10, 10), "█".repeat(20));
  assert.equal(bar(5, 10), "█".repeat(10));
  assert.equal(bar(1, 1_000_000), "▏");
  assert.equal(bar(0, 10), "");
  assert.equal(bar(0, 0), "");
});

test("draws one column for each interval, blank without usage", () => {
  const day = (n: number) => Date.UTC(2026, 0, n);
  const values = new Map([
    [day(1), 1],
    [day(3), 8],
  ]);
  const period = { from: at("2026-01-01T00:00:00Z"), to: at("2026-01-04T00:00:00Z") };
  assert.equal(sparkline(values, period, "day"), "▁ █");
  const months = { from: at("2025-12-01T00:00:00Z"), to: at("2026-02-01T00:00:00Z") };
  assert.equal(sparkline(new Map([[day(1), 3]]), months, "month"), " █");
});

test("draws no sparkline for one point, no points or more points than fit into a line", () => {
  const from = at("2026-01-01T00:00:00Z");
  const start = Date.UTC(2026, 0, 1);
  assert.equal(sparkline(new Map([[start, 1]]), { from, to: at("2026-01-02T00:00:00Z") }, "day"), undefined);
  assert.equal(sparkline(new Map(), { from, to: at("2026-01-05T00:00:00Z") }, "day"), undefined);
  assert.equal(sparkline(new Map([[start, 1]]), { from, to: at("2027-01-01T00:00:00Z") }, "hour"), undefined);
});
