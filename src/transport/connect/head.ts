import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { Failure, invalid } from "../../contract/failure.ts";
import type { Call } from "../call/call.ts";
import type { Head } from "../call/format.ts";
import type { Method } from "../call/methods.ts";
import { methodNotAllowed } from "../call/route.ts";
import { decodeMessage } from "./decode.ts";
import { connectUnary, type Wire, wireOf } from "./encode.ts";

/** What a listener accepts. */
export interface Protocols {
  readonly grpc: boolean;
  /** Whether Connect requests must state the version of the protocol. */
  readonly requireVersion: boolean;
}

/** Longest delay of Node's timers, in milliseconds. A timer with a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const MEDIA_TYPES = {
  unary: "application/json or application/proto",
  stream: "application/connect+json or application/connect+proto",
};

/**
 * Selects the protocol of a request. Connect's unary methods without side effects also accept GET.
 * @throws Failure method_not_allowed or unsupported_media_type
 */
export function selectWire({ desc, isReadOnly }: Method, call: Call, { grpc }: Protocols): Wire {
  const { request, response } = call;
  const kind = desc.methodKind === "unary" ? "unary" : "stream";
  const isGet = isReadOnly && request.method === "GET";
  const allow = isReadOnly ? "POST, GET" : "POST";
  if (!isGet && request.method !== "POST") throw methodNotAllowed(response, allow);
  const wire = isGet ? getWire(new URLSearchParams(call.query)) : wireOf(request.headers["content-type"], kind);
  if (wire && (grpc || wire.protocol === "connect")) return wire;
  response.setHeader("Allow", allow);
  const types = MEDIA_TYPES[kind] + (grpc ? ", or application/grpc or application/grpc-web with +json or +proto" : "");
  const parameter = isGet ? "the query parameter encoding as json or proto" : `Content-Type: ${types}`;
  throw new Failure("unsupported_media_type", { message: `The request must state ${parameter}.` });
}

/**
 * Reads the headers, or the query of a GET request, that Connect and gRPC define.
 * @throws Failure invalid_request or unsupported_compression
 */
export function readHead(call: Call, { desc }: Method, wire: Wire, { requireVersion }: Protocols): Head {
  const query = call.request.method === "GET" ? new URLSearchParams(call.query) : undefined;
  if (requireVersion && wire.protocol === "connect") checkVersion(call.header("connect-protocol-version"), query);
  const encoding = query ? query.get("compression") : call.header(wire.encodingHeader);
  if (encoding && encoding !== "identity") throw new Failure("unsupported_compression");
  const timeoutMs = timeoutOf(call, wire);
  if (!query) return { timeoutMs };
  const message = Buffer.from(query.get("message") ?? "", query.get("base64") === "1" ? "base64url" : "utf8");
  const form = { name: wire.json ? ("json" as const) : ("proto" as const), isWrapped: false };
  return { timeoutMs, decoded: decodeMessage(desc.input, message, form) };
}

function getWire(query: URLSearchParams): Wire | undefined {
  const encoding = query.get("encoding");
  return encoding === "json" || encoding === "proto" ? connectUnary(encoding === "json") : undefined;
}

function checkVersion(header: string | undefined, query: URLSearchParams | undefined): void {
  if (query ? query.get("connect") === "v1" : header === "1") return;
  const field = query ? "connect" : "connect-protocol-version";
  throw invalid(field, `The request must state the version of the protocol: ${field} must be ${query ? "v1" : "1"}.`);
}

/** Undefined for a timeout that is longer than a timer can wait. */
function timeoutOf(call: Call, { protocol }: Wire): number | undefined {
  const name = protocol === "grpc" ? "grpc-timeout" : "connect-timeout-ms";
  const text = call.header(name);
  if (text === undefined) return undefined;
  const parse = protocol === "grpc" ? parseGrpcTimeout : parseConnectTimeout;
  const { timeoutMs = 0, error } = parse(text, Number.MAX_SAFE_INTEGER);
  if (error) throw invalid(name, `${name} must be a timeout as ${protocol === "grpc" ? "gRPC" : "Connect"} writes it.`);
  return timeoutMs > MAX_TIMER_MS ? undefined : timeoutMs;
}
