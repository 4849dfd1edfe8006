import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { createInternalErrors, type InternalErrors, PLACES } from "./internal-errors.ts";
import type { Outcome, Tier } from "./terms.ts";

/** A request that has ended. Tokens and credits are set if the request was settled. */
export interface RequestEnd {
  transport: "rest" | "rpc";
  /** `none`: the path or method does not exist. */
  method: "generate" | "stream_generate" | "quotas" | "metrics" | "admin" | "none";
  outcome: Outcome;
  seconds: number;
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
  credits?: number;
}

/** A call of a vendor that has ended. Each retry is a call. */
export interface CallRecord {
  /** Name in the catalogue. */
  model: string;
  tier: Tier;
  /** `left`: the service ended the call, because the caller left, needed no more, or the time was up. */
  outcome: "ok" | "failed" | "timed_out" | "left";
  /** Whether the vendor reported the tokens, or they are estimated because the call ended before the report. */
  source: "reported" | "estimated";
  inputTokens: number;
  /** The part of the input tokens that came from the vendor's cache. */
  cachedTokens: number;
  /** Including thinking. */
  outputTokens: number;
  /** The part of the output tokens that is thinking. */
  thinkingTokens: number;
  /** Cost in USD; undefined if the catalogue has no price. */
  usd: number | undefined;
}

/**
 * What the service refused or gave up, or why, to protect itself. `journal`: neither the database nor the disk can
 * record answers. `event_loop`: the event loop is late, and the request's workspace sends most requests. `connections`:
 * as many connections are open as the limit on open files allows. `workspace_connections`: a request of a workspace
 * that uses most of them. `idle_connection`: one that was closed for a new one. `body_memory`: a body that did not fit
 * into the memory. `body_aborted`: an arriving body whose memory another workspace needed. `slow_body`: one that was
 * late. `administration`: a workspace sends too many reports or calls of its owner.
 */
export type ShedCause =
  | "journal"
  | "event_loop"
  | "connections"
  | "workspace_connections"
  | "idle_connection"
  | "body_memory"
  | "body_aborted"
  | "slow_body"
  | "administration";

/** Collects the metrics of the process for Prometheus. No method waits or throws, and none stores more than sums. */
export interface Telemetry {
  request(end: RequestEnd): void;
  modelCall(call: CallRecord): void;
  /** @param cause why a call of a vendor was not sent: `full`, `late`, `connections` or `descriptors` */
  modelCallRefused(model: string, cause: string): void;
  /** @param load returns the limit of calls at a time of each model, and its calls; called at each scrape */
  watchModels(load: () => ReadonlyArray<{ model: string; limit: number; running: number; waiting: number }>): void;
  /**
   * Records a batch that was sent to the database.
   * @param waitedMs how long each item of the batch waited before, in milliseconds
   */
  batch(stage: "admission" | "settlement", waitedMs: readonly number[]): void;
  leaseTaken(): void;
  leaseEnded(): void;
  /** @param limit the limit that refused, such as `requests_per_minute`; otherwise the kind of the failure */
  leaseRefused(limit: string): void;
  /**
   * Reports the journal.
   * @param entries returns the number of settlements that wait in it; called at each scrape
   * @param setAside the number of its lines that are set aside, by reason; read at each scrape
   */
  watchJournal(entries: () => number, setAside: Readonly<Record<"damaged" | "refused", number>>): void;
  /** @param count number of settlements that neither the database nor the journal took; nothing is charged for them */
  journalFailed(count: number): void;
  /** A request or connection that was refused with 503. @param cause what has run out or what there is too much of */
  requestShed(cause: ShedCause): void;
  /** @param bytes returns the bytes of request bodies that the transport holds; called at each scrape */
  watchBodies(transport: "rest" | "rpc", bytes: () => number): void;
  /** Adds the metrics of the process and its event loop; they are collected until the process ends. */
  watchProcess(): void;
  /** @param droppedLines returns the number of log lines that were dropped; called at each scrape */
  watchLog(droppedLines: () => number): void;
  /** Catches and counts errors of code that must not affect a request. */
  readonly errors: InternalErrors;
  /** All metrics in Prometheus' text format, version 0.0.4. */
  text(): Promise<string>;
}

/** Media type of `Telemetry.text`. */
export const TELEMETRY_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/**
 * Creates the metrics for Prometheus. Labels have values from fixed lists and from the catalogue, never from callers.
 * Recording one request costs about 6 µs in total.
 * @param errors gets the errors of the metrics, and is itself a metric
 */
export function createTelemetry(errors: InternalErrors = createInternalErrors()): Telemetry {
  const registry = new Registry();
  const methods = {
    ...requestMetrics(registry),
    ...modelMetrics(registry),
    ...limitMetrics(registry, errors),
    ...leaseMetrics(registry),
    ...queueMetrics(registry),
    ...journalMetrics(registry, errors),
    ...bodyMetrics(registry, errors),
    ...selfMetrics(registry, errors),
    watchProcess: () => collectDefaultMetrics({ register: registry }),
  };
  return { ...guarded(methods, errors), errors, text: () => registry.metrics() };
}

/** The same methods, which do not throw. */
function guarded<T extends Record<string, (...args: never[]) => void>>(methods: T, errors: InternalErrors): T {
  const guard = <A extends never[]>(method: (...args: A) => void) => {
    return (...args: A) => errors.guard("metric", () => method(...args));
  };
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, guard(method)])) as T;
}

/** Buckets in seconds, from a request refused by a rate limit to the longest deadline. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
/** Buckets in seconds, from an idle database to an unavailable one. */
const QUEUE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

function requestMetrics(registry: Registry): Pick<Telemetry, "request" | "requestShed"> {
  const requests = counter(registry, "chorus_requests_total", "Requests that have ended.", [
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
  const tokens = counter(registry, "chorus_tokens_total", "Tokens of settled requests.", ["kind"]);
  const credits = counter(registry, "chorus_credits_total", "Credits charged.");
  const shed = counter(registry, "chorus_requests_shed_total", "Requests that were refused under overload.", ["cause"]);
  return {
    requestShed: (cause) => shed.inc({ cause }),
    request({ transport, method, outcome, seconds, ...end }) {
      requests.inc({ transport, method, outcome });
      requestSeconds.observe({ transport, method }, seconds);
      if (end.inputTokens) tokens.inc({ kind: "input" }, end.inputTokens);
      if (end.outputTokens) tokens.inc({ kind: "output" }, end.outputTokens);
      if (end.cachedTokens) tokens.inc({ kind: "cached" }, end.cachedTokens);
      if (end.credits) credits.inc(end.credits);
    },
  };
}

function modelMetrics(registry: Registry): Pick<Telemetry, "modelCall"> {
  const calls = counter(registry, "chorus_model_calls_total", "Calls of vendors, retries included.", [
    "model",
    "tier",
    "outcome",
  ]);
  const tokens = counter(registry, "chorus_model_tokens_total", "Tokens of calls of vendors.", [
    "model",
    "tier",
    "kind",
    "source",
  ]);
  const cost = counter(registry, "chorus_model_cost_usd_total", "Cost of calls of vendors by the catalogue's prices.", [
    "model",
    "tier",
    "source",
  ]);
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

function limitMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "modelCallRefused" | "watchModels"> {
  const registers = [registry];
  const refused = counter(registry, "chorus_model_calls_refused_total", "Calls of vendors that were not sent.", [
    "model",
    "cause",
  ]);
  let load: Parameters<Telemetry["watchModels"]>[0] = () => [];
  new Gauge({
    name: "chorus_model_call_limit",
    help: "Calls of a vendor that may run at a time.",
    labelNames: ["model"],
    registers,
    collect() {
      errors.guard("metric", () => {
        for (const { model, limit } of load()) this.set({ model }, limit);
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
        for (const { model, running, waiting } of load()) {
          this.set({ model, state: "running" }, running);
          this.set({ model, state: "waiting" }, waiting);
        }
      });
    },
  });
  return {
    modelCallRefused: (model, cause) => refused.inc({ model, cause }),
    watchModels(read) {
      load = read;
    },
  };
}

function leaseMetrics(registry: Registry): Pick<Telemetry, "leaseTaken" | "leaseEnded" | "leaseRefused"> {
  const taken = counter(registry, "chorus_leases_taken_total", "Admitted requests.");
  const refused = counter(registry, "chorus_leases_refused_total", "Requests that were not admitted, by reason.", [
    "limit",
  ]);
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

function queueMetrics(registry: Registry): Pick<Telemetry, "batch"> {
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

function journalMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "watchJournal" | "journalFailed"> {
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

function bodyMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "watchBodies"> {
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

/** Metrics of the metrics and the log themselves. Their figures are read at each scrape. */
function selfMetrics(registry: Registry, errors: InternalErrors): Pick<Telemetry, "watchLog"> {
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

function counter<L extends string>(registry: Registry, name: string, help: string, labelNames: readonly L[] = []) {
  return new Counter({ name, help, labelNames, registers: [registry] });
}
