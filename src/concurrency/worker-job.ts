import { parentPort, type Transferable, workerData } from "node:worker_threads";
import { Failure, type FailureKind } from "../contract/failure.ts";
import { lowerThread } from "./thread-priority.ts";

/** What a thread sends to its pool: the part of the job that begins now, or the end of the job. */
export type Report<Result> =
  | { kind: "progress"; part: number | undefined }
  | { kind: "done"; result: Result }
  | { kind: "failed"; failure: FailureKind; message: string; field?: string };

/**
 * Serves the jobs of a `WorkerPool` in a worker thread, one at a time. A Failure becomes the failure of the job. Any
 * other error ends the thread, and the job fails as `internal`.
 * @param run does a job; it calls `begin` before each part that has the job's whole timeout. `transfer` are buffers of
 *   the result that move to the main thread; all others are copied.
 */
export function serveJobs<Job, Result>(
  run: (
    job: Job,
    begin: (part: number | undefined) => void,
  ) => Promise<{ result: Result; transfer?: readonly Transferable[] }>,
): void {
  lowerThread(workerData);
  const report = (message: Report<Result>, transfer: readonly Transferable[] = []) =>
    parentPort?.postMessage(message, transfer);
  const begin = (part: number | undefined) => report({ kind: "progress", part });
  parentPort?.on("message", async (job: Job) => {
    // The start of the thread takes processor time, which does not count.
    begin(undefined);
    try {
      const { result, transfer } = await run(job, begin);
      report({ kind: "done", result }, transfer);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { kind: failure, message, field } = error;
      report({ kind: "failed", failure, message, ...(field === undefined ? {} : { field }) });
    }
  });
}

/** The same bytes in a buffer of their own, because a buffer moves to another thread as a whole. */
export function ownBytes(data: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = data;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    ? new Uint8Array(buffer)
    : new Uint8Array(data);
}
