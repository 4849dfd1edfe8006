import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampMs } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { PerformancePointSchema, PerformanceSchema } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { Effort, MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
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

test("adds up the levels of each interval, as far as they were counted", async (t) => {
  const { usage, pool } = await openWithGenerations(t, 200);
  const add = (unit: string, minute: number, key: string, requests: string | null, credits: string | null) =>
    pool.query("insert into usage values ('ws_1', $1, $2, $3, 9, 1, 10, 20, 5, 9000000, $4, $5)", [
      ...[unit, new Date(START + minute * 60_000), key, requests, credits],
    ]);
  await add("minute", 0, "key_1", "{3,0,1}", "{1500000,0,250000}");
  await add("minute", 0, "key_2", "{1,0,0}", "{1,0,7}");
  await add("minute", 0, "key_3", null, null);
  await add("minute", 1, "key_1", "{0,2,0}", "{0,0,1}");
  await add("minute", 2, "key_1", "{9,9,9}", "{9,9,9}");
  await add("hour", 0, "key_1", "{8,8,8}", "{8,8,8}");
  await pool.query(
    "insert into usage select 'ws_2', 'minute', start, 'key_8', 1, 1, 1, 1, 1, 1, '{5,5,5}', '{5,5,5}' " +
      "from usage where unit = 'minute' and key_id = 'key_3'",
  );
  const period = { workspace: "one", startTime: at(START), endTime: at(START + 120_000) };
  const ask = async (keyId = "") => {
    const { total, series } = await usage.getPerformance({ ...period, keyId, interval: MetricsInterval.MINUTE });
    const words = (levels = total?.levels) =>
      levels?.map(({ level, requests, credits }) => `${Effort[level]} ${requests} ${credits}`);
    return [words(), ...series.map(({ performance }) => words(performance?.levels))];
  };
  assert.deepEqual(await ask(), [
    ["LOW 4 1.500001", "MEDIUM 2 0", "HIGH 1 0.250008"],
    ["LOW 4 1.500001", "HIGH 1 0.250007"],
    ["MEDIUM 2 0", "HIGH 0 0.000001"],
  ]);
  assert.deepEqual((await ask("key_2"))[0], ["LOW 1 0.000001", "HIGH 0 0.000007"]);
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
