import type { Lifetime } from "./lifetime.ts";

class Skipped extends Error {}

export interface Subtest extends Lifetime {
  readonly signal: AbortSignal;
  skip(reason: string): never;
  annotate(message: string): void;
}

/** Part of a test, with clean-up of its own. */
export async function subtest(_: unknown, name: string, run: (t: Subtest) => unknown): Promise<void> {
  await using stack = new AsyncDisposableStack();
  try {
    await run({
      signal: new AbortController().signal,
      onTestFinished: (undo) => stack.defer(undo),
      annotate: () => undefined,
      skip(reason) {
        throw new Skipped(reason);
      },
    });
  } catch (error) {
    if (error instanceof Skipped) return;
    throw new Error(`failed: ${name}`, { cause: error });
  }
}
