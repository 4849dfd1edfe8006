import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Outcome, Tier } from "./terms.ts";

/** One request that has ended. Tokens and credits are there once it was settled. */
export interface RequestEnd {
  transport: "rest" | "rpc";
  /** `none`: nothing that the service has. */
  method: "generate" | "stream_generate" | "quotas" | "metrics" | "admin" | "none";
  outcome: Outcome;
  seconds: number;
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
  credits?: number;
}

/** One call of a vendor that has ended; each try counts. */
export interface ModelCall {
  /** Name in the catalogue. */
  model: string;
  tier: Tier;
  /** `left`: this side ended it, because the caller had gone or had enough, or for want of time. */
  outcome: "ok" | "failed" | "timed_out" | "left";
  /** Whether the figures are the vendor's own. A call that ended before they came is estimated. */
  source: "reported" | "estimated";
  inputTokens: number;
  /** The part of the input that came from the vendor's cache. */
  cachedTokens: number;
  outputTokens: number;
  /** Undefined where the catalogue has no price. */
  usd: number | undefined;
}

/** What the parts of the service tell the operator's figures. Nothing here waits, throws or keeps more than sums. */
export interface Telemetry {
  request(end: RequestEnd): void;
  modelCall(call: ModelCall): void;
  /** A batch went to the database: how long each of its items had waited for that, in milliseconds. */
  batch(stage: "admission" | "settlement", waitedMs: readonly number[]): void;
  leaseTaken(): void;
  leaseEnded(): void;
  /** @param limit the limit, such as `requests_per_minute`, or the kind of the failure where no limit refused */
  leaseRefused(limit: string): void;
  /** Says how many settlements wait in the journal; asked at each scrape. */
  watchJournal(entries: () => number): void;
  /** Says how many bytes of request bodies a transport holds; asked at each scrape. */
  watchBodies(transport: "rest" | "rpc", bytes: () => number): void;
  /** Adds the figures of the process and its event loop, for the rest of its life. */
  watchProcess(): void;
  /** Every figure in Prometheus' text format (version 0.0.4). */
  text(): Promise<string>;
}

/** Media type of `Telemetry.text`. */
export const TELEMETRY_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Seconds: from a rate limit's refusal to the longest deadline. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
/** Seconds: from an idle database to one that is away. */
const QUEUE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/**
 * Makes the operator's figures. Labels take values from fixed lists and from the catalogue only, never from a caller.
 * All that is recorded of one request costs about 6 µs.
 */
export function createTelemetry(): Telemetry {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers });

  const requests = counter("chorus_requests_total", "Requests that have ended.", ["transport", "method", "outcome"]);
  const requestSeconds = histogram(
    "chorus_request_seconds",
    "Time from a request's arrival to its end.",
    ["transport", "method"],
    REQUEST_SECONDS,
  );
  const tokens = counter("chorus_tokens_total", "Tokens of requests that were admitted.", ["kind"]);
  const credits = counter("chorus_credits_total", "Credits charged.");
  const taken = counter("chorus_leases_taken_total", "Requests that were admitted.");
  const refused = counter("chorus_leases_refused_total", "Requests that were not admitted, by what refused.", [
    "limit",
  ]);
  const running = new Gauge({
    name: "chorus_leases_running",
    help: "Admitted requests of this process that are not settled.",
    registers,
  });
  const batchSize = histogram("chorus_batch_size", "Requests admitted or settled together.", ["stage"], BATCH_SIZES);
  const queueSeconds = histogram("chorus_queue_seconds", "Wait for a batch to start.", ["stage"], QUEUE_SECONDS);
  let journalEntries = () => 0;
  new Gauge({
    name: "chorus_journal_entries",
    help: "Settlements that wait for the database.",
    registers,
    collect() {
      this.set(journalEntries());
    },
  });
  const bodyBytes = new Map<string, () => number>();
  new Gauge({
    name: "chorus_body_bytes",
    help: "Bytes of request bodies that are held.",
    labelNames: ["transport"],
    registers,
    collect() {
      for (const [transport, bytes] of bodyBytes) this.set({ transport }, bytes());
    },
  });
  const calls = counter("chorus_model_calls_total", "Calls of vendors, tries included.", ["model", "tier", "outcome"]);
  const callTokens = counter("chorus_model_tokens_total", "Tokens of calls of vendors.", [
    "model",
    "tier",
    "kind",
    "source",
  ]);
  const cost = counter("chorus_model_cost_usd_total", "What calls cost by the catalogue's prices.", [
    "model",
    "tier",
    "source",
  ]);

  return {
    request({ transport, method, outcome, seconds, ...of }) {
      requests.inc({ transport, method, outcome });
      requestSeconds.observe({ transport, method }, seconds);
      if (of.inputTokens) tokens.inc({ kind: "input" }, of.inputTokens);
      if (of.outputTokens) tokens.inc({ kind: "output" }, of.outputTokens);
      if (of.cachedTokens) tokens.inc({ kind: "cached" }, of.cachedTokens);
      if (of.credits) credits.inc(of.credits);
    },
    modelCall({ model, tier, outcome, source, inputTokens, outputTokens, cachedTokens, usd }) {
      calls.inc({ model, tier, outcome });
      callTokens.inc({ model, tier, source, kind: "input" }, inputTokens);
      callTokens.inc({ model, tier, source, kind: "output" }, outputTokens);
      if (cachedTokens) callTokens.inc({ model, tier, source, kind: "cached" }, cachedTokens);
      if (usd !== undefined) cost.inc({ model, tier, source }, usd);
    },
    batch(stage, waitedMs) {
      batchSize.observe({ stage }, waitedMs.length);
      for (const ms of waitedMs) queueSeconds.observe({ stage }, ms / 1_000);
    },
    leaseTaken() {
      taken.inc();
      running.inc();
    },
    leaseEnded: () => running.dec(),
    leaseRefused: (limit) => refused.inc({ limit }),
    watchJournal(entries) {
      journalEntries = entries;
    },
    watchBodies(transport, bytes) {
      bodyBytes.set(transport, bytes);
    },
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    text: () => registry.metrics(),
  };
}
