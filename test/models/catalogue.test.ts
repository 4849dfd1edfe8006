import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Catalogue, createCatalogue } from "../../src/models/catalogue.ts";
import { UpstreamError } from "../../src/models/failover.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import type { CallRecord } from "../../src/models/port/model.ts";
import { complete, type ModelCall } from "../../src/models/port/model.ts";
import { publishedOf } from "../../src/models/published.ts";
import { type ScriptedVendor, startVendor } from "../helpers/vendors.ts";
import { call, collect, tierOf } from "./fake-model.ts";

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

async function withCatalogue(
  entries: ModelEntry[],
  use: (catalogue: Catalogue) => Promise<void>,
  onCall?: (call: CallRecord) => void,
): Promise<void> {
  const catalogue = createCatalogue(entries, TIMEOUTS, onCall ? { onCall } : {});
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

/** Name of the model that answers. */
async function who(catalogue: Catalogue, tier: "fast" | "strong", more: Partial<ModelCall> = {}): Promise<string> {
  return (await complete(tierOf(catalogue, tier), call(more))).end.model;
}

for (const streamed of [false, true]) {
  describe(streamed ? "streamed" : "whole", () => {
    test("asks the models of the tier, then those of the other tier", () =>
      withCatalogue(three(), async (catalogue) => {
        assert.equal(await who(catalogue, "fast", { streamed }), "o");
        assert.equal(await who(catalogue, "strong", { streamed }), "a");
        openai.reply({ status: 401 });
        assert.equal(await who(catalogue, "fast", { streamed }), "g");
        openai.reply({ status: 403 });
        google.reply({ status: 404 });
        assert.equal(await who(catalogue, "fast", { streamed }), "a");
      }));

    test("adds up the usage of a completion that was repeated for room to think", () =>
      withCatalogue([openai.entry({ price: { input: 1, cached: 0, output: 1 } })], async (catalogue) => {
        const starved = { text: [], finish: "length", usage: { input: 10, output: 20, thoughts: 20 } };
        const used: CallRecord[] = [];
        const ask = () =>
          complete(tierOf(catalogue, "fast"), call({ streamed, maxTokens: 20, onUsed: (u) => used.push(u) }));
        openai.reply(starved, { usage: { input: 10, cached: 4, output: 50, thoughts: 40 } });
        const { end } = await ask();
        assert.deepEqual([end.usage?.inputTokens, end.usage?.outputTokens], [10, 50], "of the completion that is used");
        const [{ inputTokens, cachedTokens, outputTokens, thinkingTokens, usd } = assert.fail()] = used;
        assert.deepEqual([inputTokens, cachedTokens, outputTokens, thinkingTokens], [20, 4, 70, 60]);
        assert.equal(usd, 86e-6);
      }));

    test("counts the usage of a completion whose repetition fails", () =>
      withCatalogue([openai.entry()], async (catalogue) => {
        const used: CallRecord[] = [];
        const starved = { text: [], finish: "length", usage: { input: 10, output: 20, thoughts: 20 } };
        openai.reply(starved, { status: 400 });
        const more = { streamed, maxTokens: 20, onUsed: (record: CallRecord) => used.push(record) };
        await assert.rejects(complete(tierOf(catalogue, "fast"), call(more)));
        assert.deepEqual(
          used.map(({ outcome, inputTokens, outputTokens, source }) => [outcome, inputTokens, outputTokens, source]),
          [["failed", 10, 20, "reported"]],
        );
      }));

    test("retries a model that recovers", () =>
      withCatalogue(three(), async (catalogue) => {
        const before = openai.calls.length;
        openai.reply({ status: 503, headers: { "retry-after-ms": "5" } }, { end: "reset", after: 0 });
        assert.equal(await who(catalogue, "fast", { streamed }), "o");
        assert.equal(openai.calls.length - before, 3);
      }));

    test("throws one error with a cause for each model and without the vendors' words when all fail", () =>
      withCatalogue(three(), async (catalogue) => {
        const all = [openai, anthropic, google];
        for (const vendor of all) vendor.always({ status: 401, error: { message: "secret words" } });
        try {
          await assert.rejects(who(catalogue, "fast", { streamed }), (error) => {
            assert.ok(error instanceof UpstreamError);
            assert.equal(error.causes.length, 3);
            assert.ok(!error.message.includes("secret") && !JSON.stringify(error).includes("secret"));
            return true;
          });
        } finally {
          for (const vendor of all) vendor.always({});
        }
      }));

    test("asks the next model when one refuses, and says so if all do", () =>
      withCatalogue(three(), async (catalogue) => {
        const refusal = { text: "", finish: "content-filter" };
        openai.reply(refusal);
        assert.equal(await who(catalogue, "fast", { streamed }), "g");
        for (const vendor of [openai, anthropic, google]) vendor.reply(refusal);
        await assert.rejects(who(catalogue, "fast", { streamed }), { name: "UpstreamError", kind: "refused" });
      }));

    test("says that a prompt is too long if it is so for all models", () =>
      withCatalogue(three(), async (catalogue) => {
        const tooLong = { status: 413 };
        openai.reply(tooLong);
        assert.equal(await who(catalogue, "fast", { streamed }), "g");
        for (const vendor of [openai, anthropic, google]) vendor.reply(tooLong);
        await assert.rejects(who(catalogue, "fast", { streamed }), { name: "UpstreamError", kind: "too_long" });
      }));
  });
}

test("leaves a stream that is silent for the next model", () =>
  withCatalogue(three(), async (catalogue) => {
    openai.reply({ end: "silent" });
    assert.equal(await who(catalogue, "fast"), "g");
    assert.equal(await openai.calls.at(-1)?.ended, "aborted");
  }));

test("reports each call with its model and cost, failed ones included", async () => {
  const calls: CallRecord[] = [];
  const price = { input: 1_000_000, output: 1_000_000, cached: 0 };
  const entries = [openai.entry({ name: "o", tier: "fast" }), anthropic.entry({ name: "a", tier: "strong", price })];
  await withCatalogue(
    entries,
    async (catalogue) => {
      for (const streamed of [false, true]) {
        openai.reply({ status: 401 });
        await who(catalogue, "fast", { streamed });
      }
    },
    (call) => calls.push(call),
  );
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

test("reports each vendor call to the call that made it", () =>
  withCatalogue([openai.entry({ name: "o" }), google.entry({ name: "g" })], async (catalogue) => {
    for (const streamed of [false, true]) {
      const used: [string, string][] = [];
      const onUsed = ({ model, outcome }: CallRecord) => used.push([model, outcome]);
      openai.reply({ status: 503, headers: { "retry-after-ms": "1" } }, { status: 401 });
      await who(catalogue, "fast", { streamed, onUsed });
      await who(catalogue, "fast", { streamed });
      assert.deepEqual(used, [
        ["o", "failed"],
        ["o", "failed"],
        ["g", "ok"],
      ]);
    }
  }));

test("has single models with their facts, and measures their time to the first text", async () => {
  const compatible = { vendor: "openai-compatible" as const, model: "qwen", contextTokens: 8_000, accuracy: 0.6 };
  const entries = [
    openai.entry({ name: "o", images: true }),
    openai.entry({ name: "q", tier: "strong", ...compatible }),
  ];
  await withCatalogue(entries, async ({ members }) => {
    assert.deepEqual(
      members.map(({ model: _, latency: __, fingerprint: ___, ...rest }) => rest),
      [
        { name: "o", vendor: "openai", tier: "fast", images: true, published: publishedOf("gpt-4o") },
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
      await collect(first?.model.ask(call()) ?? assert.fail());
    }
    assert.ok((first?.latency?.hedgeAfterMs() ?? 0) >= 500);
  });
});

test("skips a model that keeps failing", () =>
  withCatalogue(three(), async (catalogue) => {
    openai.always({ status: 401 });
    const before = openai.calls.length;
    for (let i = 0; i < 8; i++) assert.equal(await who(catalogue, "fast", { streamed: false }), "g");
    assert.equal(openai.calls.length - before, 5);
    openai.always({});
  }));

test("asks no other model when a stream breaks after its first text", () =>
  withCatalogue(three(), async (catalogue) => {
    const before = google.calls.length;
    openai.reply({ text: ["one ", "two"], end: "reset", after: 1 });
    let text = "";
    await assert.rejects(async () => {
      for await (const piece of tierOf(catalogue, "fast").ask(call())) if (piece.type === "text") text += piece.text;
    }, UpstreamError);
    assert.equal(text, "one ");
    assert.equal(google.calls.length, before);
  }));

test("passes an abort on to the vendor and asks no other model", () =>
  withCatalogue(three(), async (catalogue) => {
    const before = google.calls.length;
    openai.reply({ text: ["one ", "two"], end: "hang", after: 1 });
    const caller = new AbortController();
    const gone = new Error("gone");
    await assert.rejects(async () => {
      const pieces = tierOf(catalogue, "fast").ask(call({ signal: caller.signal }));
      for await (const piece of pieces) if (piece.type === "text") caller.abort(gone);
    }, gone);
    assert.equal(await openai.calls.at(-1)?.ended, "aborted");
    assert.equal(google.calls.length, before);
  }));

const OFFLINE: ModelEntry = {
  name: "off",
  vendor: "offline",
  model: "offline-fast",
  tier: "fast",
  images: false,
  jsonSchema: true,
};

test("answers with the other tier where a tier has no models", () =>
  withCatalogue([OFFLINE], async (catalogue) => {
    const prompt = { system: "", messages: [{ role: "user" as const, text: "What is 6 * 7?" }] };
    const { text, end } = await complete(tierOf(catalogue, "strong"), call({ prompt }));
    assert.match(text, /42/);
    assert.equal(end.model, "off");
  }));

test("is offline if all models are offline models", async () => {
  await withCatalogue([OFFLINE], async ({ offline }) => assert.equal(offline, true));
  await withCatalogue([OFFLINE, openai.entry()], async ({ offline }) => assert.equal(offline, false));
});

test("says over which API each model is called", () => {
  const offline = { ...openai.entry({ name: "b", tier: "fast" }), vendor: "offline" } as const;
  return withCatalogue(
    [...three(), openai.entry({ name: "r", tier: "strong", api: "responses" }), offline],
    async (catalogue) => {
      const apis = catalogue.load().map(({ model, api }) => [model, api]);
      assert.deepEqual(Object.fromEntries(apis), {
        ...{ o: "chat", a: "messages", g: "generate_content", r: "responses", b: undefined },
      });
    },
  );
});
