/**
 * Where a helper registers what must be undone: the context of a test, or a fixture that lives longer. The functions run in reverse order
 * of registration, so that a service ends before the database that it uses is dropped.
 */
export interface Lifetime {
  onTestFinished(undo: () => void | Promise<void>): void;
}
