import type { Outcome } from "../contract/terms.ts";
import type { ModelState } from "../models/port/entry.ts";
import type { CallRecord } from "../models/port/model.ts";
import type { InternalErrors } from "./internal-errors.ts";

export const TRANSPORTS = ["rest", "rpc"] as const;

/** Names of methods in metrics. `none`: the path or method does not exist. */
export const METHODS = [
  ...["generate", "stream_generate", "chat_completions", "responses", "messages", "count_tokens"],
  ...["models", "outcome", "generation", "quotas", "metrics", "admin", "none"],
] as const;

/** A request that has ended. Tokens and credits are set if the request was settled. */
export interface RequestEnd {
  transport: (typeof TRANSPORTS)[number];
  method: (typeof METHODS)[number];
  outcome: Outcome;
  seconds: number;
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
  credits?: number;
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
  /** @param load returns the state of each model; called at each scrape */
  watchModels(load: () => readonly ModelState[]): void;
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
   * @param setAside returns the number of its lines that are set aside, by reason; called at each scrape
   */
  watchJournal(entries: () => number, setAside: () => Readonly<Record<"damaged" | "refused", number>>): void;
  /** @param count number of settlements that neither the database nor the journal took; nothing is charged for them */
  journalFailed(count: number): void;
  /** @param seconds longest time for which a workspace with a due alert has waited for an attempt to send it */
  alertWait(seconds: number): void;
  /** A request or connection that was refused with 503. @param cause what has run out or what there is too much of */
  requestShed(cause: ShedCause): void;
  /** @param bytes returns the bytes of request bodies that the transport holds; called at each scrape */
  watchBodies(transport: "rest" | "rpc", bytes: () => number): void;
  /** Adds the metrics of the process and its event loop; they are collected until the process ends. */
  watchProcess(): void;
  /** @param counts returns what became of answers for the referee, or undefined without one; called at each scrape */
  watchReferee(counts: () => Readonly<Record<string, number>> | undefined): void;
  /** @param counts returns what became of runs, or undefined if none are kept; called at each scrape */
  watchRuns(counts: () => Readonly<Record<string, number>> | undefined): void;
  /** @param droppedLines returns the number of log lines that were dropped; called at each scrape */
  watchLog(droppedLines: () => number): void;
  /** Catches and counts errors of code that must not affect a request. */
  readonly errors: InternalErrors;
  /** All metrics in Prometheus' text format, version 0.0.4. */
  text(): Promise<string>;
  /** All metrics, to be summed over processes. */
  snapshot(): Promise<MetricSnapshot[]>;
}

/** One metric with its values, as prom-client writes it. It can be sent to another process. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  readonly values: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}
