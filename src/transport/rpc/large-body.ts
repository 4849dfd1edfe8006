import type { IncomingMessage, ServerResponse } from "node:http";
import { CallerGone } from "../../service/request-context.ts";
import type { Blocks } from "../blocks.ts";
import type { RequestReader } from "../request-reader.ts";
import { callerOf } from "../tracked-request.ts";
import { prefixLength } from "../value-count.ts";
import type { RpcRequest } from "./request.ts";

/** A request while it is served. */
export interface Exchanged {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly tracked: RpcRequest;
  /** Aborts when the connection or the HTTP/2 stream closes. */
  readonly closed: AbortSignal;
}

/**
 * Starts to read a large body in a thread, because Connect would decode it on the event loop. The handler awaits
 * `received` of the request.
 * @returns the body of an empty message, for Connect
 */
export function readLarge(blocks: Blocks, exchanged: Exchanged, reader: RequestReader): Uint8Array {
  const { request, tracked, closed } = exchanged;
  const type = request.headers["content-type"] ?? "";
  const format = /json/.test(type) ? "json" : "proto";
  const isWrapped = prefixLength(type) > 0;
  const streamed = tracked.method === "stream_generate";
  const isRepeatable = !streamed && request.headers["idempotency-key"] !== undefined;
  const owner = callerOf(tracked.identity).workspaceId;
  const read = async () =>
    (await reader.read(blocks, { format, isWrapped, owner, signal: closed, streamed, isRepeatable })).request;
  tracked.received = read().catch((error) => {
    throw closed.aborted ? new CallerGone() : error;
  });
  // The handler may end before it awaits the request.
  tracked.received.catch(() => undefined);
  const empty = Buffer.from(format === "json" ? "{}" : "");
  return isWrapped ? Buffer.concat([Buffer.from([0, 0, 0, 0, empty.length]), empty]) : empty;
}
