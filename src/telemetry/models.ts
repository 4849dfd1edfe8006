import { Gauge, type Registry } from "prom-client";
import { labelledCounter } from "./counter.ts";
import type { InternalErrors } from "./internal-errors.ts";
import { watchStates } from "./model-states.ts";
import type { Telemetry } from "./telemetry.ts";

export function modelMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "modelCall"> {
  const calls = labelledCounter(registry, errors, "chorus_model_calls_total", "Calls of vendors, retries included.", [
    "model",
    "tier",
    "outcome",
  ]);
  const tokens = labelledCounter(registry, errors, "chorus_model_tokens_total", "Tokens of calls of vendors.", [
    "model",
    "tier",
    "kind",
    "source",
  ]);
  const cost = labelledCounter(
    registry,
    errors,
    "chorus_model_cost_usd_total",
    "Cost of calls of vendors by the catalogue's prices.",
    ["model", "tier", "source"],
  );
  return {
    modelCall({ model, tier, outcome, source, inputTokens, outputTokens, cachedTokens, usd }) {
      calls.inc({ model, tier, outcome });
      tokens.inc({ model, tier, source, kind: "input" }, inputTokens);
      tokens.inc({ model, tier, source, kind: "output" }, outputTokens);
      if (cachedTokens) tokens.inc({ model, tier, source, kind: "cached" }, cachedTokens);
      if (usd !== undefined) cost.inc({ model, tier, source }, usd);
    },
  };
}

export function limitMetrics(
  registry: Registry,
  errors: InternalErrors,
): Pick<Telemetry, "modelCallRefused" | "watchModels"> {
  const registers = [registry];
  const refused = labelledCounter(
    registry,
    errors,
    "chorus_model_calls_refused_total",
    "Calls of vendors that were not sent.",
    ["model", "cause"],
  );
  let load: Parameters<Telemetry["watchModels"]>[0] = () => [];
  new Gauge({
    name: "chorus_model_call_limit",
    help: "Calls of a vendor that may run at a time.",
    labelNames: ["model"],
    registers,
    collect() {
      errors.guard("metric", () => {
        for (const { model, limit } of load()) if (limit !== undefined) this.set({ model }, limit);
      });
    },
  });
  new Gauge({
    name: "chorus_model_calls",
    help: "Calls of a vendor that run or wait.",
    labelNames: ["model", "state"],
    registers,
    collect() {
      errors.guard("metric", () => {
        for (const { model, limit, running, waiting } of load()) {
          if (limit === undefined) continue;
          this.set({ model, state: "running" }, running);
          this.set({ model, state: "waiting" }, waiting);
        }
      });
    },
  });
  watchStates(registry, errors, () => load());
  return {
    modelCallRefused: (model, cause) => refused.inc({ model, cause }),
    watchModels(read) {
      load = read;
    },
  };
}
