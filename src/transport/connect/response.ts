import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Signal } from "../../concurrency/abort.ts";
import { CallerGone } from "../../service/request-context.ts";
import { discardBody } from "../call/discard-body.ts";
import type { Reply } from "./wire.ts";

/** One request and its response, over HTTP/1.1 or HTTP/2. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Aborts when the connection or the HTTP/2 stream closes, or the caller's deadline passes. */
  readonly signal: Signal;
  /** Time after which a reader that takes nothing counts as gone, in milliseconds. */
  readonly stallMs: number;
}

/** Sends the head of a response, unless it has been sent. */
export function sendHead({ request, response, requestId }: Exchange, status: number, headers: Reply["headers"]): void {
  if (response.headersSent) return;
  if (!request.complete && !streamOf(response)) response.setHeader("connection", "close");
  // Set before, Node would copy the others to it.
  response.writeHead(status, { ...headers, "x-request-id": requestId });
}

/** Ends a response with its last bytes. A body that has not been read to its end is dropped. */
export async function sendReply(exchange: Exchange, { status, headers, body, trailers }: Reply): Promise<void> {
  const { request, response, stallMs } = exchange;
  const isRefused = !request.complete;
  sendHead(exchange, status, headers);
  if (trailers) response.addTrailers(trailers as NodeJS.Dict<string>);
  if (isRefused) {
    endIfStalled(response, stallMs);
    await endRefused(request, response, body);
    return;
  }
  response.end(body);
  if (!response.writableFinished) endIfStalled(response, stallMs);
}

async function endRefused(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
  const stream = streamOf(response);
  if (!stream) {
    response.write(body);
    await discardBody(request);
    response.end();
    return;
  }
  response.end(body);
  // A reset sent right after the response would overtake its trailers.
  await discardBody(request);
  if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Ends the connection or the HTTP/2 stream when its reader takes nothing for `stallMs` milliseconds. */
function endIfStalled(response: ServerResponse, stallMs: number): void {
  const stream = streamOf(response);
  if (stream) stream.setTimeout(stallMs, () => stream.close(constants.NGHTTP2_CANCEL));
  // After the response, Node sets the timeout of idle connections instead.
  else response.socket?.setTimeout(stallMs);
}

/**
 * Waits until the reader has taken what was written.
 * @throws CallerGone when the response closes or the deadline passes first, or nothing happens for `stallMs`
 */
export function drained({ response, signal, stallMs }: Exchange): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (isGone: boolean) => {
      clearTimeout(timer);
      response.off("drain", onDrain);
      signal.removeEventListener("abort", onGone);
      if (isGone) reject(new CallerGone());
      else resolve();
    };
    const onDrain = () => end(false);
    const onGone = () => end(true);
    const timer = setTimeout(onGone, stallMs);
    response.on("drain", onDrain);
    signal.addEventListener("abort", onGone);
    if (signal.aborted) onGone();
  });
}

/** Ends a response that failed midway with an error, because a regular end would make it look complete. */
export function abortResponse(response: ServerResponse): void {
  const stream = streamOf(response);
  if (stream) stream.close(constants.NGHTTP2_CANCEL);
  else response.destroy();
}

/** The HTTP/2 stream of a response; undefined for HTTP/1.1. */
function streamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return (response as { stream?: ServerHttp2Stream }).stream;
}
