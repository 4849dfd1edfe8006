import { Gauge, type Registry } from "prom-client";
import type { ModelState } from "../models/port/entry.ts";
import type { InternalErrors } from "./internal-errors.ts";

/** Adds the gauges of the models' circuit breakers and latencies. @param load returns the state of each model */
export function watchStates(registry: Registry, errors: InternalErrors, load: () => readonly ModelState[]): void {
  function gauge(
    name: string,
    help: string,
    labelNames: readonly string[],
    valuesOf: (state: ModelState) => readonly (readonly [labels: Record<string, string>, value: number])[],
    aggregator: "sum" | "average",
  ): void {
    new Gauge({
      name,
      help,
      labelNames: ["model", ...labelNames],
      registers: [registry],
      aggregator,
      collect() {
        // A model may leave the catalogue.
        this.reset();
        errors.guard("metric", () => {
          for (const state of load())
            for (const [labels, value] of valuesOf(state)) this.set({ model: state.model, ...labels }, value);
        });
      },
    });
  }

  gauge(
    "chorus_model_circuit_open",
    "1 while the circuit breaker stops calls of a model, else 0.",
    ["tier", "vendor"],
    ({ tier, vendor, isOpen }) => [[{ tier, vendor }, Number(isOpen)]],
    "sum",
  );
  gauge(
    "chorus_model_failed_share",
    "Share of the requests of the last 30 to 60 seconds for which a model failed, 0 to 1.",
    [],
    ({ failedShare }) => [[{}, failedShare]],
    "average",
  );
  gauge(
    "chorus_model_version_info",
    "1 for the version of a model that answered last, as its vendor names it.",
    ["version", "expected"],
    ({ served }) => (served ? [[{ version: served.version, expected: served.isExpected ? "yes" : "no" }, 1]] : []),
    "sum",
  );
  gauge(
    "chorus_model_first_text_seconds",
    "Time to first text of the last 100 calls of a model.",
    ["quantile"],
    ({ firstTextMs }) =>
      firstTextMs
        ? [
            [{ quantile: "0.5" }, firstTextMs.p50 / 1_000],
            [{ quantile: "0.95" }, firstTextMs.p95 / 1_000],
          ]
        : [],
    "average",
  );
}
