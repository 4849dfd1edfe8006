import type { InFlight } from "../generate/in-flight.ts";
import { errorFacts, type Log, type ProcessLog } from "../telemetry/log.ts";
import type { Listener } from "../transport/socket/listen.ts";

/** Time for connections to close after the last request has ended, in milliseconds. */
const CLOSE_MS = 1_000;
/**
 * npm repeats a terminal's Ctrl-C. A signal within this time is such a repetition; a later one ends the process at
 * once.
 */
const REPEAT_MS = 1_000;
/** How often a service that npm started checks whether npm still runs, in milliseconds. */
const PARENT_MS = 500;
/** Longest wait for the reader of the log when the process ends, in milliseconds. */
const FLUSH_MS = 1_000;

/**
 * Decides what an error does that no code has caught. A rejected promise that nothing awaits is counted and logged: its
 * own work is lost, nothing else is affected. An uncaught exception ends the process, because it may have left any code
 * half done; the log is written before.
 * @param host the process of the service
 */
export function handleErrors(host: NodeJS.Process, { log, errors, output }: ProcessLog): void {
  host.on("unhandledRejection", (reason) => errors.add("promise", reason));
  host.on("uncaughtException", (error) => {
    // Makes room for the last line.
    output.flush(FLUSH_MS);
    log.fatal({ cause: errorFacts(error) }, "stopping because of an uncaught exception");
    host.exit(1);
  });
  host.on("exit", () => output.flush(FLUSH_MS));
}

/**
 * Aborts at the first SIGTERM or SIGINT, or when the npm that started the service has ended. A second signal ends the
 * process with exit code 1.
 * @param host the process of the service
 */
export function stopSignal(host: NodeJS.Process, log: Log): AbortSignal {
  const stopping = new AbortController();
  let since = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) {
      if (performance.now() - since > REPEAT_MS) host.exit(1);
      return;
    }
    since = performance.now();
    log.info({ signal }, "stopping");
    stopping.abort();
  };
  host.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  // npm sends SIGTERM to its shell only, which ends without passing it on. The service then gets another parent
  // process.
  const parent = host.env.npm_lifecycle_event ? host.ppid : undefined;
  const checkParent = () => {
    if (host.ppid !== parent && !stopping.signal.aborted) onSignal("SIGTERM");
  };
  if (parent !== undefined) setInterval(checkParent, PARENT_MS).unref();
  return stopping.signal;
}

/**
 * Stops servers gracefully: they refuse new requests, requests in flight get `drainMs` to finish, then connections are
 * closed. Resolves when every connection has ended.
 */
export async function drainServers(servers: readonly Listener[], inFlight: InFlight, drainMs: number): Promise<void> {
  for (const server of servers) server.drain();
  await inFlight.drain(drainMs);
  const timer = setTimeout(() => {
    for (const server of servers) server.destroy();
  }, CLOSE_MS);
  await Promise.all(servers.map((server) => server.close()));
  clearTimeout(timer);
  // A request whose connection was destroyed still has to be settled.
  await inFlight.drain(0);
}
