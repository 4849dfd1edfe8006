import type { Message } from "@bufbuild/protobuf";
import { CallerGone, type Facts } from "../../service/request-context.ts";
import { onceAdmitted } from "../call/head-timer.ts";
import { drained, type Exchange, sendHead } from "./response.ts";
import { envelope } from "./wire.ts";

/** What a streaming method returns: its events, and the message that each becomes. */
export interface MessageStream<E = unknown> {
  readonly events: AsyncIterable<E>;
  toMessage(event: E): Message;
}

/** The head of a stream's response, and when it goes out. */
interface StreamHead {
  readonly contentType: string;
  readonly facts: Facts;
  /** Time after the admission, in milliseconds. */
  readonly headersMs: number;
}

/** Bytes of messages that are written at once, without waiting for the end of the turn. */
const MAX_BATCH = 16_384;

/**
 * Writes the messages of a stream and waits whenever the reader is slower. The head goes out with the first message, or
 * `headersMs` after the admission.
 * @param serialize turns an event into the bytes of its message
 * @returns the last messages, in their envelopes, which the end of the response follows in one write
 * @throws what `events` throws; CallerGone when the reader leaves or stalls, or the deadline passes
 */
export async function sendMessages(
  exchange: Exchange,
  head: StreamHead,
  events: AsyncIterable<unknown>,
  serialize: (event: unknown) => Uint8Array,
): Promise<Buffer> {
  const { response, signal } = exchange;
  let batch: Buffer[] = [];
  let size = 0;
  let needsDrain = false;
  let pending: NodeJS.Immediate | undefined;
  const take = () => {
    clearImmediate(pending);
    pending = undefined;
    const [first] = batch;
    const bytes = first && batch.length === 1 ? first : Buffer.concat(batch, size);
    batch = [];
    size = 0;
    return bytes;
  };
  const sendOwnHead = () => {
    stopWaiting();
    sendHead(exchange, 200, { "content-type": head.contentType });
  };
  const stopWaiting = onceAdmitted(head.facts, head.headersMs, () => {
    sendOwnHead();
    response.flushHeaders();
  });
  // Messages of one turn of the event loop go out in one write, because each write is a system call.
  const flush = () => {
    if (size === 0) return;
    sendOwnHead();
    needsDrain = !response.write(take());
  };
  try {
    for await (const event of events) {
      if (signal.aborted) throw new CallerGone();
      const bytes = envelope(serialize(event));
      batch.push(bytes);
      size += bytes.length;
      pending ??= setImmediate(flush);
      if (size >= MAX_BATCH) flush();
      if (!needsDrain) continue;
      flush();
      await drained(exchange);
      needsDrain = false;
    }
    return take();
  } catch (error) {
    flush();
    throw error;
  } finally {
    stopWaiting();
  }
}
