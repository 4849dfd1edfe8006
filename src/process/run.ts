import { once } from "node:events";
import { lowerEngineThreads } from "../concurrency/thread-priority.ts";
import { type Config, envToConfig } from "../config/config.ts";
import { readResources, resourceWarnings } from "../config/resources.ts";
import { openLog, type ProcessLog } from "../telemetry/log.ts";
import { handleErrors, stopSignal } from "./shutdown.ts";

/**
 * Starts everything in order. Disposing the result stops everything in reverse order.
 * @param stopping aborts the start: what was started is stopped again, and the reason of the signal is thrown
 */
export type Start = (config: Config, log: ProcessLog, stopping: AbortSignal) => Promise<AsyncDisposable>;

interface RunOptions {
  /** Number of the worker, if this process is one of several. */
  worker?: number | undefined;
  /** Reports why the start has failed to the process that prints it. Default: prints it. */
  failed?: ((message: string) => Promise<void>) | undefined;
}

/** Runs a process of the service until a stop signal. @returns the exit code */
export async function run(host: NodeJS.Process, start: Start, { worker, failed }: RunOptions = {}): Promise<number> {
  let stopping: AbortSignal | undefined;
  let running: AsyncDisposable;
  try {
    const resources = readResources();
    const config = envToConfig(host.env, resources);
    const processLog = openLog(config.logLevel, host.stderr, worker === undefined ? null : { worker });
    if (worker === undefined) for (const warning of resourceWarnings(resources)) processLog.log.warn(warning);
    handleErrors(host, processLog);
    lowerEngineThreads();
    stopping = stopSignal(host, processLog.log);
    running = await start(config, processLog, stopping);
  } catch (error) {
    if (stopping?.aborted) return 0;
    // Errors of the start are for the operator, so the full message is printed.
    if (failed) await failed(messageOf(error));
    else host.stderr.write(`Chorus cannot start. ${messageOf(error)}\n`);
    return 1;
  }
  if (!stopping.aborted) await once(stopping, "abort");
  try {
    await running[Symbol.asyncDispose]();
    return 0;
  } catch (error) {
    host.stderr.write(`Chorus did not stop cleanly. ${messageOf(error)}\n`);
    return 1;
  }
}

/** The message of an error; of several errors, which disposal nests, that of the first. */
function messageOf(error: unknown): string {
  if (error instanceof SuppressedError) return messageOf(error.suppressed);
  return error instanceof Error ? error.message : String(error);
}
