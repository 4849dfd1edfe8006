import { Gauge, Histogram, type Registry } from "prom-client";
import { counter, labelledCounter } from "./counter.ts";
import type { InternalErrors } from "./internal-errors.ts";
import type { Telemetry } from "./telemetry.ts";

/** Buckets in seconds, from a request refused by a rate limit to the longest deadline. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];

export function requestMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "request" | "requestShed"> {
  const requests = labelledCounter(registry, errors, "chorus_requests_total", "Requests that have ended.", [
    "transport",
    "method",
    "outcome",
  ]);
  const requestSeconds = new Histogram({
    name: "chorus_request_seconds",
    help: "Time from the arrival of a request to its end.",
    labelNames: ["transport", "method"],
    buckets: REQUEST_SECONDS,
    registers: [registry],
  });
  const tokens = labelledCounter(registry, errors, "chorus_tokens_total", "Tokens of settled requests.", ["kind"]);
  const credits = counter(registry, "chorus_credits_total", "Credits charged.");
  const shed = labelledCounter(
    registry,
    errors,
    "chorus_requests_shed_total",
    "Requests that were refused under overload.",
    ["cause"],
  );
  return {
    requestShed: (cause) => shed.inc({ cause }),
    request({ transport, method, outcome, seconds, inputTokens, outputTokens, cachedTokens, credits: charged }) {
      requests.inc({ transport, method, outcome });
      requestSeconds.observe({ transport, method }, seconds);
      if (inputTokens) tokens.inc({ kind: "input" }, inputTokens);
      if (outputTokens) tokens.inc({ kind: "output" }, outputTokens);
      if (cachedTokens) tokens.inc({ kind: "cached" }, cachedTokens);
      if (charged) credits.inc(charged);
    },
  };
}

export function bodyMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "watchBodies"> {
  const transports = new Map<string, () => number>();
  new Gauge({
    name: "chorus_body_bytes",
    help: "Bytes of request bodies in memory.",
    labelNames: ["transport"],
    registers: [registry],
    collect() {
      for (const [transport, bytes] of transports) errors.guard("metric", () => this.set({ transport }, bytes()));
    },
  });
  return {
    watchBodies(transport, bytes) {
      transports.set(transport, bytes);
    },
  };
}
