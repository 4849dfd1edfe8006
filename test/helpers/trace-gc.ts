import { setFlagsFromString } from "node:v8";
import { isMainThread } from "node:worker_threads";

/**
 * Loaded into a service with `--import`: V8 prints each collection of garbage and what it decides about the generation
 * of new objects, and soon makes the collections of idle times.
 */
if (isMainThread) {
  setFlagsFromString("--trace-gc");
  setFlagsFromString("--trace-pretenuring-statistics");
  setFlagsFromString("--gc-memory-reducer-start-delay-ms=100");
}
