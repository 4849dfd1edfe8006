/**
 * Where a helper registers what must be undone: the context of a test, or a fixture that lives longer.
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

/** Function of a fixture that needs no other one and is undone when its scope ends. */
export function fixture<T>(start: (t: Lifetime) => T | Promise<T>) {
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures that it needs here
  return async ({}: object, { onCleanup }: { onCleanup: (undo: () => Promise<void>) => void }): Promise<T> =>
    start(lifetimeOf(onCleanup));
}
