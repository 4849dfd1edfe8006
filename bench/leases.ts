import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Leases taken and settled by a number of callers at once. */
export interface LeaseLoad {
  concurrency: number;
  /** Pairs of taking and settling, per second. */
  rate: number;
  /** Mean size of the admissions' batches. */
  batch: number;
  /** Milliseconds for a pair. */
  p50: number;
  p99: number;
  /** Processor time for a pair, in microseconds. */
  serviceMicros: number;
  postgresMicros: number;
  /** Bytes of Postgres' write-ahead log for a pair. */
  walBytes: number;
}

/** Runs the measurement of leases in a process of its own, which pins itself to one core. */
export async function measureLeases(signal: AbortSignal): Promise<LeaseLoad[]> {
  const script = fileURLToPath(new URL("lease.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json"], { signal });
  const results: LeaseLoad[] = JSON.parse(stdout.trim().split("\n").at(-1) ?? "[]");
  for (const { concurrency, rate } of results) console.log(`  ${concurrency} at once: ${Math.round(rate)}/s`);
  return results;
}
