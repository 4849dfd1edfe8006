import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { getPriority, setPriority } from "node:os";

/** Lowest priority of a thread. */
const MAX_NICENESS = 19;

/**
 * Priorities below that of the event loop, in steps of `nice`: of light and medium jobs, of the threads in which V8
 * collects garbage and compiles, and of heavy jobs. Each step changes a thread's share of a core by a factor of 1.25,
 * which matters only while more threads are busy than there are cores.
 */
export const NICENESS = { light: 5, medium: 10, engine: 12, heavy: 15 };

const THREADS = "/proc/self/task";

/** Lowers the priority of the calling thread. Only Linux has priorities of threads, which any process may lower. */
export function lowerThread(niceness: number): void {
  lower(() => Number(readlinkSync("/proc/thread-self").split("/").at(-1)), niceness);
}

/** Lowers the priority of the threads in which V8 does work for the others. Linux only. */
export function lowerEngineThreads(): void {
  for (const thread of process.platform === "linux" ? readdirSync(THREADS) : [])
    lower(
      () => (readFileSync(`${THREADS}/${thread}/comm`, "latin1") === "V8Worker\n" ? Number(thread) : undefined),
      NICENESS.engine,
    );
}

function lower(thread: () => number | undefined, niceness: number): void {
  if (process.platform !== "linux") return;
  try {
    const id = thread();
    // Relative, because the process may have a lower priority than others.
    if (id !== undefined) setPriority(id, Math.min(MAX_NICENESS, getPriority(id) + niceness));
  } catch {
    // There is no /proc, or the priority is lower already. The work is done in any case.
  }
}
