/** What `next` of parts answers. */
export type NextPart<T, R = void> = IteratorResult<T, R>;

/**
 * Parts of something as they arrive, such as the pieces of a completion. The work starts at the first `next`; `return`
 * ends it. Both answer without a promise where nothing has to be waited for: a whole answer passes through ten layers,
 * each of which would make two promises for each part. A failure is always a rejected promise.
 */
export interface Parts<T, R = void> {
  [Symbol.asyncIterator](): Parts<T, R>;
  next(): NextPart<T, R> | Promise<NextPart<T, R>>;
  return?(value?: R | PromiseLike<R>): NextPart<T, R> | Promise<NextPart<T, R>>;
}

/** The end of parts. */
export const NO_PART: NextPart<never> = { done: true, value: undefined };

/**
 * Passes the parts on, like `for await`, but makes promises only where a part or `take` has to be waited for.
 * @param take its error ends the parts, and is thrown
 * @throws what the parts or `take` throw
 */
export async function forEach<T>(parts: Parts<T>, take: (part: T) => Promise<unknown> | undefined): Promise<void> {
  for (;;) {
    const reading = parts.next();
    const next = reading instanceof Promise ? await reading : reading;
    if (next.done) return;
    try {
      const taken = take(next.value);
      if (taken) await taken;
    } catch (error) {
      await leave(parts);
      throw error;
    }
  }
}

/** Ends parts after an error, which comes before one of the end. */
async function leave(parts: Parts<unknown>): Promise<void> {
  try {
    await parts.return?.();
  } catch {
    // The error that ended them is thrown.
  }
}
