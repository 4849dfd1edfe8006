import type { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { CallerGone } from "../../contract/endings.ts";
import { type Call, streamOf } from "./call.ts";
import { hasBody } from "./check-head.ts";
import { discardBody } from "./discard-body.ts";
import type { Reply } from "./format.ts";
import { standardRateHeaders } from "./rate-headers.ts";

const NONE: readonly string[] = [];

/** Sends the head of a response. Node writes a flat list as it is; other forms of headers it copies first. */
export function writeHead(
  call: Pick<Call, "request" | "response" | "requestId" | "unknown" | "format" | "limits">,
  status: number,
  headers: readonly string[],
): void {
  const { request, response, requestId, format } = call;
  if (!request.complete && !streamOf(response) && hasBody(request)) response.setHeader("Connection", "close");
  const others = format?.headers?.(call) ?? NONE;
  const limits = call.limits?.();
  const rates = limits ? [...standardRateHeaders(limits), ...(format?.rateHeaders?.(limits) ?? NONE)] : NONE;
  response.writeHead(status, [...headers, ...others, ...rates, "X-Request-Id", requestId]);
}

/** Sends a whole response. */
export function writeReply(call: Call, { status, headers, body, trailers }: Reply, stallMs: number): void {
  const { response } = call;
  writeHead(call, status, headers);
  if (trailers) response.addTrailers(trailers as NodeJS.Dict<string>);
  response.end(body);
  if (!response.writableFinished) endIfStalled(response, stallMs);
}

/**
 * Sends the response to a request whose body may not have been read. The rest of the body is dropped, because closing a
 * connection with unread bytes resets it, and the caller would lose the response.
 */
export async function writeRefusal(call: Call, reply: Reply, stallMs: number): Promise<void> {
  const { request, response } = call;
  const stream = streamOf(response);
  // A small body arrives together with the head. The connection can be used again then.
  if (!request.complete && !stream && hasBody(request)) await nextTurn();
  if (request.complete || (!stream && !hasBody(request))) return writeReply(call, reply, stallMs);
  if (stream) {
    writeReply(call, reply, stallMs);
    return endUnread(call);
  }
  writeHead(call, reply.status, reply.headers);
  endIfStalled(response, stallMs);
  response.write(reply.body);
  await discardBody(request);
  response.end();
}

/** Drops the rest of a request body after its response over HTTP/2, and closes the stream. */
export async function endUnread({ request, response }: Call): Promise<void> {
  const stream = streamOf(response);
  if (!stream || request.complete) return;
  // A reset sent right after the response would overtake its trailers.
  await discardBody(request);
  if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
}

/**
 * Ends the connection or the HTTP/2 stream when its reader takes nothing for `stallMs` milliseconds. A slow reader that
 * takes a part in this time stays.
 * @returns a function that switches that off
 */
export function endIfStalled(response: ServerResponse, stallMs: number): () => void {
  const stream = streamOf(response);
  if (!stream) {
    const { socket } = response;
    // After the response, Node sets the timeout of idle connections instead.
    socket?.setTimeout(stallMs);
    return () => socket?.setTimeout(0);
  }
  const cancel = () => stream.close(constants.NGHTTP2_CANCEL);
  stream.once("timeout", cancel).setTimeout(stallMs);
  return () => stream.off("timeout", cancel).setTimeout(0);
}

/**
 * Waits until the reader has taken what was written.
 * @throws CallerGone when the response closes or the deadline passes first, or nothing is taken for `stallMs`
 */
export function drained({ response, signal }: Pick<Call, "response" | "signal">, stallMs: number): Promise<void> {
  const keep = endIfStalled(response, stallMs);
  return new Promise((resolve, reject) => {
    const end = () => {
      response.off("drain", end);
      signal.removeEventListener("abort", end);
      keep();
      if (signal.aborted) reject(new CallerGone());
      else resolve();
    };
    response.on("drain", end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}

/** Ends a response that failed midway with an error, because a regular end would make it look complete. */
export function abortResponse(response: ServerResponse): void {
  const stream = streamOf(response);
  if (stream) stream.close(constants.NGHTTP2_CANCEL);
  else response.destroy();
}
