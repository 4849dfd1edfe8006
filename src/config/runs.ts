import { ConfigError, type Env } from "./config-error.ts";
import { integer, list, oneOf } from "./values.ts";

/** Whether requests leave runs, and how many are kept. */
export interface RunsConfig {
  isOn: boolean;
  /** Age at which they are deleted, in days. */
  days: number;
  /** Most runs of one workspace on one day (UTC). */
  perDay: number;
  /** Keys of 32 bytes for the text of runs. The first encrypts, all decrypt. Empty: no text is kept. */
  textKeys: readonly Uint8Array[];
  /** Most encrypted text of one workspace on one day (UTC), in bytes. */
  textBytesPerDay: number;
}

const KEY_BYTES = 32;
const MEGABYTE = 1_000_000;

/** @throws ConfigError naming the variable, what was expected and what to do */
export function readRuns(env: Env): RunsConfig {
  const isOn = oneOf(env, "CHORUS_RUNS", ["on", "off"]) === "on";
  const textKeys = readKeys(env, "CHORUS_RUN_TEXT_KEY");
  if (!isOn && textKeys.length > 0)
    throw new ConfigError("CHORUS_RUN_TEXT_KEY needs runs. Unset CHORUS_RUNS, or unset CHORUS_RUN_TEXT_KEY.");
  return {
    isOn,
    days: integer(env, "CHORUS_RUN_RETENTION_DAYS", 30, 1, 400),
    perDay: integer(env, "CHORUS_RUNS_PER_DAY", 100_000, 1, 100_000_000),
    textKeys,
    textBytesPerDay: integer(env, "CHORUS_RUN_TEXT_MB_PER_DAY", 1_000, 1, 1_000_000) * MEGABYTE,
  };
}

/** Reads keys in base64, separated by commas. Messages do not quote them. */
function readKeys(env: Env, name: string): Uint8Array[] {
  return list(env, name).map((part) => {
    const key = Buffer.from(part, "base64");
    // Node ignores what is not base64.
    if (key.length === KEY_BYTES && key.toString("base64") === part) return key;
    throw new ConfigError(
      `${name} must be a key of ${KEY_BYTES} random bytes in base64, or several separated by commas, the newest ` +
        "first. Make one with: openssl rand -base64 32",
    );
  });
}
