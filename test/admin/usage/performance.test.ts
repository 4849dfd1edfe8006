import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { PerformancePointSchema, PerformanceSchema } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
import { openWithGenerations, START } from "../../helpers/generations.ts";

const at = (ms: number) => timestampFromDate(new Date(ms));

test("computes latencies and failures from the requests of each interval", async (t) => {
  const { usage } = await openWithGenerations(t);
  const period = { workspace: "one", startTime: at(START + 1), endTime: at(START + 1_000_000) };
  const { startTime, total, series } = await usage.getPerformance({ ...period, interval: MetricsInterval.MINUTE });
  assert.equal(startTime && timestampMs(startTime), START);
  const own = Array.from({ length: 3_000 }, (_, i) => i).filter((i) => i % 7 !== 6);
  const expected = (numbers: number[]) => {
    const failures = numbers.filter((i) => i % 50 === 0).length;
    const left = numbers.filter((i) => i % 50 !== 0 && i % 75 === 1 && i % 2 === 1).length;
    const latencies = numbers
      .filter((i) => i % 50 !== 0 && !(i % 75 === 1 && i % 2 === 1))
      .map((i) => i % 1_000)
      .toSorted((a, b) => a - b);
    const [p50, p95] = [0.5, 0.95].map((share) => latencies[Math.ceil(latencies.length * share) - 1]);
    return create(PerformanceSchema, {
      ...(p50 === undefined ? {} : { latencyP50Ms: p50 }),
      ...(p95 === undefined ? {} : { latencyP95Ms: p95 }),
      failures: [
        ...(failures > 0 ? [{ code: "upstream_failed", requests: BigInt(failures) }] : []),
        ...(left > 0 ? [{ code: "caller_gone", requests: BigInt(left) }] : []),
      ],
    });
  };
  assert.deepEqual(total, expected(own));
  assert.equal(series.length, 17);
  const second = own.filter((i) => i >= 180 && i < 360);
  const point = { start: at(START + 60_000), performance: expected(second) };
  assert.deepEqual(series[1], create(PerformancePointSchema, point));

  // Hours are the default.
  const ofKey = await usage.getPerformance({ ...period, keyId: "key_1" });
  assert.deepEqual(ofKey.total, expected(own.filter((i) => i % 10 === 1)));
  const none = await usage.getPerformance({ ...period, interval: MetricsInterval.DAY, keyId: "key_none" });
  assert.deepEqual(none.series, []);
});

test("refuses a period that is empty, too long or split into too many intervals", async (t) => {
  const { usage } = await openWithGenerations(t, 1);
  const ask = (from: number, to: number, interval: MetricsInterval) =>
    usage.getPerformance({ workspace: "one", startTime: at(from), endTime: at(to), interval });
  await assert.rejects(ask(START, START, MetricsInterval.HOUR), { kind: "invalid_request", field: "from" });
  const never = { seconds: 2n ** 62n, nanos: 0 };
  await assert.rejects(usage.getPerformance({ workspace: "one", startTime: never, endTime: at(START) }), {
    kind: "invalid_request",
    field: "from",
  });
  await assert.rejects(ask(START, START + 93 * 86_400_000, MetricsInterval.DAY), {
    kind: "invalid_request",
    field: "from",
  });
  await assert.rejects(ask(START, START + 801 * 60_000, MetricsInterval.MINUTE), {
    kind: "invalid_request",
    field: "interval",
  });
});
