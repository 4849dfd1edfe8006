import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { CallerGone } from "../../service/request-context.ts";
import { discardBody } from "../discard-body.ts";

interface Connection {
  /** Aborts when the connection or the HTTP/2 stream closes. */
  readonly closed: AbortSignal;
  /** Time after which a reader that takes nothing counts as gone, in milliseconds. */
  readonly stallMs: number;
}

/**
 * Sends a response that a Connect handler has produced, as fast as the reader takes it.
 * @throws CallerGone when the reader leaves or stalls
 */
export async function sendResponse(
  { status, header, body, trailer }: UniversalServerResponse,
  request: IncomingMessage,
  response: ServerResponse,
  connection: Connection,
): Promise<void> {
  const stream = streamOf(response);
  const isRefused = !request.complete;
  if (isRefused && !stream) response.setHeader("connection", "close");
  response.writeHead(status, Object.fromEntries(header ?? []));
  for await (const chunk of body ?? []) {
    // Throwing inside the loop also ends the handler's stream.
    if (connection.closed.aborted) throw new CallerGone();
    if (!response.write(chunk)) await eventOf(response, "drain", connection);
  }
  if (trailer) response.addTrailers(Object.fromEntries(trailer));
  if (isRefused && !stream) await discardBody(request);
  response.end();
  if (isRefused && stream) {
    // A reset sent right after the response would overtake its trailers.
    await discardBody(request);
    if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
  }
  await eventOf(response, "finish", connection);
}

/** @throws CallerGone when the response closes first, or nothing happens for `stallMs` */
function eventOf(response: ServerResponse, event: "drain" | "finish", { closed, stallMs }: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (isGone: boolean) => {
      clearTimeout(timer);
      response.off(event, onEvent);
      closed.removeEventListener("abort", onGone);
      if (isGone) reject(new CallerGone());
      else resolve();
    };
    const onEvent = () => end(false);
    const onGone = () => end(true);
    const timer = setTimeout(onGone, stallMs);
    response.on(event, onEvent);
    closed.addEventListener("abort", onGone);
    if (event === "finish" && response.writableFinished) onEvent();
    else if (closed.aborted) onGone();
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
