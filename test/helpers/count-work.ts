import { createHook } from "node:async_hooks";
import { GCProfiler, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

/**
 * Loaded into a service with `--import`: prints on SIGUSR2 how many promises its main thread has made, and how many
 * bytes of its heap it has allocated: the growth from one collection to the next.
 */
if (isMainThread) {
  let promises = 0;
  createHook({
    init(_, type) {
      if (type === "PROMISE") promises++;
    },
  }).enable();
  setFlagsFromString("--expose-gc");
  const collect: (options: { type: "minor" }) => void = runInNewContext("gc");
  const profiler = new GCProfiler();
  profiler.start();
  let allocated = 0;
  let left = 0;
  process.on("SIGUSR2", () => {
    // The newest allocations are known at the next collection.
    collect({ type: "minor" });
    for (const { beforeGC, afterGC } of profiler.stop()?.statistics ?? []) {
      allocated += beforeGC.heapStatistics.usedHeapSize - left;
      left = afterGC.heapStatistics.usedHeapSize;
    }
    profiler.start();
    process.stdout.write(`${promises} promises, ${allocated} bytes\n`);
  });
}
