import { setFlagsFromString } from "node:v8";
import { isMainThread } from "node:worker_threads";

/** Loaded into a service with `--import`: V8 prints each collection of garbage, and soon makes those of idle times. */
if (isMainThread) {
  setFlagsFromString("--trace-gc");
  setFlagsFromString("--gc-memory-reducer-start-delay-ms=100");
}
