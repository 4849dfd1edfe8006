import assert from "node:assert/strict";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createHttpClient } from "../../src/models/http.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { complete, type End, type Model, type ModelCall, type Piece } from "../../src/models/port/model.ts";
import { toModelError } from "../../src/models/port/model-error.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { until } from "../helpers/until.ts";
import { WIRES } from "../helpers/vendor-wire.ts";
import { type Reply, type ScriptedVendor, startVendor, type VendorCall, type WireKind } from "../helpers/vendors.ts";
import { call, collect, textOf } from "./fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
afterAll(() => http.close());

/** The wire formats, and the vendor that speaks the first one's. */
const VENDORS: { name: string; kind: WireKind; overrides: Partial<ModelEntry> }[] = [
  { name: "openai", kind: "openai", overrides: {} },
  { name: "responses", kind: "responses", overrides: {} },
  { name: "anthropic", kind: "anthropic", overrides: {} },
  { name: "google", kind: "google", overrides: {} },
  { name: "openai-compatible", kind: "openai", overrides: { vendor: "openai-compatible", model: "llama" } },
];
const BOTH = [true, false];
const COMPRESSORS: Record<string, (text: string) => Buffer> = {
  gzip: gzipSync,
  "x-gzip": gzipSync,
  GZIP: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};

const ask = async (model: Model, more: Partial<ModelCall> = {}): Promise<string> =>
  (await complete(model, call({ streamed: false, ...more }))).text;
const read = (model: Model, more: Partial<ModelCall> = {}): Promise<Piece[]> => collect(model.ask(call(more)));

/** The ceiling of the output, in whatever field the vendor has it. */
function ceilingOf({ body }: Pick<VendorCall, "body"> = { body: "" }): number {
  return Number(/"(?:max_(?:completion_|output_)?tokens|maxOutputTokens)":(\d+)/.exec(body)?.[1]);
}

function endOf(all: readonly Piece[]): End {
  const last = all.at(-1);
  assert.ok(last?.type === "end", "the end comes last");
  return last;
}

for (const { name, kind, overrides } of VENDORS) {
  describe(name, () => {
    let vendor: ScriptedVendor;
    let entry: ModelEntry;
    let model: Model;
    beforeAll(async () => {
      vendor = await startVendor(kind);
      entry = vendor.entry({ name: "the-name", ...overrides });
      model = createVendorModel(entry, http);
    });
    afterAll(() => vendor.close());

    test("asks for a whole completion when nothing is streamed", async () => {
      const { text, end } = await complete(model, call({ streamed: false }));
      assert.equal(text, `Hello from ${kind}.`);
      assert.deepEqual([end.reason, end.model], ["stop", "the-name"]);
      const request = vendor.calls.at(-1);
      assert.equal(request?.streamed, false);
      assert.ok(JSON.stringify(request?.headers).includes("vendor-secret"), "the key is sent");
      assert.equal(request?.headers["accept-encoding"], "identity");
    });

    test("delivers the text of a stream as it arrives", async () => {
      vendor.reply({ text: ["Good ", "day"], end: "hang", after: 1 });
      let text = "";
      for await (const piece of model.ask(call())) {
        if (piece.type === "text") text += piece.text;
        if (text === "Good ") break;
      }
      assert.equal(text, "Good ");
    });

    test("delivers the whole text of a stream, then its end", async () => {
      vendor.reply({ text: ["Good ", "day, ", "Zoë 🎈"], betweenMs: 5 });
      const all = await read(model);
      assert.equal(textOf(all), "Good day, Zoë 🎈");
      assert.deepEqual([endOf(all).reason, endOf(all).model], ["stop", "the-name"]);
    });

    test("delivers all text of one socket read as one piece", async () => {
      vendor.reply({ text: ["Good ", "day, ", "Zoë 🎈"] });
      const all = await read(model);
      assert.equal(textOf(all), "Good day, Zoë 🎈");
      assert.ok(all.filter(({ type }) => type === "text").length <= 2);
    });

    test("reports input with cached tokens, and output with thinking", async () => {
      const usage = { input: 100, cached: 60, cacheWrite: kind === "anthropic" ? 15 : 0, output: 50, thoughts: 30 };
      for (const streamed of BOTH) {
        vendor.reply({ usage });
        const { end } = await complete(model, call({ streamed }));
        assert.deepEqual(end.usage, { inputTokens: 100, cachedTokens: 60, outputTokens: 50, thinkingTokens: 30 });
      }
    });

    test("makes absurd usage whole and bounds it", async () => {
      const absurd = [
        { input: -100, cached: -60, output: -7, thoughts: -3 },
        { input: 10.7, cached: 99.5, output: 1e300, thoughts: 2e300 },
      ];
      for (const usage of absurd) {
        for (const streamed of BOTH) {
          vendor.reply({ usage });
          const { end } = await complete(model, call({ streamed }));
          for (const count of Object.values(end.usage ?? {})) {
            assert.ok(Number.isInteger(count) && count >= 0 && count <= 2_000_000_000, JSON.stringify(end.usage));
          }
          assert.ok((end.usage?.cachedTokens ?? 0) <= (end.usage?.inputTokens ?? 0));
        }
      }
    });

    test("reads the end reasons of the format", async () => {
      for (const [finish, reason] of [
        ["stop", "stop"],
        ["length", "length"],
        ["content-filter", "content_filter"],
        ["something_new", "unknown"],
      ]) {
        for (const streamed of BOTH) {
          vendor.reply({ finish: finish ?? "" });
          assert.equal((await complete(model, call({ streamed }))).end.reason, reason, finish);
        }
      }
    });

    test("fails on an end reason that says so", async () => {
      for (const streamed of BOTH) {
        vendor.reply({ finish: kind === "google" ? "MALFORMED_FUNCTION_CALL" : "error" });
        await assert.rejects(complete(model, call({ streamed })), { name: "ModelError", retryable: true });
      }
    });

    test("fails when a stream stops short of its terminal frame", async () => {
      for (const reply of [{}, { after: 0 }, { after: 1 }] satisfies Reply[]) {
        vendor.reply({ text: ["one ", "two"], end: "cut", ...reply });
        await assert.rejects(read(model), { retryable: true }, JSON.stringify(reply));
      }
    });

    test("delivers what came before a stream breaks, and fails", async () => {
      for (const end of ["reset", "error", "garbage"] as const) {
        vendor.reply({ text: ["one ", "two"], end, after: 1, betweenMs: 1 });
        const all: Piece[] = [];
        const broken = async () => {
          for await (const piece of model.ask(call())) all.push(piece);
        };
        await assert.rejects(broken, { retryable: true }, end);
        assert.equal(textOf(all), "one ", end);
      }
    });

    test("fails on an error before any text", async () => {
      for (const end of ["reset", "error", "garbage"] as const) {
        vendor.reply({ end, after: 0 });
        await assert.rejects(read(model), { retryable: true }, end);
      }
    });

    test("fails on a whole answer that is cut off or not readable", async () => {
      const replies: Reply[] = [{ end: "reset" }, { end: "cut" }, { raw: "<html>" }, { raw: "" }, { raw: "{}" }];
      for (const reply of [...replies, { raw: "null" }, { raw: "[]" }]) {
        vendor.reply(reply);
        await assert.rejects(ask(model), { retryable: true }, JSON.stringify(reply));
      }
    });

    test("reads JSON in answer to a streamed call: a whole completion or an error", async () => {
      const json = { "content-type": "application/json; charset=utf-8" };
      const whole = WIRES[kind].whole("all at once", {});
      vendor.reply({ raw: whole, headers: json });
      const all = await read(model);
      assert.deepEqual([textOf(all), endOf(all).reason], ["all at once", "stop"]);
      const error = JSON.stringify(WIRES[kind].error(402, { message: "no credit", type: "billing_error" }));
      vendor.reply({ raw: error, headers: json });
      await assert.rejects(read(model), { name: "ModelError" });
    });

    test("reads a completion by its bytes, whatever its content type says", async () => {
      const { before, text, after } = WIRES[kind].frames(["all ", "at once"], {});
      const stream = [...before, ...text, ...after].join("");
      const whole = WIRES[kind].whole("all at once", {});
      for (const raw of [stream, `: ping\n\n${stream}`, ` \n${stream}`, whole, `\uFEFF \n${whole}`]) {
        for (const type of ["application/json", "text/event-stream", "text/plain", "application/octet-stream"]) {
          for (const streamed of BOTH) {
            // Byte by byte takes 20 ms, so only one type is sent in this way.
            for (const more of type === "text/plain" ? [{}, { split: 1 }] : [{}]) {
              vendor.reply({ raw, headers: { "content-type": type }, ...more });
              const { text, end } = await complete(model, call({ streamed }));
              assert.deepEqual([text, end.reason, end.usage?.inputTokens], ["all at once", "stop", 10], type);
            }
          }
        }
      }
    });

    test("reads a compressed answer, also byte by byte", async () => {
      const { before, text, after } = WIRES[kind].frames(["all ", "at once"], {});
      for (const streamed of BOTH) {
        const raw = streamed ? [...before, ...text, ...after].join("") : WIRES[kind].whole("all at once", {});
        for (const [encoding, compress] of Object.entries(COMPRESSORS)) {
          for (const split of [undefined, 1]) {
            const headers = { "content-encoding": encoding };
            vendor.reply({ raw: compress(raw), headers, ...(split ? { split } : {}) });
            assert.equal((await complete(model, call({ streamed }))).text, "all at once", encoding);
          }
        }
      }
      const error = JSON.stringify(
        WIRES[kind].error(400, { message: "prompt is too long: the input token count exceeds" }),
      );
      vendor.reply({ status: 400, raw: gzipSync(error), headers: { "content-encoding": "gzip" } });
      await assert.rejects(ask(model), { status: 400, kind: "too_long" });
    });

    test("delivers compressed text as it arrives", async () => {
      const { before, text } = WIRES[kind].frames(["all ", "at once"], {});
      const part = [...before, ...text.slice(0, 1)].join("");
      const raw = gzipSync(part, { finishFlush: constants.Z_SYNC_FLUSH });
      vendor.reply({ raw, headers: { "content-encoding": "gzip" }, afterwards: "hang" });
      for await (const piece of model.ask(call())) {
        if (piece.type !== "text") continue;
        assert.equal(piece.text, "all ");
        break;
      }
    });

    test("fails on a body that is a page, whatever its status", async () => {
      const page = `<html>${"input token count <p>".repeat(3_000)}</html>`;
      for (const streamed of BOTH) {
        for (const status of [200, 500, 529]) {
          vendor.reply({ status, raw: page, headers: { "content-type": "text/html" } });
          await assert.rejects(complete(model, call({ streamed })), { retryable: true });
        }
      }
    });

    test("ignores what follows the terminal frame", async () => {
      vendor.reply({ text: "whole", end: "whole", trailing: "data: {no json\n\n: rubbish", afterwards: "reset" });
      assert.equal(textOf(await read(model)), "whole");
      vendor.reply({ text: "whole", end: "whole", afterwards: "hang" });
      assert.equal(textOf(await read(model)), "whole");
    });

    test("reads statuses and the wait that the vendor asks for", async () => {
      for (const streamed of BOTH) {
        vendor.reply({ status: 429, headers: { "retry-after": "7" } }, { status: 401 }, { status: 500 });
        const attempt = async () =>
          toModelError(await complete(model, call({ streamed })).catch((error: unknown) => error));
        const [limited, denied, broken] = [await attempt(), await attempt(), await attempt()];
        assert.deepEqual([limited.status, limited.retryable, limited.retryAfterMs], [429, true, 7_000]);
        assert.deepEqual([denied.status, denied.retryable], [401, false]);
        assert.deepEqual([broken.status, broken.retryable], [500, true]);
      }
    });

    test("follows no redirect", async () => {
      vendor.reply({ status: 307, headers: { location: `${vendor.url}/elsewhere` } });
      const count = vendor.calls.length;
      await assert.rejects(ask(model), { status: 307, retryable: false });
      assert.equal(vendor.calls.length - count, 1);
    });

    test("closes the vendor's call when the caller aborts, before and after the headers", async () => {
      const cases: [Reply, boolean][] = [
        [{ end: "silent" }, false],
        [{ end: "silent" }, true],
        [{ end: "hang", after: 1 }, true],
      ];
      for (const [reply, streamed] of cases) {
        vendor.reply(reply);
        const count = vendor.calls.length;
        const caller = new AbortController();
        const pending = complete(model, call({ streamed, signal: caller.signal }));
        pending.catch(() => {});
        await until(() => vendor.calls.length > count);
        const reason = new Error("gone");
        caller.abort(reason);
        await assert.rejects(pending, reason);
        assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
      }
    });

    test("closes the vendor's call when the reader leaves", async () => {
      vendor.reply({ text: ["one ", "two"], end: "hang", after: 1 });
      for await (const piece of model.ask(call())) if (piece.type === "text") break;
      assert.equal(await vendor.calls.at(-1)?.ended, "aborted");
    });

    test("sends temperature, ceiling and stop sequences", async () => {
      await ask(createVendorModel(entry, http), { temperature: 2, maxTokens: 77, stops: ["END"] });
      const body = vendor.calls.at(-1)?.body ?? "";
      assert.match(body, kind === "anthropic" ? /"temperature":1,/ : /"temperature":2,/, "Anthropic's range ends at 1");
      assert.match(body, /:77[,}]/);
      assert.equal(body.includes('["END"]'), kind !== "responses", "which has none");
    });

    test("leaves out an option that the model refuses, and remembers it once that has helped", async () => {
      const picky = createVendorModel(entry, http);
      vendor.always(({ body }) =>
        body.includes('"temperature"')
          ? { status: 400, error: { message: "`temperature` is not supported.", type: "invalid_request_error" } }
          : {},
      );
      const count = vendor.calls.length;
      assert.equal(await ask(picky, { temperature: 0.2 }), `Hello from ${kind}.`);
      assert.equal(vendor.calls.length - count, 2);
      assert.equal(textOf(await read(picky, { temperature: 0.2 })), `Hello from ${kind}.`);
      assert.equal(vendor.calls.length - count, 3);
      vendor.always({});
    });

    test("sends an option again that was refused for its value", async () => {
      const picky = createVendorModel(entry, http);
      vendor.reply({ status: 400, error: { message: "temperature must be at most 1", type: "invalid_request_error" } });
      await ask(picky, { temperature: 0.2 });
      await ask(picky, { temperature: 0.2 });
      assert.match(vendor.calls.at(-1)?.body ?? "", /"temperature":0.2/);
    });

    test("learns the largest ceiling from a refusal", async () => {
      const picky = createVendorModel(entry, http);
      const words = kind === "google" ? "maxOutputTokens 32000 is over 8192" : "max_tokens: 32000 > 8192";
      vendor.reply({ status: 400, error: { message: words, type: "invalid_request_error" } });
      await ask(picky, { maxTokens: 32_000 });
      assert.match(vendor.calls.at(-1)?.body ?? "", /:8192[,}]/);
      await ask(picky, { maxTokens: 32_000 });
      assert.match(vendor.calls.at(-1)?.body ?? "", /:8192[,}]/);
    });

    test("says that a prompt is too long, and does not try again", async () => {
      const message = kind === "google" ? "The input token count exceeds the maximum" : "prompt is too long";
      vendor.reply({ status: 400, error: { message, type: "invalid_request_error" } });
      const count = vendor.calls.length;
      await assert.rejects(ask(model, { temperature: 0.2 }), { status: 400, kind: "too_long", retryable: false });
      assert.equal(vendor.calls.length - count, 1);
    });

    test("drops thinking at the head of the text", async () => {
      for (const streamed of BOTH) {
        vendor.reply({ text: ["<think>Let me ", "see.</think>\n\n", "42"] });
        assert.equal((await complete(model, call({ streamed }))).text, "42");
      }
    });

    test("gives a model room to think when its ceiling left no text", async () => {
      for (const written of [[], ["\n", "\n"]]) {
        const thinker = createVendorModel(entry, http);
        vendor.reply({ text: written, finish: "length", usage: { output: 20, thoughts: 20 } });
        const { text, end } = await complete(thinker, call({ maxTokens: 20 }));
        assert.deepEqual([text, end.reason], [`Hello from ${kind}.`, "stop"]);
        assert.ok(ceilingOf(vendor.calls.at(-1)) > 1_000);
      }
    });

    test("gives later calls no room to think because one caller has asked for thinking in the text", async () => {
      const plain = createVendorModel(entry, http);
      const ceiling = async (more: Partial<ModelCall>) => {
        await complete(plain, call(more));
        return ceilingOf(vendor.calls.at(-1));
      };
      vendor.reply({ text: "<think>Hm.</think>Yes." });
      await ceiling({ maxTokens: 50 });
      // The first answer without thinking shows that the model does not think, unless it was not to.
      assert.ok((await ceiling({ maxTokens: 50, reasoning: "none" })) > 1_000);
      assert.ok((await ceiling({ maxTokens: 50 })) > 1_000);
      assert.equal(await ceiling({ maxTokens: 50 }), 50);
      for (const text of ["<think>Hm. Hm.", "\n\n"]) {
        vendor.reply({ text, finish: "length" });
        assert.ok((await ceiling({ maxTokens: 50 })) > 1_000, "repeated");
        assert.equal(await ceiling({ maxTokens: 50 }), 50);
      }
      // Servers hold back the first tokens of an emoji.
      vendor.reply({ text: [], finish: "length", usage: { output: 2 } });
      assert.ok((await ceiling({ maxTokens: 2 })) > 1_000, "repeated");
      assert.equal(await ceiling({ maxTokens: 50 }), 50);
    });

    test("gives later calls room to think once the vendor has reported thinking, or hidden it", async () => {
      for (const reply of [
        { usage: { output: 20, thoughts: 20 } },
        { text: [], finish: "length", usage: { output: 20 } },
      ]) {
        const thinker = createVendorModel(entry, http);
        vendor.reply(reply);
        for (let i = 0; i < 3; i++) await complete(thinker, call({ maxTokens: 50 }));
        assert.ok(ceilingOf(vendor.calls.at(-1)) > 1_000);
      }
    });

    test("gives the same text when the bytes arrive one by one", async () => {
      const text = ["Zoë ", "🎈漢", '\n\ndata: "}]'];
      for (const split of [1, 2, 3]) {
        vendor.reply({ text, split });
        assert.equal(textOf(await read(model)), text.join(""), `${split} bytes at a time`);
      }
    });

    test("keeps a connection for the next call", async () => {
      await ask(model);
      const before = vendor.connections;
      for (let i = 0; i < 5; i++) {
        await ask(model);
        await read(model);
      }
      // On a busy machine the end of a body may come after the next call, which then takes another connection.
      assert.ok(vendor.connections - before < 5);
    });
  });
}

test("keeps a configured path and adds the vendor's to an address without one", async () => {
  const vendor = await startVendor("openai");
  const seen = async (
    kind: ModelEntry["vendor"],
    path: string,
    more: Partial<ModelEntry> = {},
  ): Promise<string | undefined> => {
    const entry = vendor.entry({ vendor: kind, model: "m", baseUrl: vendor.url + path, ...more });
    const model = createVendorModel(entry, http);
    await ask(model).catch(() => {});
    return vendor.calls.at(-1)?.path;
  };
  assert.equal(await seen("openai", ""), "/v1/chat/completions");
  assert.equal(await seen("openai", "/"), "/v1/chat/completions");
  assert.equal(await seen("openai-compatible", "/own/v9"), "/own/v9/chat/completions");
  assert.equal(await seen("openai", "", { api: "responses" }), "/v1/responses");
  assert.equal(await seen("openai-compatible", "/own/v9", { api: "responses" }), "/own/v9/responses");
  assert.equal(await seen("anthropic", ""), "/v1/messages");
  assert.equal(await seen("anthropic", "/own"), "/own/messages");
  assert.equal(await seen("google", ""), "/v1beta/models/m:generateContent");
  assert.equal(await seen("google", "/own"), "/own/models/m:generateContent");
  await vendor.close();
});

test("cuts off an answer that is larger than its bound", async () => {
  const small = createHttpClient({ connectMs: 1_000, maxBodyBytes: 10_000, maxStreamBytes: 10_000 });
  const vendor = await startVendor("openai", { text: "x".repeat(50_000) });
  const model = createVendorModel(vendor.entry(), small);
  for (const streamed of BOTH) await assert.rejects(complete(model, call({ streamed })), /larger than 10000 bytes/);
  await vendor.close();
  await small.close();
});

test("cuts off a compressed answer that is larger than its bound once decompressed", async () => {
  const small = createHttpClient({ connectMs: 1_000, maxBodyBytes: 1_000_000, maxStreamBytes: 1_000_000 });
  const vendor = await startVendor("openai");
  const model = createVendorModel(vendor.entry(), small);
  for (const [encoding, compress] of Object.entries(COMPRESSORS)) {
    vendor.always({ raw: compress(`{${" ".repeat(5_000_000)}`), headers: { "content-encoding": encoding } });
    for (const streamed of BOTH)
      await assert.rejects(complete(model, call({ streamed })), { message: /larger than 1000000 bytes/ }, encoding);
  }
  await vendor.close();
  await small.close();
});

test("fails on an answer whose compression is broken, cut off or unknown", async () => {
  const vendor = await startVendor("openai");
  const model = createVendorModel(vendor.entry(), http);
  const whole = gzipSync(WIRES.openai.whole("all at once", {}));
  for (const [encoding, raw, retryable] of [
    ["gzip", Buffer.from("no gzip at all"), true],
    ["gzip", whole.subarray(0, -20), true],
    ["gzip", Buffer.alloc(0), true],
    ["br", whole, true],
    ["compress", whole, false],
    ["gzip, br", whole, false],
  ] as const) {
    for (const streamed of BOTH) {
      vendor.reply({ raw, headers: { "content-encoding": encoding } });
      await assert.rejects(complete(model, call({ streamed })), { name: "ModelError", retryable }, encoding);
    }
  }
  await vendor.close();
});

test("an offline model answers without a network", async () => {
  const model = createVendorModel(
    { name: "offline-fast", vendor: "offline", model: "offline-fast", tier: "fast", images: false, jsonSchema: true },
    http,
  );
  const prompt = { system: "", messages: [{ role: "user" as const, text: "What is 6 * 7?" }] };
  assert.match(await ask(model, { prompt }), /42/);
  assert.equal(endOf(await read(model, { prompt })).model, "offline-fast");
});
