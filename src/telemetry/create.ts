import { collectDefaultMetrics, Registry } from "prom-client";
import { createInternalErrors, type InternalErrors, PLACES } from "./internal-errors.ts";
import { declareIn, type Metrics } from "./metrics.ts";
import { METHODS, type MetricSnapshot, type Telemetry, TRANSPORTS } from "./telemetry.ts";

export const TELEMETRY_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Buckets in seconds, from a request refused by a rate limit to the longest deadline. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
/** Buckets in seconds, from an idle database to an unavailable one. */
const QUEUE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/**
 * Creates the metrics for Prometheus. Labels have values from fixed lists and from the catalogue, never from callers.
 * Recording one request costs about 6 µs in total.
 * @param errors gets the errors of the metrics, and is itself a metric
 */
export function createTelemetry(errors: InternalErrors = createInternalErrors()): Telemetry {
  const registry = new Registry();
  const metrics = declareIn(registry, errors);
  const methods = {
    ...requestMetrics(metrics, errors),
    ...modelMetrics(metrics),
    ...leaseMetrics(metrics),
    ...journalMetrics(metrics),
    ...selfMetrics(metrics, errors),
    watchProcess: () => collectDefaultMetrics({ register: registry }),
  };
  return {
    ...guarded(methods, errors),
    errors,
    text: () => registry.metrics(),
    snapshot: async () => (await registry.getMetricsAsJSON()) as object[] as MetricSnapshot[],
  };
}

/** The same methods, which do not throw. */
function guarded<T extends Record<string, (...args: never[]) => void>>(methods: T, errors: InternalErrors): T {
  const guard = <A extends never[]>(method: (...args: A) => void) => {
    return (...args: A) => errors.guard("metric", () => method(...args));
  };
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, guard(method)])) as T;
}

function requestMetrics(
  metrics: Metrics,
  errors: InternalErrors,
): Pick<Telemetry, "request" | "requestShed" | "watchBodies"> {
  const { counter, histogram, watchGauge } = metrics;
  const requests = counter("chorus_requests_total", "Requests that have ended.", "transport", "method", "outcome");
  // The alert on defects would miss the first of each method: Prometheus sees no growth in a figure that is new.
  for (const transport of TRANSPORTS)
    for (const method of METHODS) requests.inc({ transport, method, outcome: "internal" }, 0);
  const labels = ["transport", "method"];
  const help = "Time from the arrival of a request to its end.";
  const requestSeconds = histogram("chorus_request_seconds", help, labels, REQUEST_SECONDS);
  const tokens = counter("chorus_tokens_total", "Tokens of settled requests.", "kind");
  const credits = counter("chorus_credits_total", "Credits charged.");
  const shed = counter("chorus_requests_shed_total", "Requests that were refused under overload.", "cause");
  const bodies = new Map<string, () => number>();
  watchGauge(["chorus_body_bytes", "Bytes of request bodies in memory.", "transport"], (write) => {
    for (const [transport, bytes] of bodies) errors.guard("metric", () => write({ transport }, bytes()));
  });
  return {
    requestShed: (cause) => shed.inc({ cause }),
    request({ transport, method, outcome, seconds, inputTokens, outputTokens, cachedTokens, credits: charged }) {
      requests.inc({ transport, method, outcome });
      requestSeconds.observe({ transport, method }, seconds);
      if (inputTokens) tokens.inc({ kind: "input" }, inputTokens);
      if (outputTokens) tokens.inc({ kind: "output" }, outputTokens);
      if (cachedTokens) tokens.inc({ kind: "cached" }, cachedTokens);
      if (charged) credits.inc({}, charged);
    },
    watchBodies: (transport, bytes) => void bodies.set(transport, bytes),
  };
}

function modelMetrics(metrics: Metrics): Pick<Telemetry, "modelCall" | "modelCallRefused" | "watchModels"> {
  const { counter } = metrics;
  const calls = counter("chorus_model_calls_total", "Calls of vendors, retries included.", "model", "tier", "outcome");
  const tokens = counter("chorus_model_tokens_total", "Tokens of calls of vendors.", "model", "tier", "kind", "source");
  const cost = counter(
    "chorus_model_cost_usd_total",
    "Cost of calls of vendors by the catalogue's prices.",
    "model",
    "tier",
    "source",
  );
  const refused = counter("chorus_model_calls_refused_total", "Calls of vendors that were not sent.", "model", "cause");
  let load: Parameters<Telemetry["watchModels"]>[0] = () => [];
  watchStates(metrics, () => load());
  return {
    modelCall({ model, tier, outcome, source, inputTokens, outputTokens, cachedTokens, usd }) {
      calls.inc({ model, tier, outcome });
      tokens.inc({ model, tier, source, kind: "input" }, inputTokens);
      tokens.inc({ model, tier, source, kind: "output" }, outputTokens);
      if (cachedTokens) tokens.inc({ model, tier, source, kind: "cached" }, cachedTokens);
      if (usd !== undefined) cost.inc({ model, tier, source }, usd);
    },
    modelCallRefused: (model, cause) => refused.inc({ model, cause }),
    watchModels(read) {
      load = read;
    },
  };
}

/** The gauges of the models of the catalogue. A model may leave it. */
function watchStates({ watchGauge }: Metrics, load: Parameters<Telemetry["watchModels"]>[0]): void {
  watchGauge(["chorus_model_call_limit", "Calls of a vendor that may run at a time.", "model"], (write) => {
    for (const { model, limit } of load()) if (limit !== undefined) write({ model }, limit);
  });
  watchGauge(["chorus_model_calls", "Calls of a vendor that run or wait.", "model", "state"], (write) => {
    for (const { model, limit, running, waiting } of load()) {
      if (limit === undefined) continue;
      write({ model, state: "running" }, running);
      write({ model, state: "waiting" }, waiting);
    }
  });
  const open = "1 while the circuit breaker stops calls of a model, else 0.";
  watchGauge(["chorus_model_circuit_open", open, "model", "tier", "vendor"], (write) => {
    for (const { model, tier, vendor, isOpen } of load()) write({ model, tier, vendor }, Number(isOpen));
  });
  const disabled = "1 while an operator has disabled a model, else 0.";
  const writeDisabled = (write: (labels: { model: string }, value: number) => void) => {
    for (const { model, isDisabled } of load()) write({ model }, Number(isDisabled));
  };
  watchGauge(["chorus_model_disabled", disabled, "model"], writeDisabled, "average");
  const share = "Share of the requests of the last 30 to 60 seconds for which a model failed, 0 to 1.";
  const writeShares = (write: (labels: { model: string }, value: number) => void) => {
    for (const { model, failedShare } of load()) write({ model }, failedShare);
  };
  watchGauge(["chorus_model_failed_share", share, "model"], writeShares, "average");
  const latency = "Time to first text of the last 100 calls of a model.";
  const writeLatencies = (write: (labels: { model: string; quantile: string }, value: number) => void) => {
    for (const { model, firstTextMs } of load()) {
      if (!firstTextMs) continue;
      write({ model, quantile: "0.5" }, firstTextMs.p50 / 1_000);
      write({ model, quantile: "0.95" }, firstTextMs.p95 / 1_000);
    }
  };
  watchGauge(["chorus_model_first_text_seconds", latency, "model", "quantile"], writeLatencies, "average");
  const failing = "1 while the last call of a model has failed, by the status of the vendor, and who can mend it.";
  watchGauge(["chorus_model_failing", failing, "model", "status", "mended_by"], (write) => {
    for (const { model, failure } of load()) {
      if (!failure) continue;
      write(
        { model, status: `${failure.status ?? "none"}`, mended_by: failure.needsOperator ? "operator" : "wait" },
        1,
      );
    }
  });
  const version = "1 for the version of a model that answered last, as its vendor names it.";
  watchGauge(["chorus_model_version_info", version, "model", "version", "expected"], (write) => {
    for (const { model, served } of load()) {
      if (served) write({ model, version: served.version, expected: served.isExpected ? "yes" : "no" }, 1);
    }
  });
}

function leaseMetrics(metrics: Metrics): Pick<Telemetry, "leaseTaken" | "leaseEnded" | "leaseRefused" | "batch"> {
  const { counter, histogram, watchGauge } = metrics;
  const taken = counter("chorus_leases_taken_total", "Admitted requests.");
  const refused = counter("chorus_leases_refused_total", "Requests that were not admitted, by reason.", "limit");
  let running = 0;
  const help = "Admitted requests of this process that are not settled yet.";
  watchGauge(["chorus_leases_running", help], (write) => write({}, running));
  const size = "Requests admitted or settled in one statement.";
  const sizes = histogram("chorus_batch_size", size, ["stage"], BATCH_SIZES);
  const wait = "Wait of a request for its batch to start.";
  const seconds = histogram("chorus_queue_seconds", wait, ["stage"], QUEUE_SECONDS);
  return {
    leaseTaken() {
      taken.inc({});
      running += 1;
    },
    leaseEnded() {
      running -= 1;
    },
    leaseRefused: (limit) => refused.inc({ limit }),
    batch(stage, waitedMs) {
      sizes.observe({ stage }, waitedMs.length);
      for (const ms of waitedMs) seconds.observe({ stage }, ms / 1_000);
    },
  };
}

function journalMetrics({ counter, watchGauge }: Metrics): Pick<Telemetry, "watchJournal" | "journalFailed"> {
  let watched: { entries: () => number; setAside: () => Record<string, number> } | undefined;
  const waiting = "Settlements that wait on the local disk for the database.";
  watchGauge(["chorus_journal_entries", waiting], (write) => write({}, watched?.entries() ?? 0));
  const setAside = "Lines in the files damaged and refused of the journal, for which nothing is charged.";
  const writeSetAside = (write: (labels: { reason: string }, value: number) => void) => {
    for (const [reason, lines] of Object.entries(watched?.setAside() ?? {})) write({ reason }, lines);
  };
  // Workers share the folder, and each counts all of its lines.
  watchGauge(["chorus_journal_set_aside", setAside, "reason"], writeSetAside, "max");
  const failures = counter(
    "chorus_journal_failures_total",
    "Settlements that neither the database nor the journal took. Their answers were not delivered or are free.",
  );
  return {
    watchJournal(entries, setAside) {
      watched = { entries, setAside };
    },
    journalFailed: (count) => failures.inc({}, count),
  };
}

/** The wait of alerts, and metrics of the metrics and the log themselves. */
function selfMetrics(
  metrics: Metrics,
  errors: InternalErrors,
): Pick<Telemetry, "watchLog" | "watchReferee" | "watchRuns" | "alertWait"> {
  const { watchCounter, watchGauge } = metrics;
  let alertWait = 0;
  const wait = "Longest time for which a workspace with a due alert has waited for an attempt to send it.";
  // The figure is one of the whole service, so workers report the same.
  watchGauge(["chorus_alert_wait_seconds", wait], (write) => write({}, alertWait), "max");
  const caught = "Errors that were caught because they must not affect a request.";
  watchCounter(["chorus_internal_errors_total", caught, "where"], (write) => {
    for (const where of PLACES) write({ where }, errors.counts[where]);
  });
  /** @returns sets what returns the counts of a counter by outcome */
  const byOutcome = (name: string, help: string): Telemetry["watchRuns"] => {
    let counts: Parameters<Telemetry["watchRuns"]>[0] = () => undefined;
    watchCounter([name, help, "outcome"], (write) => {
      for (const [outcome, count] of Object.entries(counts() ?? {})) write({ outcome }, count);
    });
    return (read) => {
      counts = read;
    };
  };
  const answers = "Answers whose drafts disagreed, by what the referee made of them.";
  const watchReferee = byOutcome("chorus_referee_answers_total", answers);
  const watchRuns = byOutcome("chorus_runs_total", "Runs that requests have left, by what became of them.");
  let droppedLines = () => 0;
  const dropped = "Log lines that were dropped because the reader of the log was too slow.";
  watchCounter(["chorus_log_lines_dropped_total", dropped], (write) => write({}, droppedLines()));
  return {
    alertWait(seconds) {
      alertWait = seconds;
    },
    ...{ watchReferee, watchRuns },
    watchLog(lines) {
      droppedLines = lines;
    },
  };
}
