import type { SearchConfig } from "../config/search.ts";
import type { Found } from "./results.ts";

/** One request of a search. */
export interface SearchRequest {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** The wire format of one search service. */
export interface Backend {
  request(query: string): SearchRequest;
  /** What an answer with status 200 found; undefined if it is not of the format. */
  read(answer: unknown): Found[] | undefined;
  /** What to do about an answer that is refused, where the service's documentation says so. */
  hint?(status: number): string | undefined;
}

/** Speaks to the backend of the configuration. */
export function createBackend(config: SearchConfig): Backend {
  switch (config.backend) {
    case "searxng":
      return searxng(config);
    case "brave":
      return brave(config);
    case "tavily":
      return tavily(config);
  }
}

/** Some results turn out to be duplicates, so more are asked for; they cost the same. Both hosted backends allow 20. */
function asked(results: number): number {
  return Math.min(20, 2 * results);
}

/** https://docs.searxng.org/dev/search_api.html. A key is for a proxy in front of it; SearXNG itself has none. */
function searxng({ baseUrl = "http://127.0.0.1:8888", apiKey }: SearchConfig): Backend {
  return {
    request(query) {
      // Prefixes that choose engines or languages, or redirect to elsewhere: https://docs.searxng.org/user/search-syntax.html
      const q = query.replace(/(^|\s)[!?:]+/g, "$1").trim();
      return {
        method: "GET",
        url: `${baseUrl}/search?${new URLSearchParams({ q, format: "json" })}`,
        headers: { accept: "application/json", ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) },
      };
    },
    read: (answer) =>
      list(member(answer, "results"))?.map((item) => ({
        title: string(item, "title"),
        url: string(item, "url"),
        text: string(item, "content"),
        published: string(item, "publishedDate"),
      })),
    hint: (status) => (status === 403 ? 'Its settings.yml must list "json" under search.formats.' : undefined),
  };
}

/**
 * https://api-dashboard.search.brave.com/api-reference/web/search/get. `extra_snippets` adds up to five excerpts of each page;
 * a page's date is `page_age`.
 */
function brave({ baseUrl = "https://api.search.brave.com", apiKey = "", results }: SearchConfig): Backend {
  return {
    request(query) {
      const parameters = new URLSearchParams({
        q: query,
        count: String(asked(results)),
        result_filter: "web",
        extra_snippets: "true",
        text_decorations: "false",
      });
      return {
        method: "GET",
        url: `${withPath(baseUrl, "/res/v1")}/web/search?${parameters}`,
        headers: { accept: "application/json", "x-subscription-token": apiKey },
      };
    },
    read(answer) {
      if (member(answer, "type") !== "search") return undefined;
      // Left out where nothing was found.
      return list(member(member(answer, "web") ?? { results: [] }, "results"))?.map((item) => ({
        title: string(item, "title"),
        url: string(item, "url"),
        text: [string(item, "description"), ...(list(member(item, "extra_snippets")) ?? []).filter(isString)].join(" "),
        published: string(item, "page_age"),
      }));
    },
  };
}

/** https://docs.tavily.com/documentation/api-reference/endpoint/search. `content` is a summary of the page, in depth `basic` one credit. */
function tavily({ baseUrl = "https://api.tavily.com", apiKey = "", results }: SearchConfig): Backend {
  return {
    request: (query) => ({
      method: "POST",
      url: `${baseUrl}/search`,
      headers: {
        accept: "application/json",
        "content-type": "application/json",
        authorization: `Bearer ${apiKey}`,
      },
      body: JSON.stringify({ query, max_results: asked(results), search_depth: "basic" }),
    }),
    read: (answer) =>
      list(member(answer, "results"))?.map((item) => ({
        title: string(item, "title"),
        url: string(item, "url"),
        text: string(item, "content"),
        published: string(item, "published_date"),
      })),
  };
}

/** A base URL without a path gets the backend's own. */
function withPath(baseUrl: string, path: string): string {
  return new URL(baseUrl).pathname === "/" ? `${baseUrl}${path}` : baseUrl;
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

function list(value: unknown): unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

function string(item: unknown, name: string): string {
  const value = member(item, name);
  return isString(value) ? value : "";
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}
