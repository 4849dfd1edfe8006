/** One server-sent event. */
export interface ServerSentEvent {
  name: string;
  data: string;
}

/** Longest event in characters. An answer has 32,000 tokens at most; what is longer is no event of this service. */
const MAX_EVENT = 16_777_216;

/**
 * Reads server-sent events (WHATWG HTML, section 9.2.6) until the body ends. Leaving the iteration cancels the body.
 * @param alive called for every piece that arrives, comments included
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  alive: () => void,
): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let name = "";
  let data: string[] = [];
  let held = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      alive();
      // A carriage return may be half of a line end, until the body ends.
      const text = done ? rest.replace(/\r$/, "\n") : rest + decoder.decode(value, { stream: true });
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { name, data: data.join("\n") };
          name = "";
          data = [];
          held = 0;
        } else if (line.startsWith("event:")) name = fieldValue(line);
        else if (line.startsWith("data:")) {
          data.push(fieldValue(line));
          held += line.length;
        }
      }
      if (done) return;
      if (held + rest.length > MAX_EVENT) throw new RangeError("The service sent an event that is too long.");
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function fieldValue(line: string): string {
  return line.slice(line.indexOf(":") + 1).replace(/^ /, "");
}
