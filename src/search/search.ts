import { setTimeout as sleep } from "node:timers/promises";
import { Agent, type Dispatcher } from "undici";
import { LinkedAbort } from "../abort.ts";
import { type BreakerOptions, createBreaker } from "../breaker.ts";
import type { SearchConfig } from "../config/search.ts";
import { type Backend, createBackend, type SearchRequest } from "./backends.ts";
import { type SearchResult, tidy } from "./results.ts";
import { SearchError } from "./search-error.ts";

/** Searches the web. */
export interface Search {
  /**
   * What the backend finds for a query, ready for a prompt: at most `results` pages, best first. An empty query finds nothing.
   * It takes no longer than `timeoutMs`.
   * @throws SearchError, and nothing else but the reason of `signal`; an answer can always be given without the results.
   */
  find(query: string, signal?: AbortSignal): Promise<SearchResult[]>;
  /** Closes all connections; searches under way fail. */
  close(): Promise<void>;
}

export interface SearchOptions {
  /** Default: three failures in a row rest the backend for ten seconds. */
  breaker?: BreakerOptions;
}

/** Searches at one time; further ones wait for a connection, within their own time. */
const CONNECTIONS = 64;
/** Longest answer that is read. Brave's 20 results with all their extras are about 100 KB, a page of SearXNG as much. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Waits before the second try where the backend names none. Brave's limits count by the second. */
const LIMITED_MS = 1_000;
const BROKEN_MS = 200;

/** Connects the configured backend; nothing is sent before the first search. Undefined: none is configured. */
export function createSearch(config: SearchConfig | undefined, options: SearchOptions = {}): Search | undefined {
  if (!config) return undefined;
  const { timeoutMs, results } = config;
  const backend = createBackend(config);
  const breaker = createBreaker({ failures: 3, ...options.breaker });
  // Redirects are not followed: they would take query and key to another host.
  const agent = new Agent({
    connections: CONNECTIONS,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 30_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: timeoutMs },
  });

  /** Asks once more where that may help and time is left. */
  async function ask(request: SearchRequest, signal: AbortSignal, deadline: number): Promise<SearchResult[]> {
    try {
      return await askOnce(agent, backend, request, results, signal);
    } catch (error) {
      if (!(error instanceof SearchError) || !error.retryable || signal.aborted || agent.destroyed) throw error;
      const wait = error.retryAfterMs ?? (error.status === 429 ? LIMITED_MS : BROKEN_MS * (1 + Math.random()));
      if (performance.now() + wait >= deadline) throw error;
      await sleep(wait, undefined, { signal });
    }
    return askOnce(agent, backend, request, results, signal);
  }

  return {
    async find(query, signal) {
      signal?.throwIfAborted();
      if (query === "") return [];
      if (!breaker.pass()) throw new SearchError("resting", "The search backend failed too often and is left alone.");
      using limited = new LinkedAbort(signal);
      limited.abortAfter(timeoutMs);
      try {
        const found = await ask(backend.request(query), limited.signal, performance.now() + timeoutMs);
        breaker.succeed();
        return found;
      } catch (error) {
        if (signal?.aborted) {
          breaker.release();
          throw signal.reason;
        }
        const failure = limited.signal.aborted
          ? new SearchError("timed_out", `The search backend gave no answer within ${timeoutMs} ms.`)
          : toSearchError(error);
        if (failure.blamesBackend) breaker.fail();
        else breaker.release();
        throw failure;
      }
    },
    close: () => agent.destroy(),
  };
}

async function askOnce(
  agent: Agent,
  backend: Backend,
  { method, url, headers, body }: SearchRequest,
  results: number,
  signal: AbortSignal,
): Promise<SearchResult[]> {
  const { origin, pathname, search } = new URL(url);
  let response: Dispatcher.ResponseData;
  let text: string | undefined;
  try {
    response = await agent.request({
      origin,
      path: pathname + search,
      method,
      headers: { "user-agent": "chorus", ...headers },
      body: body ?? null,
      signal,
    });
    if (response.statusCode === 200) text = await readText(response.body);
  } catch (error) {
    throw toSearchError(error);
  }
  if (text === undefined) {
    // Whatever it says is of no use; without a listener, the end of the connection would be an uncaught error.
    response.body.on("error", () => {}).destroy();
    throw refusal(response, backend);
  }
  const found = backend.read(parse(text));
  if (!found) throw new SearchError("unreadable", "The search backend's answer is not of its documented format.");
  return tidy(found, results);
}

/** Leaving the loop early closes the connection. */
async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) {
      throw new SearchError("unreadable", `The search backend's answer is larger than ${MAX_BODY_BYTES} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** No cause: it would quote the text, which may hold the query. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SearchError("unreadable", "The search backend's answer is not JSON.");
  }
}

function refusal({ statusCode: status, headers }: Dispatcher.ResponseData, backend: Backend): SearchError {
  const redirect = status >= 300 && status < 400 ? "Redirects are not followed; correct its address." : undefined;
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
  return new SearchError("unreachable", `The search backend cannot be reached, or the connection broke${code}.`);
}
