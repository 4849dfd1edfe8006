import { readEvents, type ServerSentEvent } from "./events.ts";
import { bodyFailure, unexpected } from "./failure.ts";
import { type Call, reasonOf, type Settings, send, watch } from "./http.ts";
import { backOff, isRefusal } from "./retry.ts";
import type { Done, StreamEvent } from "./types.ts";

/**
 * A streamed answer. It is asked for when it is first read, and read once: by iteration, or by `text` or `done`. Leaving the iteration
 * ends the request; the service then charges for what it had sent.
 */
export interface AnswerStream<Json = unknown> extends AsyncIterable<StreamEvent<Json>> {
  /** The whole text, read to its end. @throws as the iteration does */
  text(): Promise<string>;
  /** The end of the answer with what it used up, read to its end. @throws as the iteration does */
  done(): Promise<Done<Json>>;
}

/** Makes a stream that sends `call` when it is first read. */
export function answerStream<Json>(
  settings: Settings,
  call: Call,
  signal: AbortSignal | undefined,
): AnswerStream<Json> {
  let isRead = false;
  let text = "";
  let resolve: (done: Done<Json>) => void;
  let reject: (error: unknown) => void;
  const ended = new Promise<Done<Json>>((...settle) => {
    [resolve, reject] = settle;
  });
  // Who iterates gets the failure there.
  ended.catch(() => undefined);

  async function* read(): AsyncGenerator<StreamEvent<Json>> {
    if (isRead) throw new TypeError("This stream is read already. Call stream() again for another answer.");
    isRead = true;
    try {
      for await (const event of retried<Json>(settings, call, signal)) {
        if (event.type === "delta") text += event.text;
        if (event.type === "done") resolve(event);
        yield event;
      }
    } catch (error) {
      reject(error);
      throw error;
    } finally {
      // Changes nothing where the end is known.
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

/** Sends the call again where the service refused it; never once there was an event, because the answer is charged from then on. */
async function* retried<Json>(
  settings: Settings,
  call: Call,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent<Json>> {
  for (let attempt = 0; ; attempt++) {
    let hasBegun = false;
    try {
      for await (const event of once<Json>(settings, call, signal)) {
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

async function* once<Json>(
  settings: Settings,
  call: Call,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent<Json>> {
  const watched = watch(signal, settings.timeoutMs);
  try {
    const response = await send(settings, call, watched.signal);
    if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
      throw unexpected("The response is no event stream.", response.status);
    }
    for await (const received of readEvents(response.body, watched.alive)) {
      const event = known<Json>(received);
      if (event) yield event;
      if (event?.type === "done") return;
    }
    throw new Error("The stream ended without its last event.");
  } catch (error) {
    throw reasonOf(error, watched.signal);
  } finally {
    watched.end();
  }
}

/** Undefined for event types that this version does not know, which the contract says to skip. */
function known<Json>({ name, data }: ServerSentEvent): StreamEvent<Json> | undefined {
  switch (name) {
    case "delta":
    case "trace":
    case "done":
      return { type: name, ...parse(data) };
    case "error":
      throw bodyFailure(data) ?? unexpected("The stream ended with a failure that cannot be read.");
    default:
      return undefined;
  }
}

function parse(data: string) {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw unexpected("The stream has an event that is no JSON.", undefined, cause);
  }
}
