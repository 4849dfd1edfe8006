import http from "node:http";
import https from "node:https";

/** Silence after which a call asks whether the server answers at all, and how long that may take, in milliseconds. */
const SILENCE_MS = 20_000;

/** Errors of a server that runs, but takes no new connections: one that stops completes the calls that it has. */
const REFUSALS: readonly unknown[] = ["ECONNREFUSED", "ECONNRESET"];

/** Watches that a server which is silent during a call still lives. */
export interface Silence {
  /** Aborts when the server also leaves another request unanswered, as one does that is frozen or cut off. */
  readonly signal: AbortSignal;
  /** Notes a part of the answer. */
  heard(): void;
  /** Stops to watch. */
  end(): void;
}

/**
 * Begins to watch a call. A long silence alone is no fault: a check of all books, or a model of an operator's own, may
 * need minutes.
 * @param url address of the server
 */
export function watchSilence(url: string): Silence {
  const silence = new AbortController();
  let isSilent = true;
  const timer = setInterval(async () => {
    const wasSilent = isSilent;
    isSilent = true;
    if (wasSilent && !(await answers(url)) && isSilent) silence.abort();
  }, SILENCE_MS);
  return {
    signal: silence.signal,
    heard: () => {
      isSilent = false;
    },
    end: () => clearInterval(timer),
  };
}

/** Whether a server answers a request, no matter how. */
function answers(url: string): Promise<boolean> {
  const { get } = url.startsWith("https:") ? https : http;
  return new Promise((resolve) => {
    const request = get(url, { agent: false, signal: AbortSignal.timeout(SILENCE_MS) }, () => {
      resolve(true);
      request.destroy();
    });
    request.on("error", (error) => resolve("code" in error && REFUSALS.includes(error.code)));
  });
}
