import { ConfigError, checkMembers, type Env, textMember } from "./config-error.ts";
import { checkAddress, headerKey } from "./values.ts";

export const SEARCH_BACKENDS = ["searxng", "brave", "tavily"] as const;
export type SearchBackend = (typeof SEARCH_BACKENDS)[number];

export interface SearchConfig {
  backend: SearchBackend;
  /** Address of the backend, without a trailing slash. Undefined: the backend's default; SearXNG has none. */
  baseUrl?: string;
  apiKey?: string;
  /** Most results that are passed to a model. */
  results: number;
  /** Timeout of one search, including a retry, in milliseconds. */
  timeoutMs: number;
}

const VARIABLES: Readonly<Record<SearchBackend, { base: string; key: string }>> = {
  searxng: { base: "SEARXNG_BASE_URL", key: "SEARXNG_API_KEY" },
  brave: { base: "BRAVE_BASE_URL", key: "BRAVE_API_KEY" },
  tavily: { base: "TAVILY_BASE_URL", key: "TAVILY_API_KEY" },
};

const MEMBERS: ReadonlySet<string> = new Set(["backend", "base_url", "api_key_env", "results", "timeout_ms"]);

/** The maximum of Brave and Tavily. */
const MAX_RESULTS = 20;
/** Six results are about 2,000 tokens, which fits into the context of a small local model. */
const DEFAULT_RESULTS = 6;
/** Leaves room above the 3 s that SearXNG waits for its engines. */
const DEFAULT_TIMEOUT_MS = 5_000;
const MAX_TIMEOUT_MS = 60_000;

/**
 * Reads the configuration of the web search. Without a member `search`, uses the first backend whose variable is set:
 * SearXNG, Brave, Tavily.
 * @param given the member `search` of the catalogue file; undefined if there is none
 * @param where names that member in messages, such as `The catalogue x.json (CHORUS_MODELS): search`
 * @returns undefined if no backend is configured
 * @throws ConfigError naming the member or variable, what was expected and what to do; never a secret
 */
export function parseSearch(given: unknown, env: Env, where: string): SearchConfig | undefined {
  if (given === undefined) {
    if (env.SEARXNG_BASE_URL) return entry({ backend: "searxng" }, env, where);
    if (env.BRAVE_API_KEY) return entry({ backend: "brave" }, env, where);
    if (env.TAVILY_API_KEY) return entry({ backend: "tavily" }, env, where);
    return undefined;
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ConfigError(`${where} must be a JSON object, such as {"backend":"brave"}. Correct it or remove it.`);
  }
  return entry(given as Record<string, unknown>, env, where);
}

function entry(given: Record<string, unknown>, env: Env, where: string): SearchConfig {
  checkMembers(given, MEMBERS, where);
  const backend = SEARCH_BACKENDS.find((name) => name === given.backend);
  if (!backend) throw new ConfigError(`${where}.backend must be one of ${SEARCH_BACKENDS.join(", ")}. Correct it.`);
  const variables = VARIABLES[backend];

  const own = textMember(given, "base_url", where);
  const url = own ?? (env[variables.base] || undefined);
  const place = own === undefined ? variables.base : `${where}.base_url`;
  if (url !== undefined) checkAddress(url, place, "https://host/path");
  else if (backend === "searxng") {
    throw new ConfigError(
      `${where} needs the address of your SearXNG. Set "base_url" or the variable ${variables.base}.`,
    );
  }

  const keyName = textMember(given, "api_key_env", where);
  const apiKey = headerKey(env, keyName ?? variables.key);
  if (keyName !== undefined && !apiKey) {
    throw new ConfigError(`${where}.api_key_env names ${keyName}, which is not set. Set it, or remove the member.`);
  }
  if (!apiKey && backend !== "searxng") {
    throw new ConfigError(
      `${where} needs an API key. Set ${variables.key}, or name another variable in "api_key_env".`,
    );
  }
  return {
    backend,
    ...(url === undefined ? {} : { baseUrl: url.replace(/\/+$/, "") }),
    ...(apiKey ? { apiKey } : {}),
    results: integer(given, "results", DEFAULT_RESULTS, 1, MAX_RESULTS, where),
    timeoutMs: integer(given, "timeout_ms", DEFAULT_TIMEOUT_MS, 1, MAX_TIMEOUT_MS, where),
  };
}

function integer(
  given: Record<string, unknown>,
  name: string,
  fallback: number,
  min: number,
  max: number,
  where: string,
): number {
  const value = given[name] ?? fallback;
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    throw new ConfigError(`${where}.${name} must be a whole number from ${min} to ${max}. Correct it or remove it.`);
  }
  return value;
}
