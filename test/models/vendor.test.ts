import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { ModelEntry } from "../../src/config/config.ts";
import { createFetch, type Fetch } from "../../src/models/fetch.ts";
import { toModelError } from "../../src/models/model-error.ts";
import type { Part } from "../../src/models/stream.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { until } from "../helpers/until.ts";
import { type Reply, type ScriptedVendor, startVendor, type VendorKind } from "../helpers/vendors.ts";
import { type Call, call, collect, textOf } from "./fake-model.ts";

const { fetch, close } = createFetch({ connectMs: 1_000 });
afterAll(close);

/** The three wire formats, and the fourth vendor that speaks the first one's. */
const VENDORS: { name: string; kind: VendorKind; overrides: Partial<ModelEntry> }[] = [
  { name: "openai", kind: "openai", overrides: {} },
  { name: "anthropic", kind: "anthropic", overrides: {} },
  { name: "google", kind: "google", overrides: {} },
  { name: "openai-compatible", kind: "openai", overrides: { vendor: "openai-compatible", model: "llama" } },
];

async function ask(model: LanguageModelV4, more: Partial<Call> = {}): Promise<string> {
  const { content } = await model.doGenerate(call(more));
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

async function read(model: LanguageModelV4, more: Partial<Call> = {}): Promise<Part[]> {
  return collect((await model.doStream(call(more))).stream);
}

function finishOf(all: readonly Part[]): Extract<Part, { type: "finish" }> {
  const last = all.at(-1);
  assert.ok(last?.type === "finish", "the finish comes last");
  return last;
}

for (const { name, kind, overrides } of VENDORS) {
  describe(name, () => {
    let vendor: ScriptedVendor;
    let entry: ModelEntry;
    let model: LanguageModelV4;
    beforeAll(async () => {
      vendor = await startVendor(kind);
      entry = vendor.entry({ name: "the-name", ...overrides });
      model = createVendorModel(entry, fetch);
    });
    afterAll(() => vendor.close());

    test("a whole answer", async () => {
      const result = await model.doGenerate(call());
      assert.deepEqual(
        result.content.map((part) => part.type === "text" && part.text),
        [`Hello from ${kind}.`],
      );
      assert.equal(result.finishReason.unified, "stop");
      assert.deepEqual(result.providerMetadata?.chorus, { model: "the-name", tier: "fast" });
      const request = vendor.calls.at(-1);
      assert.equal(request?.streamed, false);
      assert.ok(JSON.stringify(request?.headers).includes("vendor-secret"), "the key is sent");
      assert.equal(request?.headers["accept-encoding"], undefined);
    });

    test("a stream", async () => {
      vendor.reply({ text: ["Good ", "day, ", "Zoë 🎈"] });
      const all = await read(model);
      assert.equal(textOf(all), "Good day, Zoë 🎈");
      assert.equal(all.filter((part) => part.type === "text-delta" && part.delta !== "").length, 3);
      assert.equal(finishOf(all).finishReason.unified, "stop");
      assert.deepEqual(finishOf(all).providerMetadata?.chorus, { model: "the-name", tier: "fast" });
    });

    test("usage is normalised: input includes cached tokens, output includes thoughts", async () => {
      const usage = { input: 100, cached: 60, cacheWrite: kind === "anthropic" ? 15 : 0, output: 50, thoughts: 30 };
      vendor.reply({ usage }, { usage });
      const { usage: whole } = await model.doGenerate(call());
      for (const figures of [whole, finishOf(await read(model)).usage]) {
        assert.equal(figures.inputTokens.total, 100);
        assert.equal(figures.inputTokens.cacheRead, 60);
        assert.equal(figures.outputTokens.total, 50);
        assert.equal(figures.outputTokens.reasoning, 30);
      }
    });

    test("finish reasons", async () => {
      for (const finish of ["stop", "length", "content-filter"]) {
        vendor.reply({ finish }, { finish });
        assert.equal((await model.doGenerate(call())).finishReason.unified, finish);
        assert.equal(finishOf(await read(model)).finishReason.unified, finish);
      }
    });

    test("a stream that stops short of the terminal frame is a failure", async () => {
      for (const reply of [{ end: "cut" }, { end: "cut", after: 0 }, { end: "cut", after: 1 }] satisfies Reply[]) {
        vendor.reply({ text: ["one ", "two"], ...reply });
        await assert.rejects(read(model), (error) => toModelError(error).retryable, JSON.stringify(reply));
      }
    });

    test("a stream that breaks is a failure, and what came before has been delivered", async () => {
      for (const end of ["reset", "error", "garbage"] as const) {
        vendor.reply({ text: ["one ", "two"], end, after: 1, betweenMs: 1 });
        let text = "";
        await assert.rejects(
          async () => {
            for await (const part of (await model.doStream(call())).stream)
              if (part.type === "text-delta") text += part.delta;
          },
          (error) => toModelError(error).retryable,
          end,
        );
        assert.equal(text, "one ", end);
      }
    });

    test("an error frame before any text is a failure", async () => {
      for (const end of ["reset", "error", "garbage"] as const) {
        vendor.reply({ end, after: 0 });
        await assert.rejects(read(model), (error) => toModelError(error).retryable, end);
      }
    });

    test("a whole answer that is cut off, or no JSON, is a failure", async () => {
      for (const reply of [
        { end: "reset" },
        { end: "cut" },
        { raw: "<html>" },
        { raw: "" },
        { raw: "{}" },
      ] satisfies Reply[]) {
        vendor.reply(reply);
        await assert.rejects(ask(model), (error) => toModelError(error).retryable, JSON.stringify(reply));
      }
    });

    test("statuses and the vendor's wish for patience", async () => {
      for (const stream of [false, true]) {
        vendor.reply({ status: 429, headers: { "retry-after": "7" } }, { status: 401 }, { status: 500 });
        const attempt = async () => toModelError(await (stream ? read(model) : ask(model)).catch((error) => error));
        const [limited, denied, broken] = [await attempt(), await attempt(), await attempt()];
        assert.deepEqual([limited.status, limited.retryable, limited.retryAfterMs], [429, true, 7_000]);
        assert.deepEqual([denied.status, denied.retryable], [401, false]);
        assert.deepEqual([broken.status, broken.retryable], [500, true]);
      }
    });

    test("an abort reaches the vendor at once, whole and streamed, before and after the headers", async () => {
      for (const [reply, stream] of [
        [{ end: "silent" }, false],
        [{ end: "silent" }, true],
        [{ end: "hang", after: 1 }, true],
      ] as [Reply, boolean][]) {
        vendor.reply(reply);
        const count = vendor.calls.length;
        const caller = new AbortController();
        const gone = new Error("gone");
        const pending = stream
          ? read(model, { abortSignal: caller.signal })
          : ask(model, { abortSignal: caller.signal });
        pending.catch(() => {});
        await until(() => vendor.calls.length > count);
        // The caller leaves while the model waits for more.
        await sleep(20);
        caller.abort(gone);
        await assert.rejects(pending);
        assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
      }
    });

    test("a reader that leaves ends the vendor's call", async () => {
      vendor.reply({ text: ["one ", "two"], end: "hang", after: 1 });
      for await (const part of (await model.doStream(call())).stream)
        if (part.type === "text-delta" && part.delta !== "") break;
      assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
    });

    test("options that models take", async () => {
      await ask(model, { temperature: 2, maxOutputTokens: 77, stopSequences: ["END"] });
      const body = vendor.calls.at(-1)?.body ?? "";
      assert.match(body, kind === "anthropic" ? /"temperature":1,/ : /"temperature":2,/, "Anthropic's range ends at 1");
      assert.match(body, /:77,/);
      assert.match(body, /\["END"\]/);
    });

    test("an option that a model refuses is left out, and remembered once that has helped", async () => {
      const picky = createVendorModel(entry, fetch);
      vendor.always(({ body }) =>
        body.includes('"temperature"')
          ? {
              status: 400,
              error: { message: "`temperature` is not supported with this model.", type: "invalid_request_error" },
            }
          : {},
      );
      const count = vendor.calls.length;
      assert.equal(await ask(picky, { temperature: 0.2 }), `Hello from ${kind}.`);
      assert.equal(vendor.calls.length - count, 2);
      assert.equal(textOf(await read(picky, { temperature: 0.2 })), `Hello from ${kind}.`);
      assert.equal(vendor.calls.length - count, 3);
      vendor.always({});
    });

    test("an option refused for its value is sent again with the next call", async () => {
      const picky = createVendorModel(entry, fetch);
      vendor.reply({ status: 400, error: { message: "temperature must be at most 1", type: "invalid_request_error" } });
      await ask(picky, { temperature: 0.2 });
      await ask(picky, { temperature: 0.2 });
      assert.match(vendor.calls.at(-1)?.body ?? "", /"temperature":0.2/);
    });

    test("any other refusal stands", async () => {
      vendor.reply({ status: 400, error: { message: "prompt is too long", type: "invalid_request_error" } });
      const count = vendor.calls.length;
      await assert.rejects(ask(model, { temperature: 0.2 }), { statusCode: 400 });
      assert.equal(vendor.calls.length - count, 1);
    });

    test("every split of the bytes gives the same answer", async () => {
      const pieces = ["Zoë ", "🎈漢", '\n\ndata: "}]'];
      const text = pieces.join("");
      vendor.reply({ text: pieces });
      let wire: Buffer | undefined;
      const tap: Fetch = async (...args) => {
        const response = await fetch(...args);
        wire = Buffer.from(await new Response(await drain(response)).arrayBuffer());
        return stand(response, [wire]);
      };
      assert.equal(textOf(await read(createVendorModel(entry, tap))), text);
      assert.ok(wire);
      // From the first piece to the last: what is outside is plain ASCII, and the same for all frames.
      for (let at = wire.indexOf("Zo"); at < wire.lastIndexOf("}]") + 12; at++) {
        const [head, tail] = [wire.subarray(0, at), wire.subarray(at)];
        const halves = createVendorModel(entry, async () => stand(undefined, [head, tail]));
        const all = await read(halves);
        assert.equal(textOf(all), text, `split at ${at}`);
        assert.equal(finishOf(all).finishReason.unified, "stop");
      }
      vendor.reply({ text: pieces, split: 1 });
      assert.equal(textOf(await read(model)), text, "byte by byte over the network");
    });

    test("a connection is kept for the next call", async () => {
      await ask(model);
      const before = vendor.connections;
      for (let i = 0; i < 5; i++) {
        await ask(model);
        await read(model);
      }
      assert.equal(vendor.connections, before);
    });
  });
}

async function drain(response: Response): Promise<ReadableStream<Uint8Array>> {
  const reader = response.body?.getReader();
  assert.ok(reader);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

function stand(response: Response | undefined, chunks: Buffer[]): Response {
  return new Response(ReadableStream.from(chunks), {
    status: response?.status ?? 200,
    headers: { "content-type": "text/event-stream" },
  });
}

test("addresses: a path of one's own is kept, an empty one gets the vendor's", async () => {
  const seen: string[] = [];
  const spy: Fetch = async (input) => {
    seen.push(String(input));
    return new Response("{}", { status: 500 });
  };
  const base = { name: "n", model: "m", tier: "fast", images: false, jsonSchema: true, apiKey: "k" } as const;
  for (const vendor of ["openai", "anthropic", "google", "openai-compatible"] as const) {
    for (const baseUrl of [undefined, "http://h:1", "http://h:1/", "http://h:1/own/v9"]) {
      const entry = { ...base, vendor, ...(baseUrl === undefined ? {} : { baseUrl }) };
      await assert.rejects(ask(createVendorModel(entry, spy)));
    }
  }
  assert.deepEqual(seen, [
    "https://api.openai.com/v1/chat/completions",
    "http://h:1/v1/chat/completions",
    "http://h:1/v1/chat/completions",
    "http://h:1/own/v9/chat/completions",
    "https://api.anthropic.com/v1/messages",
    "http://h:1/v1/messages",
    "http://h:1/v1/messages",
    "http://h:1/own/v9/messages",
    "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
    "http://h:1/v1beta/models/m:generateContent",
    "http://h:1/v1beta/models/m:generateContent",
    "http://h:1/own/v9/models/m:generateContent",
    "http://127.0.0.1:11434/v1/chat/completions",
    "http://h:1/v1/chat/completions",
    "http://h:1/v1/chat/completions",
    "http://h:1/own/v9/chat/completions",
  ]);
});

test("reasoning models are not sent what they do not take", async () => {
  const vendor = await startVendor("openai");
  try {
    const model = createVendorModel(vendor.entry({ model: "gpt-6-luna" }), fetch);
    await ask(model, { temperature: 0.5, maxOutputTokens: 9 });
    const { json } = vendor.calls[0] ?? {};
    assert.equal(json?.temperature, undefined);
    assert.equal(json?.max_tokens, undefined);
    assert.equal(json?.max_completion_tokens, 9);
  } finally {
    await vendor.close();
  }
});

test("an OpenAI-compatible server may have its own word for a natural end", async () => {
  const vendor = await startVendor("openai", { finish: "eos" });
  try {
    const model = createVendorModel(vendor.entry({ vendor: "openai-compatible" }), fetch);
    assert.deepEqual((await model.doGenerate(call())).finishReason, { unified: "stop", raw: "eos" });
    assert.equal(finishOf(await read(model)).finishReason.unified, "stop");
  } finally {
    await vendor.close();
  }
});

test("an unknown end of Gemini's or Anthropic's is no whole answer", async () => {
  for (const kind of ["google", "anthropic"] as const) {
    const vendor = await startVendor(kind, { finish: "OTHER" });
    try {
      const model = createVendorModel(vendor.entry(), fetch);
      await assert.rejects(ask(model), { name: "ModelError" });
      await assert.rejects(read(model), { name: "ModelError" });
    } finally {
      await vendor.close();
    }
  }
});

test("the offline models answer through the same door", async () => {
  const model = createVendorModel(
    { name: "offline-fast", vendor: "offline", model: "offline-fast", tier: "fast", images: false, jsonSchema: true },
    fetch,
  );
  const prompt: Call["prompt"] = [{ role: "user", content: [{ type: "text", text: "What is 6 * 7?" }] }];
  assert.match(await ask(model, { prompt }), /42/);
  assert.deepEqual(finishOf(await read(model, { prompt })).providerMetadata?.chorus, {
    model: "offline-fast",
    tier: "fast",
  });
});
