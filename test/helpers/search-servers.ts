import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SearchBackend, SearchConfig } from "../../src/config/search.ts";

/** One page of a scripted backend; `extra` are Brave's extra snippets. */
export interface ScriptedPage {
  title?: string;
  url?: string;
  text?: string;
  extra?: readonly string[];
  /** Date in the backend's format. */
  published?: string;
}

/** One scripted answer. Without any field: two pages, `FOUND`. */
export interface SearchReply {
  pages?: readonly ScriptedPage[];
  /** Default: 200. Any other status has an error of the backend as its body. */
  status?: number;
  headers?: Record<string, string>;
  /** Body in place of the backend's format. */
  raw?: string;
  /** Wait before the headers, in milliseconds. */
  headersMs?: number;
  /**
   * How the reply ends. `whole` (default): completely; `silent`: without headers; `hang`: after half of the body, with
   * the connection open; `reset`: after half of the body, with a broken connection; `endless`: never.
   */
  end?: "whole" | "silent" | "hang" | "reset" | "endless";
}

export type SearchScript = SearchReply | ((call: SearchCall) => SearchReply);

/** One request as the backend received it. */
export interface SearchCall {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** The search query, from the URL or the body. */
  query: string;
  /** `answered` once the whole reply is out, `aborted` once the caller has closed the connection before that. */
  ended: Promise<"answered" | "aborted">;
}

export interface SearchServer {
  backend: SearchBackend;
  /** Address without a path. */
  url: string;
  calls: SearchCall[];
  /** Queues one script for each of the next calls. Later calls use the default script. */
  reply(...scripts: SearchScript[]): void;
  /** Changes the default script. */
  always(script: SearchScript): void;
  /** Number of open connections. */
  readonly connections: number;
  /** Returns a configuration that uses this server. */
  config(overrides?: Partial<SearchConfig>): SearchConfig;
  /** Environment of a service that uses this server. */
  env: Record<string, string>;
  close(): Promise<void>;
}

/** The API key that the scripted backends require. */
export const SEARCH_KEY = "search-secret-key";

/** Pages that are found unless the script has others. */
export const FOUND: readonly ScriptedPage[] = [
  { title: "First page", url: "https://one.example/a", text: "The first page tells of apples and their many kinds." },
  { title: "Second page", url: "https://two.example/b", text: "Quite another text, which is about pears." },
];

interface Wire {
  method: string;
  path: string;
  env: Record<string, string>;
  accepts(headers: IncomingHttpHeaders): boolean;
  query(url: URL, body: string): string;
  answer(query: string, pages: readonly ScriptedPage[]): unknown;
  error(status: number): unknown;
}

/** Wire formats from the documentation that src/search/backends.ts links, including members that Chorus ignores. */
const WIRES: Record<SearchBackend, Wire> = {
  searxng: {
    method: "GET",
    path: "/search",
    env: {},
    accepts: () => true,
    query: (url) => (url.searchParams.get("format") === "json" ? (url.searchParams.get("q") ?? "") : ""),
    answer: (query, pages) => ({
      query,
      number_of_results: pages.length,
      results: pages.map(({ title, url, text, published }) => ({
        url,
        title,
        content: text,
        publishedDate: published ?? null,
        engine: "brave",
        engines: ["brave"],
        parsed_url: ["https", "one.example", "/a", "", "", ""],
        template: "default.html",
        positions: [1],
        score: 1,
        category: "general",
      })),
      answers: [],
      corrections: [],
      infoboxes: [],
      suggestions: ["something else"],
      unresponsive_engines: [["google", "timeout"]],
    }),
    error: () => "<!doctype html><title>403 Forbidden</title>",
  },
  brave: {
    method: "GET",
    path: "/res/v1/web/search",
    env: { BRAVE_API_KEY: SEARCH_KEY },
    accepts: (headers) => headers["x-subscription-token"] === SEARCH_KEY,
    query: (url) => url.searchParams.get("q") ?? "",
    answer: (query, pages) => ({
      type: "search",
      query: { original: query, more_results_available: false },
      mixed: { type: "mixed", main: [], top: [], side: [] },
      // Brave omits `web` when nothing was found.
      ...(pages.length === 0
        ? {}
        : {
            web: {
              type: "search",
              family_friendly: true,
              results: pages.map(({ title, url, text, extra, published }) => ({
                type: "search_result",
                subtype: "generic",
                title,
                url,
                description: text,
                ...(extra ? { extra_snippets: extra } : {}),
                ...(published ? { age: "March 1, 2026", page_age: published } : {}),
                language: "en",
                meta_url: { scheme: "https", netloc: "one.example", path: "› a" },
              })),
            },
          }),
    }),
    error: (status) => ({ type: "ErrorResponse", error: { status, detail: `Rejected: ${SEARCH_KEY}`, code: "ERROR" } }),
  },
  tavily: {
    method: "POST",
    path: "/search",
    env: { TAVILY_API_KEY: SEARCH_KEY },
    accepts: (headers) => headers.authorization === `Bearer ${SEARCH_KEY}`,
    query: (_, body) => JSON.parse(body).query,
    answer: (query, pages) => ({
      query,
      answer: null,
      images: [],
      follow_up_questions: null,
      results: pages.map(({ title, url, text, published }) => ({
        title,
        url,
        content: text,
        score: 0.9,
        raw_content: null,
        ...(published ? { published_date: published } : {}),
      })),
      response_time: 1.09,
      request_id: "00000000-0000-0000-0000-000000000000",
    }),
    error: () => ({ detail: { error: `Unauthorized: ${SEARCH_KEY}` } }),
  },
};

/** Starts an HTTP server that replies in a search backend's wire format as scripted. */
export async function startSearchServer(backend: SearchBackend, script: SearchScript = {}): Promise<SearchServer> {
  const wire = WIRES[backend];
  const calls: SearchCall[] = [];
  const queue: SearchScript[] = [];
  let defaultScript = script;
  let connections = 0;

  const server = createServer({ keepAliveTimeout: 300_000 }, async (request, response) => {
    response.on("error", () => {});
    const call = await read(wire, request, response).catch(() => undefined);
    if (!call) return;
    calls.push(call);
    const next = queue.shift() ?? defaultScript;
    const reply = !wire.accepts(request.headers) ? { status: 401 } : typeof next === "function" ? next(call) : next;
    const known = call.method === wire.method && new URL(call.path, "http://host").pathname === wire.path;
    await play(wire, call, known ? reply : { status: 404 }, response);
  });
  server.on("connection", (socket) => {
    connections++;
    socket.on("close", () => connections--);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    backend,
    url,
    calls,
    reply: (...scripts) => void queue.push(...scripts),
    always(next) {
      defaultScript = next;
    },
    get connections() {
      return connections;
    },
    config: (overrides = {}) => ({
      backend,
      baseUrl: url,
      ...(backend === "searxng" ? {} : { apiKey: SEARCH_KEY }),
      results: 6,
      // Long enough for a loaded machine; tests of timeouts set a shorter one.
      timeoutMs: 20_000,
      ...overrides,
    }),
    env: { ...wire.env, [`${backend.toUpperCase()}_BASE_URL`]: url },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function read(wire: Wire, request: IncomingMessage, response: ServerResponse): Promise<SearchCall> {
  let body = "";
  request.setEncoding("utf8");
  for await (const chunk of request) body += chunk;
  const { method = "", url: path = "", headers } = request;
  const ended = new Promise<"answered" | "aborted">((resolve) => {
    response.on("close", () => resolve(response.writableFinished ? "answered" : "aborted"));
  });
  return { method, path, headers, body, query: wire.query(new URL(path, "http://host"), body), ended };
}

async function play(wire: Wire, call: SearchCall, reply: SearchReply, response: ServerResponse): Promise<void> {
  const { status = 200, end = "whole", headersMs = 0 } = reply;
  if (end === "silent") return;
  if (headersMs > 0) await Promise.race([sleep(headersMs, undefined, { ref: false }), call.ended]);
  if (response.destroyed) return;
  const content = status === 200 ? wire.answer(call.query, reply.pages ?? FOUND) : wire.error(status);
  const body = reply.raw ?? (typeof content === "string" ? content : JSON.stringify(content));
  response.writeHead(status, { "content-type": "application/json", ...reply.headers });
  if (end === "whole") {
    response.end(body);
    return;
  }
  response.write(end === "endless" ? '{"results":["' : body.slice(0, body.length / 2));
  if (end === "reset") setTimeout(() => response.socket?.resetAndDestroy(), 10).unref();
  const piece = "x".repeat(64 * 1024);
  while (end === "endless" && !response.destroyed) {
    // Waits for the reader before the next piece, as with a full socket buffer, and for a turn of the event loop, in
    // which a connection that is closed is noticed.
    await new Promise<void>((resolve) => response.write(piece, () => setImmediate(resolve)));
  }
}
