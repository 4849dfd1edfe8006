import { setTimeout as sleep } from "node:timers/promises";
import { isUnavailable, type Pool } from "../store/pool.ts";
import type { InternalErrors } from "../telemetry/internal-errors.ts";

/** A version of a model that answers, as fingerprints of the entry without and with the version. */
export interface NotedVersion {
  readonly entry: string;
  readonly served: string;
}

/** Tells the database which version of each model answers, for all replicas. */
export interface VersionNotes {
  /** Takes a version that answers now. Returns at once and never throws. */
  note(model: string, version: NotedVersion): void;
  stop(): Promise<void>;
}

/** Shortest time between two writes of a model, in ms, also where its vendor changes versions with each call. */
const WRITE_MS = 5_000;

/** A version that could not be written is tried again. */
export function startVersionNotes(pool: Pick<Pool, "query">, errors: InternalErrors): VersionNotes {
  const stopping = new AbortController();
  const { signal } = stopping;
  /** Versions that are not written yet, by model. */
  const waiting = new Map<string, NotedVersion>();
  const running = new Map<string, Promise<void>>();

  async function work(model: string): Promise<void> {
    for (let version = waiting.get(model); version && !signal.aborted; version = waiting.get(model)) {
      try {
        await pool.query("select note_version($1, $2, $3)", [model, version.entry, version.served]);
        if (waiting.get(model) === version) waiting.delete(model);
      } catch (error) {
        if (!isUnavailable(error)) errors.add("learning", error);
      }
      await sleep(WRITE_MS, undefined, { signal }).catch(() => undefined);
    }
    running.delete(model);
  }

  return {
    note(model, version) {
      waiting.set(model, version);
      if (!running.has(model)) running.set(model, work(model));
    },
    async stop() {
      stopping.abort();
      await Promise.all(running.values());
    },
  };
}
