import type { Env } from "./config-error.ts";
import { integer, oneOf } from "./values.ts";

/** Whether requests leave runs, and how many are kept. */
export interface RunsConfig {
  isOn: boolean;
  /** Age at which they are deleted, in days. */
  days: number;
  /** Most runs of one workspace on one day (UTC). */
  perDay: number;
}

/** @throws ConfigError naming the variable, what was expected and what to do */
export function readRuns(env: Env): RunsConfig {
  return {
    isOn: oneOf(env, "CHORUS_RUNS", ["on", "off"]) === "on",
    days: integer(env, "CHORUS_RUN_RETENTION_DAYS", 30, 1, 400),
    perDay: integer(env, "CHORUS_RUNS_PER_DAY", 100_000, 1, 100_000_000),
  };
}
