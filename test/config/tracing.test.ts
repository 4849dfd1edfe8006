import assert from "node:assert/strict";
import { test } from "vitest";
import { ConfigError } from "../../src/config/config.ts";
import { readTracing } from "../../src/config/tracing.ts";

const ON = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

test("records traces only if a collector is configured", () => {
  assert.equal(readTracing({}), undefined);
  assert.equal(readTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: "", OTEL_TRACES_SAMPLER: "nonsense" }), undefined);
  assert.equal(readTracing({ ...ON, OTEL_SDK_DISABLED: "TRUE" }), undefined);
  assert.equal(readTracing({ ...ON, OTEL_TRACES_EXPORTER: "none" }), undefined);
  const standard = { ratio: 1, parentBased: true, maxQueueSize: 2_048, maxBatchSize: 512, delayMs: 5_000 };
  assert.deepEqual(readTracing(ON), standard);
  assert.deepEqual(readTracing({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example/v1/traces" }), standard);
});

test("accepts the sampler names of OpenTelemetry", () => {
  const sampling = (sampler: string, arg?: string) => {
    const { ratio, parentBased } =
      readTracing({ ...ON, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: arg }) ?? assert.fail();
    return [ratio, parentBased];
  };
  assert.deepEqual(sampling("always_on"), [1, false]);
  assert.deepEqual(sampling("always_off", "0.5"), [0, false]);
  assert.deepEqual(sampling("traceidratio", "0.25"), [0.25, false]);
  assert.deepEqual(sampling("parentbased_traceidratio", "0.01"), [0.01, true]);
  assert.deepEqual(sampling("parentbased_traceidratio"), [1, true]);
});

test("limits a batch to the size of the queue", () => {
  const { maxQueueSize, maxBatchSize } = readTracing({ ...ON, OTEL_BSP_MAX_QUEUE_SIZE: "100" }) ?? assert.fail();
  assert.deepEqual([maxQueueSize, maxBatchSize], [100, 100]);
});

test("names an invalid variable without showing its value", () => {
  for (const [name, value] of [
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:hidden"],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "hidden"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"],
    ["OTEL_TRACES_SAMPLER", "jaeger_remote"],
    ["OTEL_TRACES_SAMPLER", "constructor"],
    ["OTEL_BSP_MAX_QUEUE_SIZE", "0"],
    ["OTEL_BSP_SCHEDULE_DELAY", "soon"],
  ] as const) {
    assert.throws(
      () => readTracing({ ...ON, [name]: value }),
      (error) => error instanceof ConfigError && error.message.startsWith(name) && !error.message.includes("hidden"),
      name,
    );
  }
  const ratio = { ...ON, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" };
  assert.throws(() => readTracing(ratio), /OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1/);
});
