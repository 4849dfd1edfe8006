import { setTimeout as sleep } from "node:timers/promises";

/** Waits until a condition holds. @throws Error after 60 s, longer than any expected wait */
export async function until(holds: () => unknown, everyMs = 5): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`This condition did not hold within 60 s: ${holds}`);
    await sleep(everyMs);
  }
}
