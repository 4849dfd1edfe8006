import assert from "node:assert/strict";
import { test } from "vitest";
import { fingerprintOf } from "../../src/models/fingerprint.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";

test("changes with what is asked, and not with prices, tiers or keys", () => {
  const entry: ModelEntry = {
    name: "a",
    vendor: "openai",
    model: "gpt",
    tier: "fast",
    images: false,
    jsonSchema: true,
  };
  const own = fingerprintOf(entry);
  assert.match(own, /^[0-9a-f]{8}$/);
  const same = {
    name: "b",
    tier: "strong",
    apiKey: "k",
    price: { input: 1, output: 1, cached: 1 },
    thinks: false,
  } as const;
  assert.equal(fingerprintOf({ ...entry, ...same }), own);
  for (const other of [
    { model: "gpt-2" },
    { vendor: "google" },
    { baseUrl: "http://a" },
    { thinks: true },
    { api: "responses" },
  ] as const) {
    assert.notEqual(fingerprintOf({ ...entry, ...other }), own);
  }
});
