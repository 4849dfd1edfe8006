import type { IncomingMessage } from "node:http";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { Failure, invalid } from "../../contract/failure.ts";
import { methodNotAllowed } from "../rest/failure.ts";
import type { Method } from "./method.ts";
import { connectUnary, type Wire, wireOf } from "./wire.ts";

/** What a listener accepts. */
export interface Protocols {
  /** Whether gRPC and gRPC-Web are served besides Connect. */
  readonly grpc: boolean;
  /** Whether Connect requests must state the version of the protocol. */
  readonly requireVersion: boolean;
}

/** What the head of a request says about the call. */
export interface Terms {
  readonly wire: Wire;
  /** The caller's deadline from now, in milliseconds. */
  readonly timeoutMs: number | undefined;
  /** The message of a GET request of Connect, which has no body. */
  readonly message: Buffer | undefined;
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
export function selectWire(method: Method, request: IncomingMessage, { grpc }: Protocols): Wire {
  const { desc, isReadOnly } = method;
  const kind = desc.methodKind === "unary" ? "unary" : "stream";
  const isGet = isReadOnly && request.method === "GET";
  if (!isGet && request.method !== "POST") throw methodNotAllowed(allowedMethods(method));
  const wire = isGet ? getWire(queryOf(request)) : wireOf(request.headers["content-type"], kind);
  if (wire && (grpc || wire.protocol === "connect")) return wire;
  const types = MEDIA_TYPES[kind] + (grpc ? ", or application/grpc or application/grpc-web with +json or +proto" : "");
  const parameter = isGet ? "the query parameter encoding as json or proto" : `Content-Type: ${types}`;
  throw new Failure("unsupported_media_type", { message: `The request must state ${parameter}.` });
}

/** HTTP methods for the header `Allow`. */
export function allowedMethods({ isReadOnly }: Method): string {
  return isReadOnly ? "POST, GET" : "POST";
}

/**
 * Reads the headers, or the query of a GET request, that Connect and gRPC define.
 * @throws Failure invalid_request or unsupported_compression
 */
export function readTerms(request: IncomingMessage, wire: Wire, { requireVersion }: Protocols): Terms {
  const { headers } = request;
  const query = request.method === "GET" ? queryOf(request) : undefined;
  if (requireVersion && wire.protocol === "connect") checkVersion(headers["connect-protocol-version"], query);
  const encoding = query ? query.get("compression") : headers[wire.encodingHeader];
  if (encoding && encoding !== "identity") throw new Failure("unsupported_compression");
  const text = query?.get("message") ?? "";
  const message = query && Buffer.from(text, query.get("base64") === "1" ? "base64url" : "utf8");
  return { wire, timeoutMs: timeoutOf(request, wire), message };
}

function queryOf({ url = "" }: IncomingMessage): URLSearchParams {
  return new URLSearchParams(url.split("?", 2)[1] ?? "");
}

function getWire(query: URLSearchParams): Wire | undefined {
  const encoding = query.get("encoding");
  return encoding === "json" || encoding === "proto" ? connectUnary(encoding === "json") : undefined;
}

function checkVersion(header: string | string[] | undefined, query: URLSearchParams | undefined): void {
  if (query ? query.get("connect") === "v1" : header === "1") return;
  const field = query ? "connect" : "connect-protocol-version";
  throw invalid(field, `The request must state the version of the protocol: ${field} must be ${query ? "v1" : "1"}.`);
}

/** Undefined for a timeout that is longer than a timer can wait. */
function timeoutOf({ headers }: IncomingMessage, { protocol }: Wire): number | undefined {
  const name = protocol === "grpc" ? "grpc-timeout" : "connect-timeout-ms";
  const text = headers[name]?.toString();
  if (text === undefined) return undefined;
  const parse = protocol === "grpc" ? parseGrpcTimeout : parseConnectTimeout;
  const { timeoutMs = 0, error } = parse(text, Number.MAX_SAFE_INTEGER);
  if (error) throw invalid(name, `${name} must be a timeout as ${protocol === "grpc" ? "gRPC" : "Connect"} writes it.`);
  return timeoutMs > MAX_TIMER_MS ? undefined : timeoutMs;
}
