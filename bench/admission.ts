import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Requests that are admitted and settled, without models and without a transport. */
export interface AdmissionLoad {
  /** What comes: "64 callers of one workspace". */
  name: string;
  /** Requests per second. */
  rate: number;
  /** Mean number of settlements in a statement. */
  batch: number;
  /** Time that admission and settlement take of a request, in milliseconds. */
  p50: number;
  p99: number;
  /** CPU time per request, in microseconds. */
  serviceMicros: number;
  postgresMicros: number;
  /** Size of the write-ahead log per request, in bytes. */
  walBytes: number;
}

/** The load with a rate that does not fill the machine, for the goals. */
export const STEADY = "200 requests/s over 1,000 workspaces";

/** Runs bench/admit.ts in a separate process, pinned to one core: each load for `seconds`. */
export async function measureAdmission(seconds: number, signal: AbortSignal): Promise<AdmissionLoad[]> {
  const script = fileURLToPath(new URL("admit.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--json", "--seconds", String(seconds)], {
    signal,
  });
  const results: AdmissionLoad[] = JSON.parse(stdout.trim().split("\n").at(-1) ?? "[]");
  for (const { name, serviceMicros, postgresMicros } of results)
    console.log(`  ${name}: ${Math.round(serviceMicros)} + ${Math.round(postgresMicros)} µs`);
  return results;
}
