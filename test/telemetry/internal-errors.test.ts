import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createInternalErrors, type Place } from "../../src/telemetry/internal-errors.ts";

function fail(): never {
  throw new TypeError("x");
}

test("counts every error by place and reports at most one a second", async () => {
  const reports: [where: Place, name: string, errors: number][] = [];
  const errors = createInternalErrors((where, error, count) => reports.push([where, (error as Error).name, count]));
  let runs = 0;
  errors.guard("metric", () => {
    runs += 1;
  });
  for (let i = 0; i < 3; i++) errors.guard("metric", fail);
  errors.add("promise", new RangeError("y"));
  assert.equal(runs, 1);
  assert.deepEqual(errors.counts, { metric: 3, log: 0, report: 0, model_call: 0, trace: 0, learning: 0, promise: 1 });
  assert.deepEqual(reports, [["metric", "TypeError", 1]]);
  await sleep(1_050);
  errors.guard("log", fail);
  assert.deepEqual(reports.slice(1), [["log", "TypeError", 4]]);
});

test("survives a report that fails or that causes the same error again", () => {
  const broken = createInternalErrors(fail);
  broken.guard("metric", fail);
  assert.deepEqual([broken.counts.metric, broken.counts.log], [1, 1]);
  const circular = createInternalErrors(() => circular.guard("log", fail));
  circular.guard("log", fail);
  assert.equal(circular.counts.log, 2);
});
