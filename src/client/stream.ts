import { readEvents, type ServerSentEvent } from "./events.ts";
import { bodyFailure, unexpected } from "./failure.ts";
import { errorOf, type HttpRequest, idleTimeout, type Settings, send } from "./http.ts";
import { backOff, isRefusal } from "./retry.ts";
import type { Done, StreamEvent } from "./types.ts";

/**
 * A streamed answer. The request is sent when you first read it: by iteration, or with `text` or `done`. It can be
 * iterated only once. Leaving the iteration ends the request; the service then charges for what it had sent.
 */
export interface AnswerStream<Json = unknown> extends AsyncIterable<StreamEvent<Json>> {
  /** Reads to the end and returns the complete text. @throws the same errors as the iteration */
  text(): Promise<string>;
  /** Reads to the end and returns the last event, with the usage. @throws the same errors as the iteration */
  done(): Promise<Done<Json>>;
}

/** Creates a stream that sends `request` when it is first read. */
export function answerStream<Json>(
  settings: Settings,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): AnswerStream<Json> {
  let isRead = false;
  let text = "";
  let resolve: (done: Done<Json>) => void;
  let reject: (error: unknown) => void;
  const ended = new Promise<Done<Json>>((...settle) => {
    [resolve, reject] = settle;
  });
  // A caller that iterates gets the error from the iteration.
  ended.catch(() => undefined);

  async function* read(): AsyncGenerator<StreamEvent<Json>> {
    if (isRead) throw new TypeError("This stream has already been read. Call stream() again for another answer.");
    isRead = true;
    try {
      for await (const event of withRetries<Json>(settings, request, signal)) {
        if (event.type === "delta") text += event.text;
        if (event.type === "done") resolve(event);
        yield event;
      }
    } catch (error) {
      reject(error);
      throw error;
    } finally {
      // Has no effect if the promise is already settled.
      reject(new DOMException("The stream was left before its end.", "AbortError"));
    }
  }

  async function toEnd(): Promise<Done<Json>> {
    if (!isRead) for await (const _ of read());
    return ended;
  }

  return {
    [Symbol.asyncIterator]: read,
    done: toEnd,
    async text() {
      await toEnd();
      return text;
    },
  };
}

/** Retries a refused request. Never retries after the first event, because the answer is charged from then on. */
async function* withRetries<Json>(
  settings: Settings,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent<Json>> {
  for (let attempt = 0; ; attempt++) {
    let hasBegun = false;
    try {
      for await (const event of attemptOnce<Json>(settings, request, signal)) {
        hasBegun = true;
        yield event;
      }
      return;
    } catch (error) {
      const mayRetry = !hasBegun && attempt < settings.retries && isRefusal(error);
      if (!mayRetry || !(await backOff(error, attempt, signal))) throw error;
    }
  }
}

async function* attemptOnce<Json>(
  settings: Settings,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent<Json>> {
  const idle = idleTimeout(signal, settings.timeoutMs);
  try {
    const response = await send(settings, request, idle.signal);
    if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
      throw unexpected("The response is not an event stream.", response.status);
    }
    for await (const received of readEvents(response.body, idle.restart)) {
      const event = decode<Json>(received);
      if (!event) continue;
      // How long the caller takes for an event says nothing of the service.
      idle.pause();
      yield event;
      if (event.type === "done") return;
      idle.restart();
    }
    throw new Error("The stream ended without its last event.");
  } catch (error) {
    throw errorOf(error, idle.signal);
  } finally {
    idle.end();
  }
}

/** Returns undefined for unknown event types, which the contract requires clients to skip. */
function decode<Json>({ name, data }: ServerSentEvent): StreamEvent<Json> | undefined {
  switch (name) {
    case "delta":
    case "trace":
    case "tool_call":
    case "done":
      return { type: name, ...parse(data) };
    case "error":
      throw bodyFailure(data) ?? unexpected("The stream ended with an error that cannot be parsed.");
    default:
      return undefined;
  }
}

function parse(data: string) {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw unexpected("An event of the stream is not valid JSON.", undefined, cause);
  }
}
