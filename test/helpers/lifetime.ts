/**
 * A test or a fixture, in which helpers register their cleanup functions.
 * The functions run in reverse order of registration: a service ends before the database that it uses is dropped.
 */
export interface Lifetime {
  onTestFinished(undo: () => void | Promise<void>): void;
}

/** The lifetime of a fixture, which calls `onCleanup` once. */
export function lifetimeOf(onCleanup: (undo: () => Promise<void>) => void): Lifetime {
  const stack = new AsyncDisposableStack();
  onCleanup(() => stack.disposeAsync());
  return { onTestFinished: (undo) => stack.defer(undo) };
}

/** Turns `start` into a fixture that uses no other fixture and is cleaned up when its scope ends. */
export function fixture<T>(start: (t: Lifetime) => T | Promise<T>) {
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures that it needs here
  return async ({}: object, { onCleanup }: { onCleanup: (undo: () => Promise<void>) => void }): Promise<T> =>
    start(lifetimeOf(onCleanup));
}
