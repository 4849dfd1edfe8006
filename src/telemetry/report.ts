import type { CallFailure, ModelState } from "../models/port/entry.ts";
import type { MetricSnapshot } from "./telemetry.ts";

/** Counted calls of one model. Costs are in USD, by the prices of the catalogue. */
export interface ModelCalls {
  /** Calls that have ended, retries included. */
  readonly calls: number;
  /** Those that failed or timed out. */
  readonly failed: number;
  /** Calls that were not sent. */
  readonly refused: number;
  readonly usd: number;
}

/** What a replica knows about one model of the catalogue. */
export interface ModelReport extends ModelCalls {
  readonly model: string;
  readonly tier: string;
  readonly vendor: string;
  /** API over which it is called. Absent: none. */
  readonly api?: string;
  readonly isOpen: boolean;
  /** Share of the requests of the last 30 to 60 s that failed, 0 to 1. */
  readonly failedShare: number;
  /** Time to first text, in milliseconds. */
  readonly p50Ms?: number;
  readonly p95Ms?: number;
  /** What answered last, as the vendor names it. */
  readonly version?: string;
  readonly isUnexpected?: boolean;
  /** Why the last call failed. Absent if it succeeded. */
  readonly failure?: CallFailure;
  readonly running: number;
  readonly waiting: number;
}

/** What a replica knows about itself. Calls of models are those of the last 15 minutes. */
export interface ReplicaReport {
  /** Start of the process, milliseconds since 1970. */
  readonly startedAt: number;
  /** Admitted requests that run. */
  readonly running: number;
  readonly memoryBytes: number;
  /** Mean delay of the event loop, in milliseconds. */
  readonly loopDelayMs: number;
  readonly journal: {
    /** Settlements that wait for the database. */
    readonly waiting: number;
    /** Lines that are set aside, for which nothing is charged. */
    readonly damaged: number;
    readonly refused: number;
    /** Settlements that neither the database nor the journal took. */
    readonly failures: number;
  };
  /** Requests that were refused under overload since the start, by cause. */
  readonly shed: Readonly<Record<string, number>>;
  readonly models: readonly ModelReport[];
}

export type ReportedState = Pick<ModelState, "model" | "api" | "failure">;

/** Time for which calls of models are counted, and between two samples of the counts, in milliseconds. */
const WINDOW_MS = 15 * 60_000;
const SAMPLE_MS = 60_000;

/** Counted calls since the start of the process, by model. */
export type Counts = ReadonlyMap<string, ModelCalls>;
/** No call of a model. */
export const NONE: ModelCalls = { calls: 0, failed: 0, refused: 0, usd: 0 };

/** Makes reports from metrics. Keeps the counts of the last 15 minutes, one sample a minute. */
export class Reporter {
  /** Samples of the counts since the start, the oldest first. */
  #samples: { at: number; counts: Counts }[] = [];

  /**
   * @param snapshot the metrics now
   * @param now milliseconds from any fixed point
   * @param states of the models, for what no metric has
   */
  report(snapshot: readonly MetricSnapshot[], now: number, states: readonly ReportedState[]): ReplicaReport {
    const metrics = new Metrics(snapshot);
    const known = new Map(states.map((state) => [state.model, state]));
    const counts = countsOf(metrics);
    const before = this.#before(counts, now);
    const reason = (name: string) => metrics.sum("chorus_journal_set_aside", { reason: name });
    return {
      startedAt: metrics.sum("process_start_time_seconds") * 1_000,
      running: metrics.sum("chorus_leases_running"),
      memoryBytes: metrics.sum("process_resident_memory_bytes"),
      loopDelayMs: metrics.sum("nodejs_eventloop_lag_mean_seconds") * 1_000,
      journal: {
        waiting: metrics.sum("chorus_journal_entries"),
        damaged: reason("damaged"),
        refused: reason("refused"),
        failures: metrics.sum("chorus_journal_failures_total"),
      },
      shed: metrics.by("chorus_requests_shed_total", "cause"),
      models: metrics.labels("chorus_model_circuit_open").map(({ model = "", tier = "", vendor = "" }) => {
        const { api, failure } = known.get(model) ?? {};
        const calls = difference(counts.get(model), before.get(model));
        const details = { ...(api ? { api } : {}), ...(failure ? { failure } : {}) };
        return { ...calls, ...stateOf(metrics, model), ...details, model, tier, vendor };
      }),
    };
  }

  /** The counts of 15 minutes ago, or of the first report if that is later. */
  #before(counts: Counts, now: number): Counts {
    const last = this.#samples.at(-1);
    if (!last || now - last.at >= SAMPLE_MS) this.#samples.push({ at: now, counts });
    // Keeps one sample that is older than the window.
    while ((this.#samples[1]?.at ?? now) <= now - WINDOW_MS) this.#samples.shift();
    const first = this.#samples[0];
    return first && first.at <= now - WINDOW_MS ? first.counts : new Map();
  }
}

/** Counts the calls of models, also of those that the catalogue no longer has: it may have them again later. */
export function callsOf(snapshot: readonly MetricSnapshot[]): Counts {
  return countsOf(new Metrics(snapshot));
}

function countsOf(metrics: Metrics): Counts {
  const counted = [
    ...metrics.labels("chorus_model_calls_total"),
    ...metrics.labels("chorus_model_calls_refused_total"),
  ];
  const names = new Set(counted.map(({ model = "" }) => model));
  return new Map(
    Array.from(names, (model) => {
      const calls = (outcome: string) => metrics.sum("chorus_model_calls_total", { model, outcome });
      const counts = {
        calls: metrics.sum("chorus_model_calls_total", { model }),
        failed: calls("failed") + calls("timed_out"),
        refused: metrics.sum("chorus_model_calls_refused_total", { model }),
        usd: metrics.sum("chorus_model_cost_usd_total", { model }),
      };
      return [model, counts];
    }),
  );
}

function difference(now: ModelCalls = NONE, before: ModelCalls = NONE): ModelCalls {
  return {
    calls: now.calls - before.calls,
    failed: now.failed - before.failed,
    refused: now.refused - before.refused,
    usd: now.usd - before.usd,
  };
}

function stateOf(metrics: Metrics, model: string) {
  const latency = (quantile: string) => metrics.find("chorus_model_first_text_seconds", { model, quantile });
  const [p50, p95] = [latency("0.5"), latency("0.95")];
  // An unexpected one before others, because workers may have got different versions.
  const versions = metrics.labels("chorus_model_version_info").filter((labels) => labels.model === model);
  const served = versions.find(({ expected }) => expected === "no") ?? versions[0];
  return {
    isOpen: metrics.sum("chorus_model_circuit_open", { model }) > 0,
    failedShare: metrics.sum("chorus_model_failed_share", { model }),
    running: metrics.sum("chorus_model_calls", { model, state: "running" }),
    waiting: metrics.sum("chorus_model_calls", { model, state: "waiting" }),
    ...(p50 === undefined ? {} : { p50Ms: p50 * 1_000 }),
    ...(p95 === undefined ? {} : { p95Ms: p95 * 1_000 }),
    ...(served ? { version: served.version ?? "", isUnexpected: served.expected === "no" } : {}),
  };
}

type Labels = Readonly<Record<string, string>>;

class Metrics {
  readonly #byName: ReadonlyMap<string, MetricSnapshot>;

  constructor(snapshot: readonly MetricSnapshot[]) {
    this.#byName = new Map(snapshot.map((metric) => [metric.name, metric]));
  }

  labels(name: string): readonly Labels[] {
    return this.#values(name).map(({ labels }) => labels);
  }

  /** Sum of the values that have these labels; 0 without one. A figure without a sample yet is NaN. */
  sum(name: string, labels: Labels = {}): number {
    return this.#matching(name, labels).reduce((sum, { value }) => sum + (value || 0), 0);
  }

  find(name: string, labels: Labels): number | undefined {
    return this.#matching(name, labels)[0]?.value;
  }

  by(name: string, label: string): Record<string, number> {
    return Object.fromEntries(this.#values(name).map(({ labels, value }) => [labels[label] ?? "", value]));
  }

  #values(name: string): NonNullable<MetricSnapshot["values"]> {
    return this.#byName.get(name)?.values ?? [];
  }

  #matching(name: string, wanted: Labels) {
    const entries = Object.entries(wanted);
    return this.#values(name).filter(({ labels }) => entries.every(([label, value]) => labels[label] === value));
  }
}
