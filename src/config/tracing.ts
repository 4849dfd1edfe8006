import { ConfigError, type Env } from "./config-error.ts";

/**
 * Sampling and batching of traces. The exporter reads address, headers and certificates from the environment itself.
 */
export interface TracingConfig {
  /** Share of requests to record, 0 to 1. */
  ratio: number;
  /** Whether the sampling decision in a caller's `traceparent` takes precedence over `ratio`. */
  parentBased: boolean;
  /** Most ended spans in the queue; further spans are dropped. */
  maxQueueSize: number;
  /** Most spans in one export. */
  maxBatchSize: number;
  /** Interval of exports, in milliseconds. */
  delayMs: number;
}

const RATIOS: Readonly<Record<string, number | undefined>> = { always_on: 1, always_off: 0, traceidratio: undefined };

/**
 * Reads those standard variables of OpenTelemetry that its libraries do not read themselves. The defaults are those of
 * the OpenTelemetry Environment Variable Specification.
 * @returns undefined if no collector is named, or tracing is disabled
 * @throws ConfigError naming the variable
 */
export function readTracing(env: Env): TracingConfig | undefined {
  const endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"].filter((name) => env[name]);
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none";
  if (endpoints.length === 0 || isOff) return undefined;
  for (const name of endpoints) {
    // The message does not quote the address, which may contain a password.
    if (!/^https?:$/.test(URL.parse(env[name] ?? "")?.protocol ?? ""))
      throw new ConfigError(`${name} must be an address such as http://127.0.0.1:4318. Correct it or unset it.`);
  }
  for (const name of ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]) {
    if (env[name] && env[name] !== "http/protobuf")
      throw new ConfigError(
        `${name} must be http/protobuf, the only supported protocol. Use a collector for it, usually on port 4318.`,
      );
  }
  const maxQueueSize = count(env, "OTEL_BSP_MAX_QUEUE_SIZE", 2_048, 1, 65_536);
  return {
    ...sampling(env),
    maxQueueSize,
    maxBatchSize: Math.min(maxQueueSize, count(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 1, 65_536)),
    delayMs: count(env, "OTEL_BSP_SCHEDULE_DELAY", 5_000, 1, 3_600_000),
  };
}

function sampling(env: Env): Pick<TracingConfig, "ratio" | "parentBased"> {
  const name = env.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  const parentBased = name.startsWith("parentbased_");
  const base = parentBased ? name.slice("parentbased_".length) : name;
  if (!Object.hasOwn(RATIOS, base)) {
    const names = Object.keys(RATIOS).flatMap((each) => [each, `parentbased_${each}`]);
    throw new ConfigError(`OTEL_TRACES_SAMPLER must be one of ${names.join(", ")}. Correct it or unset it.`);
  }
  return { ratio: RATIOS[base] ?? count(env, "OTEL_TRACES_SAMPLER_ARG", 1, 0, 1), parentBased };
}

function count(env: Env, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (!text) return fallback;
  const value = Number(text);
  const isWhole = max === 1 || Number.isInteger(value);
  if (!isWhole || !(value >= min && value <= max))
    throw new ConfigError(`${name} must be a number from ${min} to ${max}. Correct it or unset it.`);
  return value;
}
