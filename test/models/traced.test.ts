import assert from "node:assert/strict";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, beforeEach, test } from "vitest";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import type { Model } from "../../src/models/port/model.ts";
import { ModelError } from "../../src/models/port/model-error.ts";
import { tracedModel } from "../../src/models/traced.ts";
import { traceHeaders, traceRequest } from "../../src/telemetry/tracing.ts";
import { otelApi } from "../helpers/otel-api.ts";
import { call, collect, end, fakeModel, pieces, text, untilAborted } from "./fake-model.ts";

const { context, propagation, SpanKind, SpanStatusCode, trace } = otelApi;

const ENTRY: ModelEntry = {
  name: "our model",
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

/** Runs one call in a recorded request and gives its span. */
async function spanOf(run: () => Promise<unknown>) {
  await traceRequest("request", {}, {}, async () => void (await run()));
  const [span, root, ...others] = exporter.getFinishedSpans();
  assert.equal(others.length, 0);
  assert.equal(root?.name, "request");
  return span ?? assert.fail("no span");
}

const read = (model: Model, options = call()) => collect(model.ask(options));

test("describes a call by the conventions for generative AI, and makes the vendor's spans its children", async () => {
  for (const streamed of [false, true]) {
    exporter.reset();
    const headers: unknown[] = [];
    const fake = fakeModel(() => {
      headers.push(traceHeaders());
      return [text("H"), text("i"), end("length")];
    });
    const model = tracedModel(fake, ENTRY);
    const span = await spanOf(() => read(model, call({ streamed, maxTokens: 50, temperature: 0.5 })));
    assert.equal(span.name, "chat gemini-9");
    assert.equal(span.kind, SpanKind.CLIENT);
    assert.deepEqual(span.attributes, {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "gcp.gemini",
      "gen_ai.request.model": "gemini-9",
      "gen_ai.request.stream": streamed,
      "gen_ai.request.max_tokens": 50,
      "gen_ai.request.temperature": 0.5,
      "gen_ai.response.finish_reasons": ["length"],
      "gen_ai.usage.input_tokens": 3,
      "gen_ai.usage.cache_read.input_tokens": 0,
      "gen_ai.usage.output_tokens": 2,
      "chorus.model": "our model",
      "chorus.tier": "strong",
      "chorus.outcome": "ok",
    });
    const { traceId, spanId } = span.spanContext();
    assert.deepEqual(headers, [{ traceparent: `00-${traceId}-${spanId}-01` }]);
  }
});

test("leaves out figures that the vendor did not report", async () => {
  const model = tracedModel(
    fakeModel(() => [end("stop", { usage: undefined })]),
    ENTRY,
  );
  const span = await spanOf(() => read(model));
  assert.ok(!Object.keys(span.attributes).some((name) => name.startsWith("gen_ai.usage")));
});

test("tells a failure from a timeout and from a call that is no longer needed", async () => {
  const late = new ModelError("The model was silent for too long.", { retryable: true });
  const gone = new DOMException("The answer is no longer wanted.", "AbortError");
  for (const [reason, outcome, type] of [
    [late, "timed_out", late.name],
    [gone, "left", undefined],
    [undefined, "failed", "TypeError"],
  ] as const) {
    exporter.reset();
    const model = tracedModel(
      fakeModel(async (call) => {
        if (reason === undefined) throw new TypeError("secret words");
        return untilAborted(call);
      }),
      ENTRY,
    );
    const controller = new AbortController();
    const span = await spanOf(async () => {
      const running = read(model, call({ signal: controller.signal }));
      if (reason) controller.abort(reason);
      await assert.rejects(running);
    });
    assert.equal(span.attributes["chorus.outcome"], outcome);
    assert.equal(span.attributes["error.type"], type);
    assert.equal(span.status.code, type ? SpanStatusCode.ERROR : SpanStatusCode.UNSET);
    assert.doesNotMatch(JSON.stringify([span.attributes, span.status, span.events]), /secret/);
  }
});

test("ends the span and the call when the reader leaves", async () => {
  let isEnded = false;
  const model = tracedModel(
    fakeModel(async function* () {
      try {
        yield* pieces("H", "i");
      } finally {
        isEnded = true;
      }
    }),
    ENTRY,
  );
  const span = await spanOf(async () => {
    for await (const _ of model.ask(call())) break;
  });
  assert.equal(span.attributes["chorus.outcome"], "left");
  assert.equal(span.status.code, SpanStatusCode.UNSET);
  assert.ok(isEnded);
});

test("marks the call of an offline model as internal", async () => {
  const offline = tracedModel(
    fakeModel(() => pieces("Hi.")),
    { ...ENTRY, vendor: "offline" },
  );
  assert.equal((await spanOf(() => read(offline))).kind, SpanKind.INTERNAL);
});

test("records nothing outside a recorded request", async () => {
  const fake = fakeModel(() => pieces("Hi."));
  const options = call();
  assert.deepEqual(await read(tracedModel(fake, ENTRY), options), pieces("Hi."));
  assert.equal(fake.calls[0], options);
  assert.deepEqual(exporter.getFinishedSpans(), []);
});
