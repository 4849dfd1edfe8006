import { AggregatorRegistry, Counter, Gauge, Registry } from "prom-client";
import type { MetricSnapshot } from "../../telemetry/telemetry.ts";

/** Longest wait for the metrics of a worker, in milliseconds. Those that it sent last are used after that. */
const WAIT_MS = 1_000;

/**
 * Creates the sums of metrics over workers. Counters never fall: what a worker that has ended had counted at its last
 * scrape is kept. So one that is replaced does not look like a restart of the service.
 * @param places places of the workers that run
 * @param ask asks the worker in a place for its metrics
 */
export function createWorkerMetrics(places: () => readonly number[], ask: (place: number, id: number) => void) {
  const own = new Registry();
  const running = new Gauge({ name: "chorus_workers", help: "Workers that run.", registers: [own] });
  const ends = new Counter({ name: "chorus_worker_ends_total", help: "Workers that have ended.", registers: [own] });
  /** The metrics that each worker sent last, and the sums of those that have ended. */
  const latest = new Map<number, readonly MetricSnapshot[]>();
  let departed: readonly MetricSnapshot[] = [];
  const waiting = new Map<number, { missing: Set<number>; resolve(): void }>();
  let lastId = 0;

  async function refresh(): Promise<void> {
    const id = ++lastId;
    const { promise, resolve } = Promise.withResolvers<void>();
    const missing = new Set(places());
    if (missing.size === 0) return;
    waiting.set(id, { missing, resolve });
    for (const place of missing) ask(place, id);
    const timer = setTimeout(resolve, WAIT_MS);
    await promise;
    clearTimeout(timer);
    waiting.delete(id);
  }

  function arrived(place: number, id: number): void {
    const request = waiting.get(id);
    if (request?.missing.delete(place) && request.missing.size === 0) request.resolve();
  }

  return {
    /** All metrics, summed over the workers, in Prometheus' text format. */
    async text(): Promise<string> {
      await refresh();
      running.set(places().length);
      const sums = AggregatorRegistry.aggregate([...latest.values(), departed]);
      return `${await sums.metrics()}\n${await own.metrics()}`;
    },
    receive(place: number, id: number, metrics: readonly MetricSnapshot[]): void {
      latest.set(place, metrics);
      arrived(place, id);
    },
    /** A worker has ended. What it has counted remains in the sums. */
    ended(place: number): void {
      ends.inc();
      const left = (latest.get(place) ?? []).filter(({ type }) => type === "counter" || type === "histogram");
      latest.delete(place);
      departed = AggregatorRegistry.aggregate([departed, left]).getMetricsAsArray() as object[] as MetricSnapshot[];
      for (const id of waiting.keys()) arrived(place, id);
    },
  };
}
