import { Gauge, Histogram, type Registry } from "prom-client";
import { counter, labelledCounter } from "./counter.ts";
import type { InternalErrors } from "./internal-errors.ts";
import type { Telemetry } from "./telemetry.ts";

/** Buckets in seconds, from an idle database to an unavailable one. */
const QUEUE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

export function leaseMetrics(
  registry: Registry,
  errors: InternalErrors,
): Pick<Telemetry, "leaseTaken" | "leaseEnded" | "leaseRefused"> {
  const taken = counter(registry, "chorus_leases_taken_total", "Admitted requests.");
  const refused = labelledCounter(
    registry,
    errors,
    "chorus_leases_refused_total",
    "Requests that were not admitted, by reason.",
    ["limit"],
  );
  const running = new Gauge({
    name: "chorus_leases_running",
    help: "Admitted requests of this process that are not settled yet.",
    registers: [registry],
  });
  return {
    leaseTaken() {
      taken.inc();
      running.inc();
    },
    leaseEnded: () => running.dec(),
    leaseRefused: (limit) => refused.inc({ limit }),
  };
}

export function queueMetrics(registry: Registry): Pick<Telemetry, "batch"> {
  const registers = [registry];
  const labelNames = ["stage"];
  const sizes = new Histogram({
    name: "chorus_batch_size",
    help: "Requests admitted or settled in one statement.",
    labelNames,
    buckets: BATCH_SIZES,
    registers,
  });
  const seconds = new Histogram({
    name: "chorus_queue_seconds",
    help: "Wait of a request for its batch to start.",
    labelNames,
    buckets: QUEUE_SECONDS,
    registers,
  });
  return {
    batch(stage, waitedMs) {
      sizes.observe({ stage }, waitedMs.length);
      for (const ms of waitedMs) seconds.observe({ stage }, ms / 1_000);
    },
  };
}

export function journalMetrics(
  registry: Registry,
  errors: InternalErrors,
): Pick<Telemetry, "watchJournal" | "journalFailed"> {
  let watched: { entries: () => number; setAside: Record<string, number> } | undefined;
  const registers = [registry];
  new Gauge({
    name: "chorus_journal_entries",
    help: "Settlements that wait on the local disk for the database.",
    registers,
    collect() {
      errors.guard("metric", () => this.set(watched?.entries() ?? 0));
    },
  });
  new Gauge({
    name: "chorus_journal_set_aside",
    help: "Lines in the files damaged and refused of the journal, for which nothing is charged.",
    labelNames: ["reason"],
    registers,
    collect() {
      for (const [reason, lines] of Object.entries(watched?.setAside ?? {})) this.set({ reason }, lines);
    },
  });
  const failures = counter(
    registry,
    "chorus_journal_failures_total",
    "Settlements that neither the database nor the journal took. Their answers were not delivered or are free.",
  );
  return {
    watchJournal(entries, setAside) {
      watched = { entries, setAside };
    },
    journalFailed: (count) => failures.inc(count),
  };
}
