import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Message, Prompt } from "./port/model.ts";

/** Length of a text, in UTF-16 units, and of an image, in bytes, from which it is written in slices. */
const LARGE = 64 * 1024;

/**
 * Size of a mark, in bytes: 6,144 characters of base64. Like the part itself, a mark is longer than any length with
 * which a wire format compares a text (`CACHED_FROM`).
 */
const MARK = 4_608;

/** Size of a slice, in UTF-16 units and in bytes. A slice of quotes takes 2 ms, a slice of an image 1 ms. */
const TEXT_SLICE = 64 * 1024;
const IMAGE_SLICE = 3 * 256 * 1024;

/**
 * Writes the large texts and images of one call's prompt. A wire format gets marks in their place and writes them as
 * JSON, which takes no time; the marks are then replaced. Without this, 3.9 million quotes held the event loop for
 * 95 ms, and an image of 14 MB for 78 ms.
 */
export class LargeParts {
  #seed: Buffer | undefined;
  /** By mark; undefined without large parts. */
  #parts: Map<string, string | Uint8Array> | undefined;

  /** The prompt with marks for its large parts. They are the same each time, so equal bodies stay equal. */
  mark(prompt: Prompt): Prompt {
    const { system, messages } = prompt;
    this.#parts = undefined;
    const isPlain = ({ text, images, results = [] }: Message) =>
      !isLarge(text) && !images?.length && !results.some((result) => isLarge(result.text));
    if (!isLarge(system) && messages.every(isPlain)) return prompt;
    return {
      system: this.#markText(system),
      messages: messages.map((message) => ({
        ...message,
        text: this.#markText(message.text),
        ...(message.results
          ? { results: message.results.map((result) => ({ ...result, text: this.#markText(result.text) })) }
          : {}),
        ...(message.images
          ? { images: message.images.map((image) => ({ ...image, data: this.#markImage(image.data) })) }
          : {}),
      })),
    };
  }

  /**
   * A body with the parts in place of their marks, as UTF-8 in chunks. Other work is done between the slices. A body
   * without marks is returned as it is.
   */
  fill(body: string): string | Promise<Buffer[]> {
    return this.#parts ? this.#fill(body, this.#parts) : body;
  }

  async #fill(body: string, parts: ReadonlyMap<string, string | Uint8Array>): Promise<Buffer[]> {
    const chunks: Buffer[] = [];
    let at = 0;
    const found = [...parts].map(([mark, part]) => ({ start: body.indexOf(mark), length: mark.length, part }));
    for (const { start, length, part } of found.toSorted((a, b) => a.start - b.start)) {
      if (start < 0) continue;
      chunks.push(Buffer.from(body.slice(at, start)));
      at = start + length;
      for (const slice of typeof part === "string" ? textSlices(part) : imageSlices(part)) {
        chunks.push(slice);
        await nextTurn();
      }
    }
    chunks.push(Buffer.from(body.slice(at)));
    return chunks;
  }

  #markText(text: string): string {
    return isLarge(text) ? this.#add(text).toString("base64") : text;
  }

  #markImage(data: Uint8Array): Uint8Array {
    return isLarge(data) ? this.#add(data) : data;
  }

  /** @returns bytes that base64 writes as the mark. No caller can know them. */
  #add(part: string | Uint8Array): Buffer {
    this.#seed ??= randomBytes(24);
    this.#parts ??= new Map();
    const bytes = Buffer.alloc(MARK, this.#seed);
    bytes.writeUInt32BE(this.#parts.size, MARK - 4);
    this.#parts.set(bytes.toString("base64"), part);
    return bytes;
  }
}

function isLarge({ length }: string | Uint8Array): boolean {
  return length >= LARGE;
}

function* textSlices(text: string): Generator<Buffer> {
  for (let at = 0; at < text.length; ) {
    const last = text.charCodeAt(at + TEXT_SLICE - 1);
    // Surrogates of a pair stay together.
    const end = at + TEXT_SLICE - (last >= 0xd800 && last < 0xdc00 ? 1 : 0);
    yield Buffer.from(JSON.stringify(text.slice(at, end)).slice(1, -1));
    at = end;
  }
}

function* imageSlices({ buffer, byteOffset, length }: Uint8Array): Generator<Buffer> {
  for (let at = 0; at < length; at += IMAGE_SLICE) {
    const slice = Buffer.from(buffer, byteOffset + at, Math.min(IMAGE_SLICE, length - at));
    yield Buffer.from(slice.toString("base64"), "latin1");
  }
}
