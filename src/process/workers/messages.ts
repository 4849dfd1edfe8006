import type { MetricSnapshot } from "../../telemetry/telemetry.ts";

/** What the primary process prints and stores when a worker is ready. */
export interface WorkerReady {
  restUrl: string;
  rpcUrl: string;
  /** Secrets that this worker has created at this start. */
  secrets: { apiKey?: string; operatorToken?: string };
  /** Path of a link that signs the owner of the first workspace in. */
  signInPath: string | undefined;
  /** Whether the database has no operator token. */
  lacksOperator: boolean;
  /** Whether only the offline models are available. */
  offline: boolean;
  /** False if the probes have found that no model can answer. */
  canAnswer: boolean;
  /** What the probes of the vendors have found, as sentences. */
  problems: readonly string[];
}

export type FromWorker =
  | { type: "ready"; ready: WorkerReady }
  /** The start has failed. `message` is for the operator. */
  | { type: "failed"; message: string }
  /** Asks for the metrics of all workers. */
  | { type: "collect"; id: number }
  | { type: "snapshot"; id: number; metrics: MetricSnapshot[] };

export type FromPrimary =
  /** All workers of the start are ready. */
  | { type: "all_ready" }
  /** Asks to reload the settings. */
  | { type: "reload" }
  /** Asks for the metrics of this worker. */
  | { type: "snapshot"; id: number }
  /** Answers `collect`. Undefined when the metrics could not be added up. */
  | { type: "collected"; id: number; text: string | undefined };

/** Number of the worker's place, from 1. A worker that replaces another one gets its place. */
export const PLACE_VARIABLE = "CHORUS_WORKER_PLACE";

/** Set for workers that use the embedded Postgres, which the primary process starts. */
export const EMBEDDED_VARIABLE = "CHORUS_WORKER_EMBEDDED";

/** Set for a worker that replaces another one. */
export const REPLACES_VARIABLE = "CHORUS_WORKER_REPLACES";
