import assert from "node:assert/strict";
import { test as base } from "vitest";
import { type Catalogue, createCatalogue } from "../../src/models/catalogue.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { type Reply, startVendor } from "../helpers/vendors.ts";

const TIMEOUTS = { connectMs: 5_000, firstTokenMs: 5_000, betweenChunksMs: 5_000 };

const test = base
  .extend("vendor", async ({ onTestFinished }) => {
    const vendor = await startVendor("openai");
    onTestFinished(() => vendor.close());
    return vendor;
  })
  .extend("catalogueOf", ({ onTestFinished }) => (entry: ModelEntry): Catalogue => {
    const catalogue = createCatalogue([entry], TIMEOUTS);
    onTestFinished(() => catalogue.close());
    return catalogue;
  });

test("a test call is short, and has its tokens, its cost and what answered", async ({ vendor, catalogueOf }) => {
  vendor.reply({ text: "OK", usage: { input: 14, output: 2 }, version: "gpt-4o-2024-08-06" });
  const catalogue = catalogueOf(vendor.entry({ price: { input: 1, output: 10, cached: 0.5 } }));
  const { durationMs, ...tested } = (await catalogue.test("openai-fast")) ?? assert.fail();
  assert.ok(durationMs > 0);
  const usd = (14 * 1 + 2 * 10) / 1e6;
  assert.deepEqual(tested, { inputTokens: 14, outputTokens: 2, usd, version: "gpt-4o-2024-08-06" });
  assert.equal(vendor.calls.length, 1);
  assert.match(vendor.calls[0]?.body ?? "", /Reply with the word OK/);
  assert.equal(await catalogue.test("nobody"), undefined);
});

test("a test call is made while the circuit of the model is open, and closes it", async ({ vendor, catalogueOf }) => {
  const catalogue = catalogueOf(vendor.entry());
  const isOpen = () => catalogue.load()[0]?.isOpen;
  vendor.always({ status: 500 });
  for (let i = 0; i < 10 && !isOpen(); i++) await catalogue.test("openai-fast");
  assert.ok(isOpen());
  vendor.always({});
  assert.equal((await catalogue.test("openai-fast"))?.failure, undefined);
});

const REFUSALS: [Reply, status: number | undefined, code: string | undefined, action: RegExp][] = [
  [{ status: 401, error: { code: "invalid_api_key" } }, 401, "invalid_api_key", /^Set a valid THE_KEY, then/],
  [{ status: 404, error: { code: "model_not_found" } }, 404, "model_not_found", /^Correct the name "gpt-4o" in/],
  [{ status: 400, error: { code: "unsupported_value" } }, 400, "unsupported_value", /^Compare the entry of the model/],
  [{ status: 400, error: { code: "x-my-secret-key-x" } }, 400, undefined, /^Compare the entry of the model/],
  [
    { status: 429, error: { code: "slow_down" }, headers: { "retry-after": "60" } },
    429,
    "slow_down",
    /^Wait, then test it again, or let the vendor/,
  ],
  [
    { status: 503, error: { code: "server_error" } },
    503,
    "server_error",
    /^Wait, then test it again; the vendor's status page/,
  ],
];

test.for(REFUSALS)(
  "says why a vendor refuses, and what to do: %j",
  async ([reply, status, code, action], { vendor, catalogueOf }) => {
    vendor.always(reply);
    const catalogue = catalogueOf(vendor.entry({ apiKey: "my-secret-key", apiKeyEnv: "THE_KEY" }));
    const { failure } = (await catalogue.test("openai-fast")) ?? {};
    assert.deepEqual([failure?.status, failure?.code], [status, code]);
    assert.match(failure?.action ?? "", action);
  },
);

test("says that a model, or a server, does not have the API over which it is called", async ({
  vendor,
  catalogueOf,
}) => {
  for (const [message, api, action, said] of [
    // What OpenAI says of gpt-5-pro and of others.
    [
      "This model is only supported in v1/responses and not in v1/chat/completions.",
      undefined,
      /^Set "api": "responses" for gpt-4o in the catalogue/,
      "only supported in v1/responses",
    ],
    [
      "This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
      undefined,
      /^Set "api": "responses" for gpt-4o in the catalogue/,
      "not a chat model",
    ],
    // The vendor of this test has chat completions only.
    ["", "responses", /^Correct the name "gpt-4o" in .+ or remove "api": "responses" if the/, undefined],
  ] as const) {
    vendor.always({ raw: JSON.stringify({ error: { message, type: "invalid_request_error" } }), status: 404 });
    const entry = vendor.entry({ vendor: "openai-compatible", ...(api ? { api } : {}) });
    const { failure } = (await catalogueOf(entry).test("openai-fast")) ?? {};
    assert.deepEqual([failure?.status, failure?.message], [404, said]);
    assert.match(failure?.action ?? "", action);
  }
});

test("says that a server cannot be reached", async ({ vendor, catalogueOf }) => {
  const catalogue = catalogueOf(vendor.entry());
  await vendor.close();
  const { failure } = (await catalogue.test("openai-fast")) ?? {};
  assert.equal(failure?.code, "ECONNREFUSED");
  assert.match(failure?.action ?? "", /^Start the server of the model, or correct its address/);
});
