import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";

export type Part = LanguageModelV4StreamPart;

/**
 * A generator as the ReadableStream that LanguageModelV4 demands. Whoever iterates it with `for await` gets the generator itself, so
 * that stacked models cost one generator each and no queue; a reader works too. Nothing runs before the first part is asked for.
 */
export function toStream(parts: AsyncGenerator<Part>): ReadableStream<Part> {
  let stream: ReadableStream<Part> | undefined;
  // A real stream takes 4 µs to make, as long as a whole answer spends in the engine, and nearly nobody needs a reader.
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

/** Whether a part that came before any text is needed to make sense of the text that follows. */
export function opensText(part: Part): boolean {
  return OPENING.has(part.type);
}

/**
 * Yields nothing until the first piece of text is there, so that an answer which has yielded nothing can still be replaced by another
 * one. Of what came before, only what opens the text is kept; a stream without any text yields its `finish` alone.
 * @throws The error of an `error` part.
 * @param onPart Called for each part as it arrives, also for those that are held back.
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
