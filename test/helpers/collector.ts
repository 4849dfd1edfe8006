import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import protobuf from "protobufjs";
import type { Lifetime } from "./lifetime.ts";
import { until } from "./until.ts";

/** One span as the collector received it. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  /** Empty without a parent. */
  parentSpanId: string;
  traceState: string;
  name: string;
  kind: "INTERNAL" | "SERVER" | "CLIENT";
  status: "UNSET" | "OK" | "ERROR";
  attributes: Record<string, unknown>;
  /** Attributes of the process that sent the span. */
  resource: Record<string, unknown>;
  /** Milliseconds since 1970. */
  startedMs: number;
  endedMs: number;
}

export interface Collector {
  url: string;
  spans: CollectedSpan[];
  /** Every request that was received. */
  requests: Array<{ path: string; headers: IncomingHttpHeaders }>;
  /** Number of connections since the start. */
  readonly connections: number;
  /** Status of the responses. Default: 200. */
  status: number;
  /** Waits for the server span that matches, which ends last in its trace, and returns all spans of the trace. */
  trace(matches: (span: CollectedSpan) => boolean): Promise<CollectedSpan[]>;
}

/** The part of opentelemetry/proto/collector/trace/v1/trace_service.proto and its imports that the tests read. */
const Request = protobuf
  .parse(`
    syntax = "proto3";
    message Request { repeated ResourceSpans resource_spans = 1; }
    message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
    message Resource { repeated KeyValue attributes = 1; }
    message ScopeSpans { repeated Span spans = 2; }
    message Span {
      bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
      Kind kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
      repeated KeyValue attributes = 9; Status status = 15;
      enum Kind { UNSPECIFIED = 0; INTERNAL = 1; SERVER = 2; CLIENT = 3; }
    }
    message Status { Code code = 3; enum Code { UNSET = 0; OK = 1; ERROR = 2; } }
    message KeyValue { string key = 1; AnyValue value = 2; }
    message AnyValue {
      oneof value {
        string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
        ArrayValue array_value = 5;
      }
    }
    message ArrayValue { repeated AnyValue values = 1; }
  `)
  .root.lookupType("Request");

interface Value {
  value?: "stringValue" | "boolValue" | "intValue" | "doubleValue" | "arrayValue";
  arrayValue?: { values: Value[] };
  [name: string]: unknown;
}
type Attributes = Array<{ key: string; value: Value }>;
interface Spans {
  resourceSpans: Array<{
    resource: { attributes: Attributes };
    scopeSpans: Array<{ spans: Array<Record<string, string> & { attributes: Attributes; status?: { code: string } }> }>;
  }>;
}

/** Starts an OpenTelemetry collector (OTLP over HTTP, protobuf) that records spans and requests. */
export async function startCollector(t: Lifetime): Promise<Collector> {
  let connections = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    collector.requests.push({ path: request.url ?? "", headers: request.headers });
    if (collector.status === 200) collector.spans.push(...spansOf(Buffer.concat(chunks)));
    response.writeHead(collector.status, { "content-type": "application/x-protobuf" }).end();
  });
  server.on("connection", () => {
    connections++;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    requests: [],
    get connections() {
      return connections;
    },
    status: 200,
    async trace(matches) {
      const find = () => collector.spans.find((span) => span.kind === "SERVER" && matches(span));
      await until(find);
      return collector.spans.filter(({ traceId }) => traceId === find()?.traceId);
    },
  };
  return collector;
}

function spansOf(body: Buffer): CollectedSpan[] {
  const options = { longs: String, enums: String, bytes: String, defaults: true, arrays: true, oneofs: true };
  const { resourceSpans } = Request.toObject(Request.decode(body), options) as Spans;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parentSpanId: hex(span.parentSpanId),
        traceState: span.traceState ?? "",
        name: span.name ?? "",
        kind: span.kind as CollectedSpan["kind"],
        status: (span.status?.code ?? "UNSET") as CollectedSpan["status"],
        attributes: record(span.attributes),
        resource: record(resource.attributes),
        startedMs: Number(span.startTimeUnixNano) / 1e6,
        endedMs: Number(span.endTimeUnixNano) / 1e6,
      })),
    ),
  );
}

function hex(base64 = ""): string {
  return Buffer.from(base64, "base64").toString("hex");
}

function record(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, attributeValue(value)]));
}

function attributeValue(value: Value): unknown {
  if (value.value === "arrayValue") return value.arrayValue?.values.map(attributeValue);
  const given = value.value && value[value.value];
  return value.value === "intValue" ? Number(given) : given;
}
