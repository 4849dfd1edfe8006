import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { createRequire } from "node:module";
import type { Attributes, Context, SpanKind as Kind, Span } from "@opentelemetry/api";
import type { ExportResult } from "@opentelemetry/core";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import type { Signal } from "../concurrency/abort.ts";
import type { Parts } from "../concurrency/parts.ts";
import type { TracingConfig } from "../config/tracing.ts";
import { Failure } from "../contract/failure.ts";
import type { InternalErrors } from "./internal-errors.ts";
import { errorFacts, type Log } from "./log.ts";

/** The files that `prom-client` loads, too. With `import` these would be others of the same size. */
const api: typeof import("@opentelemetry/api") = createRequire(import.meta.url)("@opentelemetry/api");
const { context, isSpanContextValid, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = api;

const tracer = trace.getTracer("chorus");

/** Longest wait for the collector when tracing stops, in milliseconds. */
const FLUSH_MS = 2_000;

/** `ExportResultCode.SUCCESS` of @opentelemetry/core, which is loaded only when tracing starts. */
const EXPORT_SUCCESS = 0;
const EXPORT_FAILED = 1;

/** Gets what the tracing libraries throw. It must not affect the request. Undefined while nothing is traced. */
let internalErrors: InternalErrors | undefined;

/** Names of errors that end a span without a fault: the result was no longer needed. */
const NO_FAULTS: ReadonlySet<string> = new Set(["AbortError", "CallerGone", "CutShort"]);

export interface SpanOptions {
  /** `client`: the span is a call of another server. Default: `internal`, work of this process. */
  kind?: "client" | "internal";
  attributes?: Attributes;
  /** If this signal has aborted, its reason is recorded as the error, and not what was thrown because of the abort. */
  signal?: Signal | undefined;
}

/**
 * Runs a request as a span of the trace that its caller names in `traceparent`. Spans that start inside `run` are its
 * children. Without tracing nothing is recorded; the cost is then about 0.2 µs a request (docs/decisions/tracing.md).
 * @param name of low cardinality, such as `POST /v1/generate`
 */
export function traceRequest(
  name: string,
  headers: IncomingHttpHeaders,
  attributes: Attributes,
  run: () => Promise<void>,
): Promise<void> {
  return isTracing() ? recordRequest(name, headers, attributes, run) : run();
}

async function recordRequest(
  name: string,
  headers: IncomingHttpHeaders,
  attributes: Attributes,
  run: () => Promise<void>,
): Promise<void> {
  const parent = guarded(ROOT_CONTEXT, () => propagation.extract(ROOT_CONTEXT, headers));
  const span = start(name, { kind: SpanKind.SERVER, attributes }, parent);
  try {
    await context.with(trace.setSpan(parent, span), run);
  } finally {
    end(span);
  }
}

/** Runs one stage of a request as a span. Outside a recorded request it only runs `run`. */
export function traced<T>(name: string, run: () => Promise<T>, options?: SpanOptions): Promise<T>;
export function traced<T>(name: string, run: () => T | Promise<T>, options?: SpanOptions): T | Promise<T>;
export function traced<T>(name: string, run: () => T | Promise<T>, options: SpanOptions = {}): T | Promise<T> {
  return isRecording() ? recorded(name, run, options) : run();
}

async function recorded<T>(name: string, run: () => T | Promise<T>, options: SpanOptions): Promise<T> {
  const span = startChild(name, options);
  try {
    return await context.with(trace.setSpan(context.active(), span), run);
  } catch (error) {
    fail(span, error, options);
    throw error;
  } finally {
    end(span);
  }
}

/**
 * Like `traced`, for a generator. The span starts when the first part is requested and ends with the last one, or
 * when the reader leaves.
 */
export function tracedParts<T, R>(name: string, parts: Parts<T, R>, options: SpanOptions = {}): Parts<T, R> {
  return isRecording() ? recordParts(name, parts, options) : parts;
}

async function* recordParts<T, R>(
  name: string,
  parts: Parts<T, R>,
  options: SpanOptions,
): AsyncGenerator<T, R, undefined> {
  const span = startChild(name, options);
  // A generator runs in the context of the code that requests its next part.
  const inner = trace.setSpan(context.active(), span);
  try {
    for (;;) {
      const next = await context.with(inner, () => parts.next());
      if (next.done) return next.value;
      yield next.value;
    }
  } catch (error) {
    fail(span, error, options);
    throw error;
  } finally {
    await context.with(inner, () => parts.return?.());
    end(span);
  }
}

/**
 * Adds attributes to the active span; undefined values are left out. Never pass texts of callers or models, or
 * secrets.
 */
export function annotate(attributes: Attributes): void {
  if (!isTracing()) return;
  guarded(undefined, () => void trace.getActiveSpan()?.setAttributes(attributes));
}

/** Marks the active span as failed, unless the fault is the caller's. */
export function annotateFailure(error: unknown): void {
  const span = trace.getActiveSpan();
  if (span) fail(span, error, {});
}

/** Identifier of the current request's trace, 32 hex digits; undefined without tracing. */
export function traceId(): string | undefined {
  if (!isTracing()) return undefined;
  const span = guarded(undefined, () => trace.getActiveSpan()?.spanContext());
  return span && isSpanContextValid(span) ? span.traceId : undefined;
}

/** Headers that make another server's spans children of the active span; empty without tracing. */
export function traceHeaders(): Record<string, string> {
  if (!isTracing()) return NO_HEADERS;
  const carrier: Record<string, string> = {};
  guarded(undefined, () => propagation.inject(context.active(), carrier));
  // Leaves out `tracestate`, which comes from the caller and is not meant for vendors.
  return carrier.traceparent === undefined ? {} : { traceparent: carrier.traceparent };
}

const NO_HEADERS = {};

/** Whether tracing has started, which sets a propagator. It takes less time than to look for an active span. */
function isTracing(): boolean {
  return propagation.fields().length > 0;
}

/** Whether spans of the running request are recorded. */
export function isRecording(): boolean {
  return isTracing() && guarded(false, () => trace.getActiveSpan()?.isRecording() ?? false);
}

/** Calls the tracing libraries. @returns `fallback` where they throw; the error is counted and reported */
function guarded<T>(fallback: T, run: () => T): T {
  try {
    return run();
  } catch (error) {
    internalErrors?.add("trace", error);
    return fallback;
  }
}

/** Stands for a span that could not be started, and records nothing. */
const NO_SPAN = trace.wrapSpanContext(api.INVALID_SPAN_CONTEXT);

function start(name: string, options: { kind: Kind; attributes: Attributes }, parent: Context): Span {
  return guarded(NO_SPAN, () => tracer.startSpan(name, options, parent));
}

function startChild(name: string, { kind, attributes = {} }: SpanOptions): Span {
  return start(name, { kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes }, context.active());
}

function end(span: Span): void {
  guarded(undefined, () => span.end());
}

function fail(span: Span, thrown: unknown, { signal }: SpanOptions): void {
  const error: unknown = signal?.aborted ? signal.reason : thrown;
  const name = error instanceof Failure ? error.kind : error instanceof Error ? error.name : typeof error;
  if (NO_FAULTS.has(name)) return;
  guarded(undefined, () => {
    span.setAttribute("error.type", name);
    if (!(error instanceof Failure) || error.row.http >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  });
}

interface Tracing {
  /** Sends the remaining spans, for two seconds at most, and ends tracing. */
  stop(): Promise<void>;
}

/**
 * Starts to record traces and to send them to an OpenTelemetry collector. It loads the OpenTelemetry libraries, which
 * read `OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` from the environment. While the
 * collector is unavailable, spans beyond the queue are lost and one log line says so; requests are not affected.
 * @param errors gets what the libraries throw
 */
export async function startTracing(config: TracingConfig, log: Log, errors: InternalErrors): Promise<Tracing> {
  internalErrors = errors;
  const [sdk, core, { detectResources, envDetector, resourceFromAttributes }, hooks, { OTLPTraceExporter }] =
    await Promise.all([
      import("@opentelemetry/sdk-trace"),
      import("@opentelemetry/core"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/context-async-hooks"),
      import("@opentelemetry/exporter-trace-otlp-proto"),
    ]);
  const root = new sdk.TraceIdRatioBasedSampler(config.ratio);
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ "service.name": "chorus", "service.instance.id": randomUUID() }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: config.parentBased ? new sdk.ParentBasedSampler({ root }) : root,
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: logged(new OTLPTraceExporter(), log),
        maxQueueSize: config.maxQueueSize,
        maxExportBatchSize: config.maxBatchSize,
        scheduledDelayMillis: config.delayMs,
      }),
    ],
  });
  context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);

  return {
    async stop() {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, FLUSH_MS);
      // The exporter has already logged failures.
      provider.shutdown().then(resolve, resolve);
      await promise;
      clearTimeout(timer);
      trace.disable();
      context.disable();
      propagation.disable();
    },
  };
}

/**
 * Logs the first failure of an exporter and its recovery. It reports success in any case, because the processor would
 * print each error too.
 */
function logged(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      const ended = ({ code, error }: ExportResult) => {
        const hasFailed = code !== EXPORT_SUCCESS;
        if (hasFailed && !isFailing)
          log.warn(
            { status: statusOf(error), cause: errorFacts(error) },
            "the trace collector does not accept traces; they are lost until it does",
          );
        if (!hasFailed && isFailing) log.warn("the trace collector accepts traces again");
        isFailing = hasFailed;
        done({ code: EXPORT_SUCCESS });
      };
      try {
        exporter.export(spans, ended);
      } catch (error) {
        ended({ code: EXPORT_FAILED, error: error instanceof Error ? error : new Error(String(error)) });
      }
    },
    shutdown: () => exporter.shutdown(),
  };
}

/** The HTTP status of a collector's refusal. */
function statusOf(error: unknown): number | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "number" ? code : undefined;
}
