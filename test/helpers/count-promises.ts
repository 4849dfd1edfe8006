import { createHook } from "node:async_hooks";
import { isMainThread } from "node:worker_threads";

/** Loaded into a service with `--import`: prints how many promises its main thread has made, on SIGUSR2. */
if (isMainThread) {
  let promises = 0;
  createHook({
    init(_, type) {
      if (type === "PROMISE") promises++;
    },
  }).enable();
  process.on("SIGUSR2", () => process.stdout.write(`${promises} promises\n`));
}
