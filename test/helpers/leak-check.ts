import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { aroundAll } from "vitest";

/** Longest wait for resources that are closing, in milliseconds. It is long because the machine may be busy. */
const LONGEST_WAIT_MS = Number(process.env.CHORUS_TEST_LEAK_MS ?? 10_000);

/** Threads and processes are tracked separately, because an unreferenced one does not keep this process alive. */
const running = { Worker: new Set<Worker>(), ChildProcess: new Set<ChildProcess>() };

const onWorker = (message: unknown) => track(running.Worker, (message as { worker: Worker }).worker);
const onProcess = (message: unknown) => track(running.ChildProcess, (message as { process: ChildProcess }).process);

function track<T extends Worker | ChildProcess>(open: Set<T>, one: T): void {
  open.add(one);
  const forget = () => open.delete(one);
  // A program that does not exist never exits.
  one.once("exit", forget).once("error", forget);
}

function resources(): Map<string, number> {
  const counts = new Map(Object.entries(running).map(([kind, { size }]) => [kind, size]));
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** Resources that were opened since `before`, as "2 Timeout, 1 TCPServerWrap". */
function opened(before: Map<string, number>): string {
  return [...resources()]
    .map(([kind, count]) => [count - (before.get(kind) ?? 0), kind] as const)
    .filter(([more]) => more > 0)
    .map(([more, kind]) => `${more} ${kind}`)
    .toSorted()
    .join(", ");
}

// Runs around the whole file, so the check follows the cleanup of the hooks and fixtures of the file. Several files run
// in one process, one after the other, and each evaluates this module.
aroundAll(async (runFile) => {
  subscribe("worker_threads", onWorker);
  subscribe("child_process", onProcess);
  try {
    const before = resources();
    await runFile();
    let left = opened(before);
    for (const end = Date.now() + LONGEST_WAIT_MS; left !== "" && Date.now() < end; left = opened(before))
      await sleep(10);
    if (left === "") return;
    throw new Error(
      `The file left these resources open: ${left}. To see where they were created, add --detect-async-leaks.`,
    );
  } finally {
    unsubscribe("worker_threads", onWorker);
    unsubscribe("child_process", onProcess);
  }
});
