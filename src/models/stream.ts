import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";

export type Part = LanguageModelV4StreamPart;

/**
 * Wraps a generator as the ReadableStream that LanguageModelV4 requires. `for await` iterates the generator directly,
 * which avoids a queue for each of the stacked models; `getReader` works too. Nothing runs before the first part is
 * requested.
 */
export function toStream(parts: AsyncGenerator<Part>): ReadableStream<Part> {
  let stream: ReadableStream<Part> | undefined;
  // A real stream takes 4 µs to make and is rarely needed.
  return new Proxy(EMPTY, {
    get(_, name) {
      if (name === Symbol.asyncIterator) return () => parts;
      stream ??= ReadableStream.from(parts);
      const member: unknown = Reflect.get(stream, name, stream);
      return typeof member === "function" ? member.bind(stream) : member;
    },
  });
}

const EMPTY = new ReadableStream<Part>();

const OPENING: ReadonlySet<Part["type"]> = new Set(["stream-start", "response-metadata", "text-start", "text-end"]);

/** Whether a part before the first text is needed to interpret that text. */
export function opensText(part: Part): boolean {
  return OPENING.has(part.type);
}

/**
 * Yields nothing before the first text, so that the answer can be replaced by another one until then. Of the earlier
 * parts it keeps only those that `opensText` names; a stream without text yields only its `finish`.
 * @param onPart called for each part as it arrives, including those that are not yielded
 * @throws the error of an `error` part
 */
export async function* fromFirstText(parts: AsyncIterable<Part>, onPart?: () => void): AsyncGenerator<Part> {
  let held: Part[] | undefined = [];
  for await (const part of parts) {
    onPart?.();
    if (part.type === "error") throw part.error;
    if (!held) yield part;
    else if (part.type === "text-delta" && part.delta !== "") {
      yield* held;
      held = undefined;
      yield part;
    } else if (part.type === "finish") yield part;
    else if (opensText(part)) held.push(part);
  }
}
