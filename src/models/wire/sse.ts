import { ModelError } from "../port/model-error.ts";

/** Longest event that is read, in characters. Usual events have a few hundred. */
const MAX_EVENT = 4 * 1024 * 1024;

/**
 * Splits a stream of text into server-sent events (WHATWG HTML, section 9.2) and gives the data of each. The time is
 * linear in the length of the text, however it is split, because only new text is searched for line ends. Names of
 * events are not read, because the vendors repeat them in the data.
 */
export class SseParser {
  readonly #onData: (data: string) => void;
  /** The beginning of an incomplete line. */
  #line = "";
  #data: string | undefined;
  #isStart = true;
  /** Whether the last text ended with a carriage return. A line feed may follow it. */
  #afterReturn = false;

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** Takes the next text. @throws ModelError for an event that is too long; what `onData` throws */
  push(text: string): void {
    let rest = text;
    if (this.#isStart && rest !== "") {
      this.#isStart = false;
      if (rest.charCodeAt(0) === 0xfeff) rest = rest.slice(1);
    }
    if (this.#afterReturn && rest.charCodeAt(0) === 0x0a) rest = rest.slice(1);
    if (text !== "") this.#afterReturn = text.charCodeAt(text.length - 1) === 0x0d;
    // Most vendors end lines with a line feed alone, so the pattern is rarely needed.
    if (rest.includes("\r")) rest = rest.replace(/\r\n?/g, "\n");
    let from = 0;
    for (let at = rest.indexOf("\n"); at !== -1; at = rest.indexOf("\n", from)) {
      const line = this.#line + rest.slice(from, at);
      this.#line = "";
      from = at + 1;
      this.#take(line);
    }
    this.#line += rest.slice(from);
    if (this.#line.length + (this.#data?.length ?? 0) > MAX_EVENT) {
      throw new ModelError("The vendor sent an event that is too long.", { retryable: false });
    }
  }

  /** Ends the stream and gives the last event, even if its blank line is missing. */
  end(): void {
    if (this.#line !== "") this.#take(this.#line);
    this.#line = "";
    this.#take("");
  }

  #take(line: string): void {
    if (line === "") {
      const data = this.#data;
      this.#data = undefined;
      if (data !== undefined) this.#onData(data);
      return;
    }
    // llama.cpp before October 2025 sends an error in a field of its own.
    if (line.startsWith("error: {")) this.#data = `{"error":${line.slice(7)}}`;
    // Comments and every other field are skipped.
    if (!line.startsWith("data") || (line.length > 4 && line[4] !== ":")) return;
    const value = line.slice(line[5] === " " ? 6 : 5);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }
}
