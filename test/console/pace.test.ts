import assert from "node:assert/strict";
import { test } from "vitest";
import type { Span } from "../../console/src/limits/limit-rows.ts";
import { paceOf } from "../../console/src/limits/pace.ts";

const at = (text: string) => Date.parse(`2026-${text}Z`);

/** The pace of a limit of 100. */
const pace = (used: number, span: Span, now: string, resetsAt: string) =>
  paceOf({ limit: 100, used, span }, at(now), at(resetsAt));

test("says when a limit is reached at the pace of its window so far, or how much is used at its end", () => {
  assert.equal(pace(60, "day", "03-14T12:00", "03-15T00:00"), "reached about 20:00");
  assert.equal(pace(50, "day", "03-14T12:00", "03-15T00:00"), "about 100 % at the reset");
  assert.equal(pace(10, "day", "03-14T06:00", "03-15T00:00"), "about 40 % at the reset");
  assert.equal(pace(0, "day", "03-14T06:00", "03-15T00:00"), "about 0 % at the reset");
  assert.equal(pace(70, "week", "03-13T00:00", "03-16T00:00"), "reached about 2026-03-14");
  assert.equal(pace(50, "month", "03-11T00:00", "04-01T00:00"), "reached about 2026-03-21");
  assert.equal(pace(25, "month", "02-15T00:00", "03-01T00:00"), "about 50 % at the reset");
  assert.equal(pace(100, "day", "03-14T00:01", "03-15T00:00"), "reached");
  assert.equal(pace(3, "month", "01-31T00:00", "02-01T00:00"), "about 3 % at the reset");
});

test("says nothing without a limit, without a window, in a minute, at the start, and with clocks that differ", () => {
  assert.equal(pace(10, "day", "03-14T00:28", "03-15T00:00"), "");
  assert.equal(pace(10, "day", "03-13T23:59", "03-15T00:00"), "");
  assert.equal(pace(10, "day", "03-15T00:01", "03-15T00:00"), "");
  assert.equal(pace(10, "minute", "03-14T00:00", "03-14T00:01"), "");
  assert.equal(paceOf({ limit: undefined, used: 5, span: "day" }, at("03-14T12:00"), at("03-15T00:00")), "");
  assert.equal(paceOf({ limit: 5, used: undefined, span: "day" }, at("03-14T12:00"), at("03-15T00:00")), "");
  assert.equal(paceOf({ limit: 5, used: 2, span: undefined }, at("03-14T12:00"), at("03-15T00:00")), "");
});
