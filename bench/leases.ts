import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Leases that a number of concurrent callers open and settle. */
export interface LeaseLoad {
  concurrency: number;
  /** Leases per second. */
  rate: number;
  /** Mean number of settlements in a statement. */
  batch: number;
  /** Time of a lease from opening to settlement, in milliseconds. */
  p50: number;
  p99: number;
  /** CPU time per lease, in microseconds. */
  serviceMicros: number;
  postgresMicros: number;
  /** Size of the write-ahead log per lease, in bytes. */
  walBytes: number;
}

/** Runs bench/lease.ts in a separate process, pinned to one core: `seconds` with each number of callers. */
export async function measureLeases(seconds: number, signal: AbortSignal): Promise<LeaseLoad[]> {
  const script = fileURLToPath(new URL("lease.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json", "--seconds", String(seconds)], {
    signal,
  });
  const results: LeaseLoad[] = JSON.parse(stdout.trim().split("\n").at(-1) ?? "[]");
  for (const { concurrency, rate } of results) console.log(`  ${concurrency} callers: ${Math.round(rate)}/s`);
  return results;
}
