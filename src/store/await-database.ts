import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Failure } from "../contract/failure.ts";
import type { Log } from "../telemetry/log.ts";
import { OutdatedSchema } from "./migrate.ts";
import { isUnavailable } from "./pool.ts";
import { tlsOf } from "./tls.ts";

/** First and longest pause between two tries, in milliseconds. Each pause is 50 % to 100 % of its value, at random. */
const PAUSE_MS = { first: 250, longest: 4_000 };

/** Shortest time between two lines in the log, in milliseconds. */
const LINE_MS = 5_000;

export interface Waiting {
  url: string;
  log: Log;
  /** Ends the wait. */
  signal: AbortSignal;
}

/**
 * Runs `run` until it succeeds, for as long as the database is unavailable or its schema is outdated; there is no
 * longest wait. Logs why it waits, at most every five seconds.
 * @throws the reason of the signal; any error that waiting does not change
 */
export async function whenAvailable<T>(run: () => Promise<T>, { url, log, signal }: Waiting): Promise<T> {
  const since = performance.now();
  let nextLine = since;
  for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.longest)) {
    signal.throwIfAborted();
    try {
      return await orAborted(run(), signal);
    } catch (error) {
      signal.throwIfAborted();
      const isOutdated = error instanceof OutdatedSchema;
      if (!isOutdated && !isUnavailable(error)) throw error;
      const now = performance.now();
      if (now >= nextLine) {
        nextLine = now + LINE_MS;
        const waited = Math.round((now - since) / 1_000);
        const facts = { ...addressOf(url), reason: reasonOf(error), waited_s: waited };
        log.warn(facts, isOutdated ? WAITING_FOR_SCHEMA : WAITING);
      }
    }
    // An aborted sleep throws an error of its own, with the reason as its cause.
    await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
  }
}

const WAITING = "waiting for the database; check DATABASE_URL, and that the server is running";
const WAITING_FOR_SCHEMA = "waiting until the schema of the database is up to date";

/** Rejects at once when the signal aborts, although `result` is still pending. */
async function orAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([result, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/**
 * Where the server is. Contains no user and no password. Empty while a file of a certificate is missing, because it is
 * renewed; the pool keeps the text that it read last.
 */
function addressOf(url: string): { host?: string; port?: number; database?: string | undefined } {
  try {
    const { host, port, database } = new pg.Client(tlsOf(url));
    return { host, port, database };
  } catch {
    return {};
  }
}

/**
 * A failure of the pool says nothing of the database, but its cause does. An error of several addresses of one host has
 * no message. Messages of connections contain no password.
 */
function reasonOf(error: unknown): string {
  const { message, code } = ((error instanceof Failure && error.cause) || error) as NodeJS.ErrnoException;
  return message || (code ?? "unknown");
}
