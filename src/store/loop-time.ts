/** Parts that a time is divided into. While the event loop is blocked, at most one of them passes. */
const PARTS = 10;

/**
 * Waits for a result, for a time in which the event loop is free. A timer that is due after a blocked loop runs before
 * the loop reads what has arrived, so with a plain timer a busy process would take its own delay for a silent server.
 * @param ms in milliseconds
 * @throws Error `Query read timeout`, as `pg` does; the error of the result
 */
export async function withTimeout<T>(ms: number, result: Promise<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  let left = PARTS;
  const timer = setInterval(() => {
    left -= 1;
    if (left === 0) timeout.reject(new Error("Query read timeout"));
  }, ms / PARTS);
  try {
    return await Promise.race([result, timeout.promise]);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Runs a function with a plain timeout, and once more if it failed while the event loop was blocked for at least half
 * of the timeout.
 * @param timeoutMs in milliseconds
 */
export async function againIfBlocked<T>(timeoutMs: number, run: () => Promise<T>): Promise<T> {
  let passed = 0;
  const startedAt = performance.now();
  const timer = setInterval(() => {
    passed += 1;
  }, timeoutMs / PARTS);
  try {
    return await run();
  } catch (error) {
    const blockedMs = performance.now() - startedAt - (passed + 1) * (timeoutMs / PARTS);
    if (blockedMs < timeoutMs / 2) throw error;
  } finally {
    clearInterval(timer);
  }
  return run();
}
