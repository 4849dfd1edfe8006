import type { ServerResponse } from "node:http";
import { StreamGenerateResponse_DoneSchema, TraceStepSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Config } from "../config.ts";
import { type Failure, toFailure } from "../failure.ts";
import { CallerGone, type Event } from "../service/call.ts";
import { encode } from "./encode.ts";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store",
  "X-Accel-Buffering": "no",
};

interface SseOptions extends Readonly<Config["stream"]> {
  /** The flat body of a failure as JSON text. */
  failureText(failure: Failure): string;
}

/**
 * Writes the events of an answer as server-sent events, as fast as the reader takes them. The headers go out at the first event or
 * after `headersMs`; a failure before that is thrown, one after it becomes an `error` event. Silence is filled with comments. A reader
 * that takes nothing for `stallMs` has gone.
 */
export async function writeEvents(
  response: ServerResponse,
  events: AsyncGenerator<Event>,
  options: SseOptions,
): Promise<void> {
  const open = () => {
    if (!response.headersSent) {
      response.writeHead(200, HEADERS);
      response.flushHeaders();
    }
  };
  const headersTimer = setTimeout(open, options.headersMs);
  const keepAlive = setInterval(() => {
    if (response.headersSent && !response.writableNeedDrain) response.write(": \n\n");
  }, options.keepAliveMs);
  try {
    for await (const event of events) {
      open();
      const written = response.write(eventText(event));
      keepAlive.refresh();
      if (!written) await drained(response, options.stallMs);
    }
  } catch (error) {
    if (error instanceof CallerGone || response.destroyed) {
      response.destroy();
      return;
    }
    if (!response.headersSent) throw error;
    response.write(`event: error\ndata: ${options.failureText(toFailure(error))}\n\n`);
  } finally {
    clearTimeout(headersTimer);
    clearInterval(keepAlive);
  }
  response.end();
}

function eventText(event: Event): string {
  switch (event.type) {
    case "delta":
      return `event: delta\ndata: {"text":${JSON.stringify(event.text)}}\n\n`;
    case "trace":
      return `event: trace\ndata: {"step":${encode(TraceStepSchema, event.step)}}\n\n`;
    case "done":
      return `event: done\ndata: ${encode(StreamGenerateResponse_DoneSchema, event.done)}\n\n`;
  }
}

/** Waits until the reader has taken what was written. */
function drained(response: ServerResponse, stallMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (gone: boolean) => {
      clearTimeout(timer);
      response.off("drain", onDrain).off("close", onClose);
      if (gone) reject(new CallerGone());
      else resolve();
    };
    const onDrain = () => end(false);
    const onClose = () => end(true);
    const timer = setTimeout(onClose, stallMs);
    response.on("drain", onDrain).on("close", onClose);
    if (response.destroyed) onClose();
  });
}
