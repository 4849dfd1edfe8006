import assert from "node:assert/strict";
import { afterAll, beforeAll, test } from "vitest";
import type { ModelEntry } from "../../src/config/config.ts";
import { type Catalogue, createCatalogue } from "../../src/models/catalogue.ts";
import { UpstreamError } from "../../src/models/failover.ts";
import type { ModelCall } from "../../src/telemetry.ts";
import { type ScriptedVendor, startVendor } from "../helpers/vendors.ts";
import { call, collect, textOf } from "./fake-model.ts";

const TIMEOUTS = { connectMs: 500, firstTokenMs: 800, betweenChunksMs: 800 };

let openai: ScriptedVendor;
let anthropic: ScriptedVendor;
let google: ScriptedVendor;
beforeAll(async () => {
  [openai, anthropic, google] = await Promise.all([
    startVendor("openai"),
    startVendor("anthropic"),
    startVendor("google"),
  ]);
});
afterAll(() => Promise.all([openai.close(), anthropic.close(), google.close()]));

async function withCatalogue(entries: ModelEntry[], use: (catalogue: Catalogue) => Promise<void>): Promise<void> {
  const catalogue = createCatalogue(entries, TIMEOUTS);
  try {
    await use(catalogue);
  } finally {
    await catalogue.close();
  }
}

const three = () => [
  openai.entry({ name: "o", tier: "fast" }),
  anthropic.entry({ name: "a", tier: "strong" }),
  google.entry({ name: "g", tier: "fast" }),
];

async function who(catalogue: Catalogue, tier: "fast" | "strong", stream: boolean): Promise<unknown> {
  const model = catalogue.tier(tier);
  if (!stream) return (await model.doGenerate(call())).providerMetadata?.chorus;
  const last = (await collect((await model.doStream(call())).stream)).at(-1);
  return last?.type === "finish" ? last.providerMetadata?.chorus : undefined;
}

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";

  test(`${how}: a tier's own models come first, then the other tier's`, () =>
    withCatalogue(three(), async (catalogue) => {
      assert.deepEqual(await who(catalogue, "fast", stream), { model: "o", tier: "fast" });
      assert.deepEqual(await who(catalogue, "strong", stream), { model: "a", tier: "strong" });
      openai.reply({ status: 401 });
      assert.deepEqual(await who(catalogue, "fast", stream), { model: "g", tier: "fast" });
      openai.reply({ status: 403 });
      google.reply({ status: 404 });
      assert.deepEqual(await who(catalogue, "fast", stream), { model: "a", tier: "strong" });
    }));

  test(`${how}: a model that recovers is given its retries, one that hangs is left for the next`, () =>
    withCatalogue(three(), async (catalogue) => {
      const before = openai.calls.length;
      openai.reply({ status: 503, headers: { "retry-after-ms": "5" } }, { end: "reset", after: 0 });
      assert.deepEqual(await who(catalogue, "fast", stream), { model: "o", tier: "fast" });
      assert.equal(openai.calls.length - before, 3);
      // Patience with a whole answer depends on its length; a stream shows its silence.
      if (!stream) return;
      openai.reply({ end: "silent" });
      assert.deepEqual(await who(catalogue, "fast", stream), { model: "g", tier: "fast" });
      assert.equal(await openai.calls.at(-1)?.ended, "aborted");
    }));

  test(`${how}: when every model fails the error has a cause for each and none of the vendors' words`, () =>
    withCatalogue(three(), async (catalogue) => {
      for (const vendor of [openai, anthropic, google])
        vendor.always({ status: 401, error: { message: "secret words" } });
      try {
        await assert.rejects(who(catalogue, "fast", stream), (error) => {
          assert.ok(error instanceof UpstreamError);
          assert.equal(error.causes.length, 3);
          assert.ok(!error.message.includes("secret") && !JSON.stringify(error).includes("secret"));
          return true;
        });
      } finally {
        for (const vendor of [openai, anthropic, google]) vendor.always({});
      }
    }));
}

test("every call is told with its model and cost: failed tries and replacements too", async () => {
  const calls: ModelCall[] = [];
  const price = { input: 1_000_000, output: 1_000_000, cached: 0 };
  const entries = [openai.entry({ name: "o", tier: "fast" }), anthropic.entry({ name: "a", tier: "strong", price })];
  const catalogue = createCatalogue(entries, TIMEOUTS, (call) => calls.push(call));
  try {
    openai.reply({ status: 401 });
    await who(catalogue, "fast", false);
    openai.reply({ status: 401 });
    await who(catalogue, "fast", true);
  } finally {
    await catalogue.close();
  }
  assert.deepEqual(
    calls.map(({ model, tier, outcome, source }) => [model, tier, outcome, source]),
    [false, true].flatMap(() => [
      ["o", "fast", "failed", "reported"],
      ["a", "strong", "ok", "reported"],
    ]),
  );
  for (const { model, inputTokens, cachedTokens, outputTokens, usd } of calls) {
    if (model === "o") assert.deepEqual([inputTokens, outputTokens, usd], [0, 0, undefined]);
    else assert.ok(outputTokens > 0 && usd === inputTokens - cachedTokens + outputTokens, `${usd}`);
  }
});

test("each call is told with the generation that it belongs to", async () => {
  const generations: (string | undefined)[] = [];
  const catalogue = createCatalogue([openai.entry({ name: "o" })], TIMEOUTS, (_, generation) =>
    generations.push(generation),
  );
  try {
    const providerOptions = { chorus: { generation: "gen_1" } };
    await catalogue.tier("fast").doGenerate(call({ providerOptions }));
    await collect((await catalogue.tier("fast").doStream(call({ providerOptions }))).stream);
    await catalogue.tier("fast").doGenerate(call());
  } finally {
    await catalogue.close();
  }
  assert.deepEqual(generations, ["gen_1", "gen_1", undefined]);
});

test("single models are there with what is known of them, and learn how long their first text takes", async () => {
  const compatible = { vendor: "openai-compatible" as const, model: "qwen", contextTokens: 8_000, accuracy: 0.6 };
  const entries = [
    openai.entry({ name: "o", images: true }),
    openai.entry({ name: "q", tier: "strong", ...compatible }),
  ];
  await withCatalogue(entries, async ({ members }) => {
    assert.deepEqual(
      members.map(({ model: _, latency: __, ...rest }) => rest),
      [
        { name: "o", vendor: "openai", tier: "fast", images: true },
        {
          name: "q",
          vendor: `${openai.url} qwen`,
          tier: "strong",
          images: false,
          accuracy: 0.6,
          contextTokens: 8_000,
        },
      ],
    );
    const [first] = members;
    for (let i = 0; i < 20; i++) {
      assert.equal(first?.latency?.hedgeAfterMs(), undefined);
      await collect((await first?.model.doStream(call()))?.stream ?? assert.fail());
    }
    assert.ok((first?.latency?.hedgeAfterMs() ?? 0) >= 500);
  });
});

test("a model that keeps failing is left alone", () =>
  withCatalogue(three(), async (catalogue) => {
    openai.always({ status: 401 });
    const before = openai.calls.length;
    for (let i = 0; i < 8; i++) assert.deepEqual(await who(catalogue, "fast", false), { model: "g", tier: "fast" });
    assert.equal(openai.calls.length - before, 5);
    openai.always({});
  }));

test("a stream that dies after its first text is not replaced", () =>
  withCatalogue(three(), async (catalogue) => {
    const before = google.calls.length;
    openai.reply({ text: ["one ", "two"], end: "reset", after: 1 });
    let text = "";
    await assert.rejects(async () => {
      for await (const part of (await catalogue.tier("fast").doStream(call())).stream) {
        if (part.type === "text-delta") text += part.delta;
      }
    }, UpstreamError);
    assert.equal(text, "one ");
    assert.equal(google.calls.length, before);
  }));

test("an abort by the caller reaches the vendor and no further model is asked", () =>
  withCatalogue(three(), async (catalogue) => {
    const before = google.calls.length;
    openai.reply({ text: ["one ", "two"], end: "hang", after: 1 });
    const caller = new AbortController();
    const gone = new Error("gone");
    await assert.rejects(async () => {
      const { stream } = await catalogue.tier("fast").doStream(call({ abortSignal: caller.signal }));
      for await (const part of stream) if (part.type === "text-delta" && part.delta !== "") caller.abort(gone);
    }, gone);
    assert.equal(await openai.calls.at(-1)?.ended, "aborted");
    assert.equal(google.calls.length, before);
  }));

test("a tier without models of its own has the other's; offline means nothing but offline models", async () => {
  const offline: ModelEntry = {
    name: "off",
    vendor: "offline",
    model: "offline-fast",
    tier: "fast",
    images: false,
    jsonSchema: true,
  };
  await withCatalogue([offline], async (catalogue) => {
    assert.equal(catalogue.offline, true);
    const { stream } = await catalogue
      .tier("strong")
      .doStream(call({ prompt: [{ role: "user", content: [{ type: "text", text: "What is 6 * 7?" }] }] }));
    assert.match(textOf(await collect(stream)), /42/);
  });
  await withCatalogue([offline, openai.entry()], async (catalogue) => assert.equal(catalogue.offline, false));
});
