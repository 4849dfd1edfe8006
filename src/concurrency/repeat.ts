import { setTimeout as sleep } from "node:timers/promises";

/** A task that runs again and again. */
export interface Repetition {
  /** Runs the task now, or once more when the run under way has ended. */
  soon(): void;
  /** Ends the wait, aborts the signal of the task, and resolves when it does not run any more. */
  stop(): Promise<void>;
}

/**
 * Runs a task at once and then after each wait, until it is stopped. Two runs never overlap.
 * @param run must not reject; a rejection ends the repetition as an unhandled one
 * @param waitMs time from the end of a run to the next one, in milliseconds
 * @param options.waitsFirst true: the first run follows a wait, too
 */
export function repeat(
  run: (signal: AbortSignal) => Promise<unknown>,
  waitMs: number,
  { waitsFirst = false } = {},
): Repetition {
  const stopping = new AbortController();
  let waking = new AbortController();
  const wait = () => sleep(waitMs, undefined, { signal: waking.signal }).catch(() => undefined);
  const running = (async () => {
    if (waitsFirst) await wait();
    while (!stopping.signal.aborted) {
      // A call of `soon` during the run ends the wait after it.
      waking = new AbortController();
      await run(stopping.signal);
      await wait();
    }
  })();
  return {
    soon: () => waking.abort(),
    async stop() {
      stopping.abort();
      waking.abort();
      await running;
    },
  };
}
