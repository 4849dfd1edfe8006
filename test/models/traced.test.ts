import assert from "node:assert/strict";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, beforeEach, test } from "vitest";
import type { ModelEntry } from "../../src/config/config.ts";
import { ModelError } from "../../src/models/model-error.ts";
import { tracedModel } from "../../src/models/traced.ts";
import { traceRequest } from "../../src/tracing.ts";
import { call, collect, fakeModel, parts, result, untilAborted } from "./fake-model.ts";

const ENTRY: ModelEntry = {
  name: "house model",
  vendor: "google",
  model: "gemini-9",
  tier: "strong",
  apiKey: "vendor-secret",
  images: false,
  jsonSchema: true,
};

const exporter = new InMemorySpanExporter();
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
afterAll(() => {
  trace.disable();
  propagation.disable();
  context.disable();
});
beforeEach(() => exporter.reset());

/** Runs in a request that is recorded, and gives the span of the one call in it. */
async function spanOf(run: () => Promise<unknown>) {
  await traceRequest("request", {}, {}, async () => void (await run()));
  const [span, root, ...others] = exporter.getFinishedSpans();
  assert.equal(others.length, 0);
  assert.equal(root?.name, "request");
  return span ?? assert.fail("no span");
}

const read = async (model: LanguageModelV4, options = call()) =>
  collect((await model.doStream(options)).stream as never);

test("a call is described by the conventions for generative AI, and its trace handed on beside the headers of the call", async () => {
  const fake = fakeModel({ generate: [async () => result("Hi.", "length")], stream: [() => parts("H", "i")] });
  const model = tracedModel(fake, ENTRY);
  const options = call({ headers: { "x-own": "1" }, maxOutputTokens: 50, temperature: 0.5 });
  for (const [run, stream, reason] of [
    [() => model.doGenerate(options), false, "length"],
    [() => read(model, options), true, "stop"],
  ] as const) {
    exporter.reset();
    const span = await spanOf(run as () => Promise<unknown>);
    assert.equal(span.name, "chat gemini-9");
    assert.equal(span.kind, SpanKind.CLIENT);
    assert.deepEqual(span.attributes, {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "gcp.gemini",
      "gen_ai.request.model": "gemini-9",
      "gen_ai.request.stream": stream,
      "gen_ai.request.max_tokens": 50,
      "gen_ai.request.temperature": 0.5,
      "gen_ai.response.finish_reasons": [reason],
      "gen_ai.usage.input_tokens": 3,
      "gen_ai.usage.cache_read.input_tokens": 0,
      "gen_ai.usage.output_tokens": 2,
      "chorus.model": "house model",
      "chorus.tier": "strong",
      "chorus.outcome": "ok",
    });
    const { traceId, spanId } = span.spanContext();
    assert.deepEqual(fake.calls.at(-1)?.headers, { "x-own": "1", traceparent: `00-${traceId}-${spanId}-01` });
  }
});

test("what has failed is told from what nobody waited for any more", async () => {
  const late = new ModelError("The model was silent for too long.", { retryable: true });
  const gone = new DOMException("The answer is no longer wanted.", "AbortError");
  for (const [reason, outcome, type] of [
    [late, "timed_out", late.name],
    [gone, "left", undefined],
    [undefined, "failed", "TypeError"],
  ] as const) {
    const wait = async (signal: AbortSignal | undefined) => {
      if (reason === undefined) throw new TypeError("seventh sea");
      return untilAborted(signal);
    };
    const model = tracedModel(
      fakeModel({
        generate: [({ abortSignal }) => wait(abortSignal)],
        stream: [
          async function* ({ abortSignal }) {
            yield await wait(abortSignal);
          },
        ],
      }),
      ENTRY,
    );
    for (const run of [(options = call()) => model.doGenerate(options), (options = call()) => read(model, options)]) {
      exporter.reset();
      const controller = new AbortController();
      const span = await spanOf(async () => {
        const running = run(call({ abortSignal: controller.signal }));
        if (reason) controller.abort(reason);
        await assert.rejects(async () => running);
      });
      assert.equal(span.attributes["chorus.outcome"], outcome);
      assert.equal(span.attributes["error.type"], type);
      assert.equal(span.status.code, type ? SpanStatusCode.ERROR : SpanStatusCode.UNSET);
      assert.doesNotMatch(JSON.stringify([span.attributes, span.status, span.events]), /seventh/);
    }
  }
});

test("a reader that leaves a stream ends its span, and the stream", async () => {
  let ended = false;
  const model = tracedModel(
    fakeModel({
      stream: [
        async function* () {
          try {
            yield* parts("H", "i");
          } finally {
            ended = true;
          }
        },
      ],
    }),
    ENTRY,
  );
  const span = await spanOf(async () => {
    for await (const _ of (await model.doStream(call())).stream) break;
  });
  assert.equal(span.attributes["chorus.outcome"], "left");
  assert.equal(span.status.code, SpanStatusCode.UNSET);
  assert.ok(ended);
});

test("an offline model is no other server, and outside a request that is recorded a call stays as it is", async () => {
  const fake = fakeModel({ generate: [async () => result("Hi.")], stream: [() => parts("Hi.")] });
  const offline = tracedModel(fake, { ...ENTRY, vendor: "offline" });
  assert.equal((await spanOf(async () => offline.doGenerate(call()))).kind, SpanKind.INTERNAL);
  exporter.reset();
  const options = call();
  await offline.doGenerate(options);
  assert.equal(fake.calls.at(-1), options);
  await read(offline, options);
  assert.equal(fake.calls.at(-1), options);
  assert.deepEqual(exporter.getFinishedSpans(), []);
});
