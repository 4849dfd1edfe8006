import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits until a condition holds. Checks it after 5 ms, then in intervals that grow to 200 ms, because a check, such as
 * a request to a service, takes processor time from what the test waits for.
 * @param everyMs a fixed interval instead
 * @throws Error after 60 s, longer than any expected wait
 */
export async function until(holds: () => unknown, everyMs?: number): Promise<void> {
  const start = performance.now();
  while (!(await holds())) {
    const waited = performance.now() - start;
    if (waited > 60_000) throw new Error(`This condition did not hold within 60 s: ${holds}`);
    await sleep(everyMs ?? Math.min(200, Math.max(5, waited / 10)));
  }
}
