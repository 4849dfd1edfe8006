import assert from "node:assert/strict";
import { test } from "vitest";
import { Latency } from "../../src/models/latency.ts";

test("counts a call as late after the 95th percentile of the last 100, once 20 are known", () => {
  const latency = new Latency();
  for (let i = 1; i <= 19; i++) latency.record(1_000 * i);
  assert.equal(latency.hedgeAfterMs(), undefined);
  latency.record(20_000);
  assert.equal(latency.hedgeAfterMs(), 19_000);
  for (let i = 1; i <= 100; i++) latency.record(1_000 + i);
  assert.equal(latency.hedgeAfterMs(), 1_095);
});

test("does not hedge a fast model before 500 ms", () => {
  const latency = new Latency();
  for (let i = 0; i < 20; i++) latency.record(3);
  assert.equal(latency.hedgeAfterMs(), 500);
});

test("counts an abandoned call only if it took longer than usual", () => {
  const latency = new Latency();
  latency.recordAtLeast(9_000);
  for (let i = 0; i < 20; i++) latency.record(1_000);
  for (let i = 0; i < 20; i++) latency.recordAtLeast(10);
  assert.equal(latency.hedgeAfterMs(), 1_000);
  for (let i = 0; i < 20; i++) latency.recordAtLeast(2_000);
  assert.equal(latency.hedgeAfterMs(), 2_000);
});

test("allows one hedge in 20 calls", () => {
  const latency = new Latency();
  for (let i = 0; i < 20; i++) latency.record(1_000);
  let hedges = 0;
  for (let i = 0; i < 1_000; i++) {
    latency.hedgeAfterMs();
    if (latency.maySpend()) hedges++;
  }
  assert.ok(hedges >= 48 && hedges <= 50, `${hedges}`);
  // The budget does not grow beyond its maximum.
  for (let i = 0; i < 1_000; i++) latency.hedgeAfterMs();
  assert.deepEqual([latency.maySpend(), latency.maySpend(), latency.maySpend()], [true, true, false]);
});

test("gives the median and the 95th percentile of the last 100 calls", () => {
  const latency = new Latency();
  assert.equal(latency.quantiles(), undefined);
  latency.record(7);
  assert.deepEqual(latency.quantiles(), { p50: 7, p95: 7 });
  for (let ms = 1; ms <= 100; ms++) latency.record(ms);
  assert.deepEqual(latency.quantiles(), { p50: 50, p95: 95 });
});
