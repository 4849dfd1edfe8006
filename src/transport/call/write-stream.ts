import type { Config } from "../../config/config.ts";
import { CallerGone } from "../../contract/endings.ts";
import { Failure, toFailure } from "../../contract/failure.ts";
import { type Call, type EventStream, streamOf } from "./call.ts";
import type { EventFormat } from "./format.ts";
import { onceAdmitted } from "./head-timer.ts";
import { abortResponse, drained, endIfStalled, writeHead } from "./write.ts";

type Piece = string | Buffer;
type Writing = Pick<
  Call,
  | ("request" | "response" | "requestId" | "unknown" | "format" | "limits")
  | ("signal" | "isLate" | "streamFailure" | "facts")
>;

const LATE = "The deadline of the call passed. The input, and the text that was written until then, are charged.";

/** Length of pieces that are written at once, without waiting for the end of the turn. */
const MAX_BATCH = 16_384;

/**
 * Writes the events of an answer and waits whenever the reader is slower. The head goes out with the first event, or
 * `headersMs` after the admission. A failure before the head is thrown, a later one ends the stream. A comment of the
 * format is sent after each `keepAliveMs` of silence. A reader that takes nothing for `stallMs` counts as gone.
 * @throws Failure; CallerGone before the head
 */
export async function writeStream(
  call: Writing,
  events: EventStream,
  format: EventFormat,
  { headersMs, keepAliveMs, stallMs }: Readonly<Config["stream"]>,
): Promise<void> {
  const { response, signal } = call;
  const { comment } = format;
  const batch = new Batch();
  let pending: NodeJS.Immediate | undefined;
  // Asked for each time, because the reader may catch up between two events.
  const target = streamOf(response) ?? response;
  // Pieces of one turn of the event loop go out in one write, because each write is a system call.
  const flush = (isHeadDue = false) => {
    clearImmediate(pending);
    pending = undefined;
    if ((batch.size === 0 && !isHeadDue) || response.destroyed) return;
    const socket = streamOf(response) ? undefined : response.socket;
    socket?.cork();
    if (!response.headersSent) {
      beginStream(call, format);
      stopWaiting();
      if (comment) comments = setInterval(() => target.writableNeedDrain || response.write(comment), keepAliveMs);
    }
    if (batch.size > 0) response.write(batch.take());
    socket?.uncork();
  };
  let comments: NodeJS.Timeout | undefined;
  const stopWaiting = onceAdmitted(call.facts, headersMs, () => flush(true));
  let failure: Failure | undefined;
  try {
    await events((event) => {
      if (signal.aborted) throw new CallerGone();
      batch.add(format.event(event));
      pending ??= setImmediate(flush);
      if (batch.size >= MAX_BATCH) flush();
      comments?.refresh();
      if (!target.writableNeedDrain) return undefined;
      flush();
      return drained(call, stallMs);
    });
  } catch (error) {
    flush();
    const isLate = error instanceof CallerGone && call.isLate;
    if (isLate) call.streamFailure = lateFailure(call);
    if (!response.headersSent) throw error;
    if ((error instanceof CallerGone && !isLate) || response.destroyed) return abortResponse(response);
    call.streamFailure ??= toFailure(error);
    failure = call.streamFailure;
  } finally {
    clearImmediate(pending);
    stopWaiting();
    clearInterval(comments);
  }
  if (response.destroyed) return;
  if (!response.headersSent) beginStream(call, format);
  const { body, trailers } = format.end(call.requestId, failure);
  batch.add(body);
  if (trailers) response.addTrailers(trailers as NodeJS.Dict<string>);
  response.end(batch.take());
  if (!response.writableFinished) endIfStalled(response, stallMs);
}

/** The failure of a stream whose caller's deadline has passed. From its admission on, it is charged. */
function lateFailure({ facts }: Writing): Failure {
  return new Failure("timed_out", facts.admittedAt === undefined ? {} : { message: LATE });
}

function beginStream(call: Writing, { headers }: EventFormat): void {
  const { request, response } = call;
  writeHead(call, 200, headers);
  // On its own the head becomes one string. Joined with a chunk, its 27 parts stay for as long as the stream.
  response.flushHeaders();
  if (streamOf(response)) return;
  // The head of the request has been read, and would stay as well.
  request.rawHeaders = [];
  request.headers = {};
}

/** Pieces that wait for a write. */
class Batch {
  #pieces: Piece[] = [];
  size = 0;

  add(piece: Piece): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.size += piece.length;
  }

  take(): Piece {
    const pieces = this.#pieces;
    const [first = ""] = pieces;
    if (pieces.length > 0) this.#pieces = [];
    const { size } = this;
    this.size = 0;
    if (pieces.length < 2) return first;
    return typeof first === "string" ? pieces.join("") : Buffer.concat(pieces as Buffer[], size);
  }
}
