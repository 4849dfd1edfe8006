import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as web from "@connectrpc/connect-web";
import { pino } from "pino";
import { type FailureDetail, FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import {
  type BadRequest,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type RetryInfo,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import type { Config } from "../../src/config/config.ts";
import { createTelemetry } from "../../src/telemetry/create.ts";
import { createInternalListener } from "../../src/transport/listeners/internal.ts";
import { createLargeReader } from "../../src/transport/reading/reader.ts";
import { type Listener, listenBoth } from "../../src/transport/socket/listen.ts";
import type { Lifetime } from "./lifetime.ts";
import { type SomeServices, servicesWith } from "./services.ts";

/** Transports of a Connect client to the internal listener, by name: every protocol and HTTP version. */
export function transports(baseUrl: string) {
  return {
    "Connect over HTTP/1.1": createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    "Connect as JSON": createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
    "Connect over HTTP/2": createConnectTransport({ baseUrl, httpVersion: "2", useHttpGet: true }),
    gRPC: createGrpcTransport({ baseUrl }),
    "gRPC-Web over HTTP/1.1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    "gRPC-Web over HTTP/2": createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
    "Connect over fetch": web.createConnectTransport({ baseUrl, useHttpGet: true }),
    "gRPC-Web over fetch": web.createGrpcWebTransport({ baseUrl }),
  } satisfies Record<string, Transport>;
}

/** A transport to the internal listener that sends a token with each call. */
export function transportWith(rpcUrl: string, token: string): Transport {
  return createConnectTransport({
    baseUrl: rpcUrl,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      },
    ],
  });
}

/** The names of `transports`. */
export const TRANSPORTS = Object.keys(transports("http://127.0.0.1")) as (keyof ReturnType<typeof transports>)[];

export interface RpcFailure {
  code: string;
  message: string;
  detail: FailureDetail | undefined;
  /** The standard details of `google.rpc`. */
  info: ErrorInfo | undefined;
  retry: RetryInfo | undefined;
  badRequest: BadRequest | undefined;
  metadata: Headers;
}

/** Returns the failure of a call. @throws Error when the call succeeds or throws anything but a ConnectError */
export async function rpcFailure(call: Promise<unknown> | AsyncIterable<unknown>): Promise<RpcFailure> {
  try {
    if (Symbol.asyncIterator in call) for await (const _ of call);
    else await call;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const { rawMessage: message, metadata } = error;
    return {
      code: Code[error.code] ?? "",
      message,
      detail: error.findDetails(FailureDetailSchema)[0],
      info: error.findDetails(ErrorInfoSchema)[0],
      retry: error.findDetails(RetryInfoSchema)[0],
      badRequest: error.findDetails(BadRequestSchema)[0],
      metadata,
    };
  }
  throw new Error("The call did not fail.");
}

/** Returns a detail of a `google.rpc.Status` in bytes. @throws Error when the status has no such detail */
export function statusDetail<D extends DescMessage>(status: Uint8Array, schema: D): MessageShape<D> {
  for (const any of fromBinary(StatusSchema, status).details) {
    const detail = anyUnpack(any, schema);
    if (detail) return detail;
  }
  throw new Error(`The status has no ${schema.typeName}.`);
}

/**
 * Serves the internal listener in this process with the given services. Every key and token is valid unless `services`
 * has its own `authorize` functions.
 */
export async function serveRpc(
  t: Lifetime,
  services: SomeServices,
  config: Partial<Pick<Config, "bodyBudgetBytes">> & { stallMs?: number; headersMs?: number } = {},
): Promise<Listener> {
  const { stallMs = 30_000, headersMs = 2_000, bodyBudgetBytes = 256 * 1024 * 1024 } = config;
  const stream = { headersMs, keepAliveMs: 15_000, stallMs };
  const rpc = { host: "127.0.0.1", port: 0, names: [] };
  const limits = { bodyBudgetBytes, body: { idleMs: 10_000, totalMs: 300_000 }, stream, rpc };
  const log = pino({ level: "silent" });
  const reader = createLargeReader();
  const handler = createInternalListener(servicesWith(services), limits, log, createTelemetry(), reader);
  const connections = { max: 1_000, onShed: () => undefined };
  const listener = await listenBoth(handler, "127.0.0.1", 0, connections);
  t.onTestFinished(async () => {
    const closed = listener.close();
    listener.destroy();
    await closed;
    await reader.close();
  });
  return listener;
}
