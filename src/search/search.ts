import type { LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import { LinkedAbort, pause, type Signal } from "../concurrency/abort.ts";
import { Breaker, type BreakerOptions, type Requester } from "../concurrency/breaker.ts";
import type { SearchConfig } from "../config/search.ts";
import { Agent, request } from "../names/undici.ts";
import { type Backend, createBackend, type SearchRequest } from "./backends.ts";
import { type SearchResult, tidy } from "./results.ts";
import { SearchError } from "./search-error.ts";

export interface Search {
  /**
   * Searches for a query and returns results for a prompt: at most `results` pages, best first, within `timeoutMs`.
   * An empty query has no results.
   * @param requester the request that the search is for; absent: a request of no workspace
   * @throws SearchError when the search failed; the request can be answered without results then. The reason of
   *   `signal` when that has aborted.
   */
  find(query: string, signal?: Signal, requester?: Requester): Promise<SearchResult[]>;
  /** Closes all connections; running searches fail. */
  close(): Promise<void>;
}

export interface SearchOptions {
  breaker?: BreakerOptions;
  /** Resolves the name of the backend. Default: `dns.lookup` for each connection. */
  lookup?: LookupFunction;
}

/** Most connections. Further searches wait for one, within their timeout. */
const CONNECTIONS = 64;
/** Largest response that is read. A usual response of Brave or SearXNG has about 100 KB. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Wait before the retry of a status 429 without `Retry-After`, in milliseconds. Brave's limits count by the second. */
const RATE_LIMIT_WAIT_MS = 1_000;
/** Shortest wait before the retry of any other failure, in milliseconds; the longest is twice as long. */
const RETRY_WAIT_MS = 200;

/**
 * Connects the configured search backend. Nothing is sent before the first search.
 * @returns undefined if no backend is configured
 */
export function createSearch(config: SearchConfig | undefined, options: SearchOptions = {}): Search | undefined {
  if (!config) return undefined;
  const { timeoutMs, results } = config;
  const backend = createBackend(config);
  const breaker = new Breaker(options.breaker);
  // The agent follows no redirects, because they would send the query and the key to another host.
  const agent = new Agent({
    connections: CONNECTIONS,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 30_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: timeoutMs, ...(options.lookup ? { lookup: options.lookup } : {}) },
  });

  /** Sends a request, and retries it once if the failure is retryable and there is time. */
  async function sendWithRetry(request: SearchRequest, signal: Signal, deadline: number): Promise<SearchResult[]> {
    try {
      return await send(agent, backend, request, results, signal);
    } catch (error) {
      if (!(error instanceof SearchError) || !error.retryable || signal.aborted || agent.destroyed) throw error;
      const wait =
        error.retryAfterMs ?? (error.status === 429 ? RATE_LIMIT_WAIT_MS : RETRY_WAIT_MS * (1 + Math.random()));
      if (performance.now() + wait >= deadline) throw error;
      await pause(wait, signal);
    }
    return send(agent, backend, request, results, signal);
  }

  return {
    async find(query, signal, requester = { workspace: "" }) {
      signal?.throwIfAborted();
      if (query === "") return [];
      const attempt = breaker.begin(requester);
      if (!attempt)
        throw new SearchError("resting", "The search backend failed repeatedly and is not called for a short time.");
      using limited = new LinkedAbort(signal);
      limited.abortAfter(timeoutMs);
      try {
        const found = await sendWithRetry(backend.request(query), limited.signal, performance.now() + timeoutMs);
        attempt.end("ok");
        return found;
      } catch (error) {
        if (signal?.aborted) {
          attempt.end("unknown");
          throw signal.reason;
        }
        const failure = limited.signal.aborted
          ? new SearchError("timed_out", `The search backend did not respond within ${timeoutMs} ms.`)
          : toSearchError(error);
        attempt.end(failure.blamesBackend ? "failed" : "unknown");
        throw failure;
      }
    },
    close: () => agent.destroy(),
  };
}

async function send(
  agent: Agent,
  backend: Backend,
  { method, url, headers, body }: SearchRequest,
  results: number,
  signal: Signal,
): Promise<SearchResult[]> {
  const { origin, pathname, search } = new URL(url);
  let response: Dispatcher.ResponseData;
  let text: string | undefined;
  try {
    response = await request(agent, {
      origin,
      path: pathname + search,
      method,
      headers: { "user-agent": "chorus", ...headers },
      body: body ?? null,
      // undici uses no more of it than a Signal has.
      signal: signal as AbortSignal,
    });
    if (response.statusCode === 200) text = await readText(response.body);
  } catch (error) {
    throw toSearchError(error);
  }
  if (text === undefined) {
    // The body is not read. Without a listener, the end of the connection would be an uncaught error.
    response.body.on("error", () => {}).destroy();
    throw refusal(response, backend);
  }
  const found = backend.read(parse(text));
  if (!found) throw new SearchError("unreadable", "The search backend's response does not have the documented format.");
  return tidy(found, results);
}

/** Reads a body as text. Leaving the loop early closes the connection. */
async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) {
      throw new SearchError("unreadable", `The search backend's response is larger than ${MAX_BODY_BYTES} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Sets no `cause`, because it would quote the text, which may contain the query. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SearchError("unreadable", "The search backend's response is not JSON.");
  }
}

function refusal({ statusCode: status, headers }: Dispatcher.ResponseData, backend: Backend): SearchError {
  const redirect =
    status >= 300 && status < 400 ? "Redirects are not followed. Correct the address of the backend." : undefined;
  const hint = redirect ?? backend.hint?.(status);
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return new SearchError(
    "refused",
    `The search backend answered with status ${status}.${hint === undefined ? "" : ` ${hint}`}`,
    { status, ...(seconds >= 0 ? { retryAfterMs: seconds * 1_000 } : {}) },
  );
}

function toSearchError(error: unknown): SearchError {
  if (error instanceof SearchError) return error;
  const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return new SearchError("unreachable", `The search backend cannot be reached, or the connection failed${code}.`);
}
