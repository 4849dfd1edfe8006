import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { parseSearch } from "../../src/config/search.ts";

const WHERE = "The catalogue m.json (CHORUS_MODELS): search";
const parse = (given: unknown, env: Record<string, string> = {}) => parseSearch(given, env, WHERE);
const DEFAULTS = { results: 6, timeoutMs: 5_000 };

test("returns no search when nothing is configured", () => {
  assert.equal(parse(undefined), undefined);
  assert.equal(
    parse(undefined, { BRAVE_API_KEY: "", SEARXNG_BASE_URL: "", TAVILY_BASE_URL: "https://t.example" }),
    undefined,
  );
});

test("chooses SearXNG before Brave before Tavily from the environment", () => {
  const env = { SEARXNG_BASE_URL: "http://127.0.0.1:8888/", BRAVE_API_KEY: "b", TAVILY_API_KEY: "t" };
  assert.deepEqual(parse(undefined, env), { backend: "searxng", baseUrl: "http://127.0.0.1:8888", ...DEFAULTS });
  assert.deepEqual(parse(undefined, { ...env, SEARXNG_BASE_URL: "" }), { backend: "brave", apiKey: "b", ...DEFAULTS });
  assert.deepEqual(parse(undefined, { TAVILY_API_KEY: "t", TAVILY_BASE_URL: "https://t.example" }), {
    backend: "tavily",
    baseUrl: "https://t.example",
    apiKey: "t",
    ...DEFAULTS,
  });
});

test("prefers the catalogue and takes missing keys and addresses from the environment", () => {
  const env = { SEARXNG_BASE_URL: "http://127.0.0.1:8888", BRAVE_API_KEY: "b", OWN: "own" };
  assert.deepEqual(parse({ backend: "brave" }, env), { backend: "brave", apiKey: "b", ...DEFAULTS });
  assert.deepEqual(parse({ backend: "searxng" }, env), {
    backend: "searxng",
    baseUrl: "http://127.0.0.1:8888",
    ...DEFAULTS,
  });
  const whole = { backend: "tavily", base_url: "https://t.example/x/", api_key_env: "OWN", results: 20, timeout_ms: 1 };
  assert.deepEqual(parse(whole, env), {
    backend: "tavily",
    baseUrl: "https://t.example/x",
    apiKey: "own",
    results: 20,
    timeoutMs: 1,
  });
});

test("names the place of each error and repeats no secret", () => {
  const key = { BRAVE_API_KEY: "k" };
  const wrong: [unknown, Record<string, string>, RegExp][] = [
    [null, {}, /: search must be a JSON object/],
    [[], {}, /: search must be a JSON object/],
    ["brave", key, /: search must be a JSON object/],
    [{}, {}, /: search\.backend must be one of searxng, brave, tavily/],
    [{ backend: "google" }, {}, /: search\.backend must be one of/],
    [{ backend: "brave", url: "x" }, key, /: search has an unknown member "url". Remove it, or use backend, base_url/],
    [{ backend: "brave" }, {}, /: search needs an API key. Set BRAVE_API_KEY/],
    [{ backend: "tavily" }, key, /: search needs an API key. Set TAVILY_API_KEY/],
    [{ backend: "tavily", api_key_env: "OWN" }, key, /: search\.api_key_env names OWN, which is not set/],
    [{ backend: "tavily", api_key_env: "" }, key, /: search\.api_key_env must be a string/],
    [{ backend: "searxng" }, {}, /: search needs the address of your SearXNG. Set "base_url" or .* SEARXNG_BASE_URL/],
    [{ backend: "searxng", base_url: 7 }, {}, /: search\.base_url must be a string/],
    [{ backend: "searxng", base_url: "secret.example" }, {}, /: search\.base_url must be an address/],
    [{ backend: "searxng", base_url: "ftp://secret.example" }, {}, /: search\.base_url must be an address/],
    [
      { backend: "searxng", base_url: "https://u:secret@h.example" },
      {},
      /: search\.base_url must be .* without a user/,
    ],
    [{ backend: "searxng", base_url: "https://h.example/?key=secret" }, {}, /: search\.base_url must be an address/],
    [undefined, { SEARXNG_BASE_URL: "https://u:secret@h" }, /^SEARXNG_BASE_URL must be an address/],
    [undefined, { BRAVE_API_KEY: "a secret\n" }, /^BRAVE_API_KEY must be printable ASCII/],
    [{ backend: "brave", results: 0 }, key, /: search\.results must be a whole number from 1 to 20/],
    [{ backend: "brave", results: 21 }, key, /: search\.results/],
    [{ backend: "brave", results: 1.5 }, key, /: search\.results/],
    [{ backend: "brave", results: "5" }, key, /: search\.results/],
    [{ backend: "brave", timeout_ms: 60_001 }, key, /: search\.timeout_ms must be a whole number from 1 to 60000/],
  ];
  for (const [given, env, message] of wrong) {
    assert.throws(
      () => parse(given, env),
      (error) => error instanceof ConfigError && message.test(error.message) && !error.message.includes("secret"),
      JSON.stringify(given),
    );
  }
});

test("accepts the configurations in docs/web-search.md, which lists every member and default", () => {
  const doc = readFileSync(resolve(import.meta.dirname, "../../docs/web-search.md"), "utf8");
  const shown = [...doc.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => JSON.parse(text).search);
  assert.ok(shown.length > 0);
  for (const search of shown) assert.ok(parse(search, { BRAVE_API_KEY: "b", TAVILY_API_KEY: "t" }));
  const rows = new Map(
    [...doc.matchAll(/^\| `([a-z_]+)` \|([^|]*)\|/gm)].map(([, name = "", value = ""]) => [name, value.trim()]),
  );
  assert.deepEqual([...rows.keys()], ["backend", "base_url", "api_key_env", "results", "timeout_ms"]);
  assert.deepEqual([rows.get("results"), rows.get("timeout_ms")], [`${DEFAULTS.results}`, `${DEFAULTS.timeoutMs}`]);
});
