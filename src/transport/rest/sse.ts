import type { ServerResponse } from "node:http";
import type { Config } from "../../config/config.ts";
import { type Failure, toFailure } from "../../contract/failure.ts";
import { CallerGone, type GenerateEvent } from "../../service/request-context.ts";
import { onceAdmitted } from "../call/head-timer.ts";
import type { Exchange } from "./handler.ts";
import { endIfStalled } from "./stall.ts";

const HEADERS = ["Content-Type", "text/event-stream", "Cache-Control", "no-store", "X-Accel-Buffering", "no"];

/** A comment, which clients ignore. */
export const COMMENT = ": \n\n";

/** Characters of events that are written at once, without waiting for the end of the turn. */
const MAX_BATCH = 16_384;

/** How an answer is written as server-sent events. */
export interface EventFormat {
  /** Returns the text of an event with its empty line; an empty string for an event that is not sent. */
  event(event: GenerateEvent): string;
  /** Returns the text of the event that ends a stream with a failure. */
  failure(failure: Failure, requestId: string): string;
}

/**
 * Writes the events of an answer as server-sent events and waits whenever the reader is slower. The headers go out with
 * the first event, or `headersMs` after the admission. A failure before the headers is thrown, a later one becomes an
 * event. A comment is sent after each `keepAliveMs` of silence. A connection whose reader takes nothing for `stallMs`
 * is ended.
 * @throws Failure
 */
export async function writeEvents(
  exchange: Pick<Exchange, "response" | "requestId" | "closed" | "streamFailure" | "facts">,
  events: AsyncGenerator<GenerateEvent>,
  format: EventFormat,
  { headersMs, keepAliveMs, stallMs }: Readonly<Config["stream"]>,
): Promise<void> {
  const { response } = exchange;
  let batch = "";
  let pending: NodeJS.Immediate | undefined;
  // Events of one turn of the event loop go out in one write, because each write is a system call.
  const flush = (isHeadDue = false) => {
    clearImmediate(pending);
    pending = undefined;
    if ((batch === "" && !isHeadDue) || response.destroyed) return;
    const { socket } = response;
    socket?.cork();
    if (!response.headersSent) {
      writeHead(exchange);
      stopWaiting();
      comments = setInterval(() => writeComment(response), keepAliveMs);
    }
    if (batch !== "") response.write(batch);
    socket?.uncork();
    batch = "";
  };
  let comments: NodeJS.Timeout | undefined;
  const stopWaiting = onceAdmitted(exchange.facts, headersMs, () => flush(true));
  try {
    for await (const event of events) {
      batch += format.event(event);
      pending ??= setImmediate(flush);
      if (batch.length >= MAX_BATCH) flush();
      comments?.refresh();
      if (response.writableNeedDrain) {
        flush();
        await drained(exchange, stallMs);
      }
    }
    flush();
  } catch (error) {
    if (error instanceof CallerGone || response.destroyed) {
      response.destroy();
      return;
    }
    flush();
    if (!response.headersSent) throw error;
    const failure = toFailure(error);
    exchange.streamFailure = failure;
    response.write(format.failure(failure, exchange.requestId));
  } finally {
    clearImmediate(pending);
    stopWaiting();
    clearInterval(comments);
  }
  response.end();
}

function writeHead({ response, requestId }: Pick<Exchange, "response" | "requestId">): void {
  response.writeHead(200, [...HEADERS, "X-Request-Id", requestId]);
  // On their own the headers become one string. Joined with a chunk, their 27 parts stay for as long as the stream.
  response.flushHeaders();
  // Those of the request have been read, and would stay as well.
  response.req.rawHeaders = [];
  response.req.headers = {};
}

function writeComment(response: ServerResponse): void {
  if (!response.writableNeedDrain) response.write(COMMENT);
}

/**
 * Waits until the reader has taken what was written.
 * @throws CallerGone when the connection closes first
 */
function drained({ response, closed }: Pick<Exchange, "response" | "closed">, stallMs: number): Promise<void> {
  endIfStalled(response, stallMs);
  return new Promise((resolve, reject) => {
    const end = () => {
      response.off("drain", end);
      closed.removeEventListener("abort", end);
      endIfStalled(response, 0);
      if (closed.aborted) reject(new CallerGone());
      else resolve();
    };
    response.on("drain", end);
    closed.addEventListener("abort", end);
    if (closed.aborted) end();
  });
}
