import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { Signal } from "../concurrency/abort.ts";
import { Lanes } from "./lanes.ts";
import { type HttpResponse, VendorResponse } from "./vendor-response.ts";

export interface HttpOptions {
  /** Longest time for opening a connection, TLS included, in milliseconds. */
  connectMs: number;
  /** Resolves the names of vendors. Default: `dns.lookup` for each connection. */
  lookup?: LookupFunction | undefined;
  /** Connections to one vendor at a time; further calls wait for one. Default: any, `CallLimit` limits the calls. */
  connections?: number;
  /**
   * Largest body of a whole completion, in bytes, of a compressed one those before and after decompression together.
   * Default 16 MiB.
   */
  maxBodyBytes?: number;
  /** Largest body of a stream over its whole life, in bytes. Default 64 MiB. */
  maxStreamBytes?: number;
}

export interface HttpRequest {
  /** Scheme, host and port, such as `https://api.openai.com`. */
  origin: string;
  /** Path and query of the request target. */
  path: string;
  headers: Record<string, string>;
  /** Text, or the bytes of a large one in chunks. */
  body: string | readonly Buffer[];
  signal: Signal;
  streamed: boolean;
}

export interface HttpClient {
  /** Sends a POST request. It follows no redirect, and decompresses the answer. @throws as `HttpResponse.read` */
  post(request: HttpRequest): Promise<HttpResponse>;
  /** Sends a GET request in the same way. */
  get(request: Omit<HttpRequest, "body" | "streamed">): Promise<HttpResponse>;
  /** Closes all connections; requests under way fail. */
  close(): Promise<void>;
}

/** Creates a client on undici's `dispatch`. docs/decisions/wire.md has the reasons and the figures. */
export function createHttpClient(options: HttpOptions): HttpClient {
  const {
    connectMs,
    lookup,
    connections = null,
    maxBodyBytes = 16 * 1024 * 1024,
    maxStreamBytes = 64 * 1024 * 1024,
  } = options;
  const lanes = new Lanes({
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 30_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: connectMs, ...(lookup ? { lookup } : {}) },
  });

  function send(origin: string, request: Dispatcher.DispatchOptions, signal: Signal, maxBytes: number) {
    const response = new VendorResponse(signal, maxBytes);
    const opened = response.opened();
    if (!signal.aborted) response.dispatch(request, lanes.take(origin));
    return opened;
  }

  return {
    post({ origin, path, headers, body, signal, streamed }) {
      const request: Dispatcher.DispatchOptions = {
        origin,
        path,
        method: "POST",
        headers: typeof body === "string" ? headers : { ...headers, "content-length": `${lengthOf(body)}` },
        body: typeof body === "string" ? body : Readable.from(body, { objectMode: false }),
      };
      return send(origin, request, signal, streamed ? maxStreamBytes : maxBodyBytes);
    },
    get: ({ origin, path, headers, signal }) =>
      send(origin, { origin, path, method: "GET", headers }, signal, maxBodyBytes),
    close: () => lanes.close(),
  };
}

function lengthOf(chunks: readonly Buffer[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}
