import { Counter, Gauge, type Registry } from "prom-client";
import { type InternalErrors, PLACES } from "./internal-errors.ts";
import type { Telemetry } from "./telemetry.ts";

/** The figure is one of the whole service, so workers report the same. */
export function alertMetrics(registry: Registry): Pick<Telemetry, "alertWait"> {
  const wait = new Gauge({
    name: "chorus_alert_wait_seconds",
    help: "Longest time for which a workspace with a due alert has waited for an attempt to send it.",
    registers: [registry],
    aggregator: "max",
  });
  return { alertWait: (seconds) => wait.set(seconds) };
}

/** Metrics of the metrics and the log themselves. Their figures are read at each scrape. */
export function selfMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "watchLog"> {
  let droppedLines = () => 0;
  const registers = [registry];
  new Counter({
    name: "chorus_internal_errors_total",
    help: "Errors that were caught because they must not affect a request.",
    labelNames: ["where"],
    registers,
    collect() {
      this.reset();
      for (const where of PLACES) this.inc({ where }, errors.counts[where]);
    },
  });
  new Counter({
    name: "chorus_log_lines_dropped_total",
    help: "Log lines that were dropped because the reader of the log was too slow.",
    registers,
    collect() {
      this.reset();
      errors.guard("metric", () => this.inc(droppedLines()));
    },
  });
  return {
    watchLog(lines) {
      droppedLines = lines;
    },
  };
}
