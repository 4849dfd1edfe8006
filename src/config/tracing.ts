import { ConfigError } from "./config-error.ts";

/** How traces are taken. Where they go, and with what headers and certificates, the exporter reads by itself. */
export interface TracingConfig {
  /** Share of the requests that begin a trace here and are recorded, 0 to 1. */
  ratio: number;
  /** Whether the decision of a caller that sends a `traceparent` comes first. */
  parentBased: boolean;
  /** Most ended spans that wait to be sent; further ones are dropped. */
  maxQueueSize: number;
  /** Most spans that are sent together. */
  maxBatchSize: number;
  /** Wait between two batches, in milliseconds. */
  delayMs: number;
}

type Env = Readonly<Record<string, string | undefined>>;

const RATIOS: Readonly<Record<string, number | undefined>> = { always_on: 1, always_off: 0, traceidratio: undefined };

/**
 * Reads OpenTelemetry's standard variables, as far as its libraries leave that to the program. Defaults are the specification's
 * (OpenTelemetry Environment Variable Specification).
 * @returns undefined where no collector is named, or tracing is switched off
 * @throws ConfigError
 */
export function readTracing(env: Env): TracingConfig | undefined {
  const endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"].filter((name) => env[name]);
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none";
  if (endpoints.length === 0 || isOff) return undefined;
  for (const name of endpoints) {
    // Not quoted: an address may have a password in it.
    if (!/^https?:$/.test(URL.parse(env[name] ?? "")?.protocol ?? ""))
      throw new ConfigError(`${name} must be an address such as http://127.0.0.1:4318. Correct it or unset it.`);
  }
  for (const name of ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]) {
    if (env[name] && env[name] !== "http/protobuf")
      throw new ConfigError(
        `${name} must be http/protobuf, the one protocol that is spoken here. Name a collector that takes it (port 4318 as a rule).`,
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
    throw new ConfigError(`OTEL_TRACES_SAMPLER must be one of ${names.join(", ")}.`);
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
