/** One server-sent event. */
export interface ServerSentEvent {
  name: string;
  data: string;
}

/** Longest event in characters, far above the longest answer. Bounds the memory that a faulty server can use. */
const MAX_EVENT = 16_777_216;

/**
 * Parses server-sent events (WHATWG HTML, section 9.2.6) until the body ends. Leaving the iteration cancels the body.
 * @param onData called for each chunk that arrives, including comments
 * @throws RangeError for an event longer than 16,777,216 characters
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onData: () => void,
): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let name = "";
  let data: string[] = [];
  let dataLength = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      onData();
      // A trailing carriage return may be the first half of a line break, so it waits for the next chunk.
      const text = done ? rest.replace(/\r$/, "\n") : rest + decoder.decode(value, { stream: true });
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { name, data: data.join("\n") };
          name = "";
          data = [];
          dataLength = 0;
        } else if (line.startsWith("event:")) name = fieldValue(line);
        else if (line.startsWith("data:")) {
          data.push(fieldValue(line));
          dataLength += line.length;
        }
      }
      if (done) return;
      if (dataLength + rest.length > MAX_EVENT) throw new RangeError("The service sent an event that is too long.");
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function fieldValue(line: string): string {
  return line.slice(line.indexOf(":") + 1).replace(/^ /, "");
}
