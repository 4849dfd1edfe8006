import { setTimeout as sleep } from "node:timers/promises";

/** Waits until a condition holds. @throws Error after 60 s, which only something that never happens takes */
export async function until(holds: () => unknown, everyMs = 5): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`It did not happen within 60 s: ${holds}`);
    await sleep(everyMs);
  }
}
