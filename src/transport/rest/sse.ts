import type { ServerResponse } from "node:http";
import { StreamGenerateResponse_DoneSchema, TraceStepSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Config } from "../../config/config.ts";
import { type Failure, toFailure } from "../../failure.ts";
import { CallerGone, type GenerateEvent } from "../../service/request-context.ts";
import { encode } from "./encode.ts";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store",
  "X-Accel-Buffering": "no",
};

/** A line that readers skip. */
const COMMENT = ": \n\n";

/** Characters of events that are written at the latest, without waiting for the turn to end. */
const MAX_BATCH = 16_384;

interface SseOptions extends Readonly<Config["stream"]> {
  /** Aborts when the connection has closed. */
  gone: AbortSignal;
  /** The flat body of a failure as JSON text. */
  failureText(failure: Failure): string;
}

/**
 * Writes the events of an answer as server-sent events, as fast as the reader takes them. The headers go out at the first event (`open`
 * is one, of which readers see a comment) or after `headersMs`; a failure before that is thrown, one after it becomes an `error` event. Silence is filled with comments. The
 * connection of a reader that takes nothing for `stallMs` is ended.
 */
export async function writeEvents(
  response: ServerResponse,
  events: AsyncGenerator<GenerateEvent>,
  options: SseOptions,
): Promise<void> {
  let batch = "";
  let pending: NodeJS.Immediate | undefined;
  const open = () => {
    if (!response.headersSent) response.writeHead(200, HEADERS);
  };
  // Events that come in one turn of the event loop leave in one write: 9 % less work for a stream of 60.
  const flush = () => {
    clearImmediate(pending);
    pending = undefined;
    if (batch === "" || response.destroyed) return;
    open();
    response.write(batch);
    batch = "";
  };
  const headersTimer = setTimeout(() => {
    open();
    response.flushHeaders();
  }, options.headersMs);
  const keepAlive = setInterval(() => {
    if (response.headersSent && !response.writableNeedDrain) response.write(COMMENT);
  }, options.keepAliveMs);
  try {
    for await (const event of events) {
      batch += eventText(event);
      pending ??= setImmediate(flush);
      if (batch.length >= MAX_BATCH) flush();
      keepAlive.refresh();
      if (response.writableNeedDrain) {
        flush();
        await drained(response, options);
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
    response.write(`event: error\ndata: ${options.failureText(toFailure(error))}\n\n`);
  } finally {
    clearImmediate(pending);
    clearTimeout(headersTimer);
    clearInterval(keepAlive);
  }
  endIfStalled(response, options.stallMs);
  response.end();
}

function eventText(event: GenerateEvent): string {
  switch (event.type) {
    case "open":
      return COMMENT;
    case "delta":
      return `event: delta\ndata: {"text":${JSON.stringify(event.text)}}\n\n`;
    case "trace":
      return `event: trace\ndata: {"step":${encode(TraceStepSchema, event.step)}}\n\n`;
    case "done":
      return `event: done\ndata: ${encode(StreamGenerateResponse_DoneSchema, event.done)}\n\n`;
  }
}

/** Waits until the reader has taken what was written. */
function drained(response: ServerResponse, { gone, stallMs }: SseOptions): Promise<void> {
  endIfStalled(response, stallMs);
  return new Promise((resolve, reject) => {
    const end = () => {
      response.off("drain", end);
      gone.removeEventListener("abort", end);
      endIfStalled(response, 0);
      if (gone.aborted) reject(new CallerGone());
      else resolve();
    };
    response.on("drain", end);
    gone.addEventListener("abort", end);
    if (gone.aborted) end();
  });
}

/**
 * Lets Node end the connection when nothing of what was written is taken for `stallMs`; 0 lets it wait for ever. Taking a little is
 * enough to stay. Once an answer is out whole, Node sets the limit for idle connections.
 */
export function endIfStalled({ socket }: ServerResponse, stallMs: number): void {
  socket?.setTimeout(stallMs);
}
