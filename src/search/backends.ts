import type { SearchConfig } from "../config/search.ts";
import type { Found } from "./results.ts";

export interface SearchRequest {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: string;
}

export interface Backend {
  request(query: string): SearchRequest;
  /** Reads the JSON of a response with status 200; undefined if it does not have the expected format. */
  read(response: unknown): Found[] | undefined;
  /** What the operator must do about a status other than 200, if the backend's documentation says so. */
  hint?(status: number): string | undefined;
}

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

/** Number of results to request: more than needed, because some are duplicates. The price is the same up to 20. */
function requestedResults(results: number): number {
  return Math.min(20, 2 * results);
}

/** https://docs.searxng.org/dev/search_api.html. A key is for a proxy in front of it; SearXNG has none. */
function searxng({ baseUrl = "http://127.0.0.1:8888", apiKey }: SearchConfig): Backend {
  return {
    request(query) {
      // Removes prefixes that select engines or languages, or redirect:
      // https://docs.searxng.org/user/search-syntax.html
      const q = query.replace(/(^|\s)[!?:]+/g, "$1").trim();
      return {
        method: "GET",
        url: `${baseUrl}/search?${new URLSearchParams({ q, format: "json" })}`,
        headers: { accept: "application/json", ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) },
      };
    },
    read: (response) => found(member(response, "results"), "content", "publishedDate"),
    hint: (status) => (status === 403 ? 'Its settings.yml must list "json" under search.formats.' : undefined),
  };
}

/**
 * https://api-dashboard.search.brave.com/api-reference/web/search/get. `extra_snippets` adds up to five excerpts of
 * each page; a page's date is `page_age`.
 */
function brave({ baseUrl = "https://api.search.brave.com", apiKey = "", results }: SearchConfig): Backend {
  return {
    request(query) {
      const parameters = new URLSearchParams({
        q: query,
        count: String(requestedResults(results)),
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
    read(response) {
      if (member(response, "type") !== "search") return undefined;
      // `web` is missing when nothing was found.
      const results = member(member(response, "web") ?? { results: [] }, "results");
      return found(results, "description", "page_age", "extra_snippets");
    },
  };
}

/**
 * https://docs.tavily.com/documentation/api-reference/endpoint/search. `content` is a summary of the page, in depth
 * `basic` one credit.
 */
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
      body: JSON.stringify({ query, max_results: requestedResults(results), search_depth: "basic" }),
    }),
    read: (response) => found(member(response, "results"), "content", "published_date"),
  };
}

/** Adds the backend's path to a base URL without one. */
function withPath(baseUrl: string, path: string): string {
  return new URL(baseUrl).pathname === "/" ? `${baseUrl}${path}` : baseUrl;
}

/**
 * The results of a list, or undefined for another value.
 * @param text members with the text and the date of a result, and with a list of more texts
 */
function found(results: unknown, text: string, published: string, more = ""): Found[] | undefined {
  return list(results)?.map((item) => ({
    title: string(item, "title"),
    url: string(item, "url"),
    text: [string(item, text), ...(list(member(item, more)) ?? []).filter(isString)].join(" "),
    published: string(item, published),
  }));
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
