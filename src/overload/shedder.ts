import { monitorEventLoopDelay } from "node:perf_hooks";
import { Failure } from "../contract/failure.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { SHEDDING } from "./bounds.ts";

/** Refuses some requests of callers while the event loop is late. */
export type Shedder = Pick<ReturnType<typeof createShedder>, "admit">;

/** Interval of the timer whose delay is measured, in milliseconds. */
const RESOLUTION_MS = 10;

/**
 * Creates a shedder, and the function that ends each window. After a second window in a row with too much delay, each
 * workspace may have at most `cap` requests in a window. The cap is the same for all, so it concerns the workspaces
 * that send most (max-min fairness). It falls by 30 % in each window with more than `boundMs` of delay, rises by 25 %
 * in each with less than half of that, and does not apply while only one workspace sends requests.
 */
export function createShedder(boundMs: number, telemetry: Pick<Telemetry, "requestShed">) {
  /** Requests of each workspace in this window; undefined while the loop is in time. */
  let counts: Map<string, number> | undefined;
  let cap = Number.POSITIVE_INFINITY;
  let refused = 0;
  let calm = 0;

  function adapt(admitted: ReadonlyMap<string, number>, delayMs: number): void {
    // A workspace that is alone delays nobody else.
    if (admitted.size < 2) cap = Number.POSITIVE_INFINITY;
    else if (delayMs > boundMs)
      cap = Math.max(SHEDDING.minCap, Math.floor(SHEDDING.decrease * Math.min(cap, Math.max(...admitted.values(), 0))));
    else if (delayMs < boundMs / 2) cap = Math.ceil(SHEDDING.increase * cap);
    calm = delayMs < boundMs / 2 && refused === 0 ? calm + 1 : 0;
  }

  return {
    /** Admits a request. While the loop is in time, it costs one comparison. @throws Failure overloaded */
    admit(workspace: string): void {
      if (!counts) return;
      const count = counts.get(workspace) ?? 0;
      if (count >= cap) {
        refused += 1;
        telemetry.requestShed("event_loop");
        throw new Failure("overloaded");
      }
      counts.set(workspace, count + 1);
    },
    /** @param delayMs mean delay of the event loop in the window */
    endWindow(delayMs: number): void {
      if (counts) adapt(counts, delayMs);
      else if (delayMs > boundMs) calm = 0;
      const isWatched = counts ? calm < SHEDDING.calmWindows : delayMs > boundMs;
      if (!isWatched) cap = Number.POSITIVE_INFINITY;
      counts = isWatched ? new Map() : undefined;
      refused = 0;
    },
  };
}

/**
 * Starts to measure the delay of the event loop.
 * @param boundMs mean delay in a window above which requests are refused, in milliseconds; 0: never
 */
export function startShedder(boundMs: number, telemetry: Telemetry): Shedder & { stop(): void } {
  const shedder = createShedder(boundMs, telemetry);
  if (boundMs === 0) return { ...shedder, stop: () => undefined };
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const timer = setInterval(() => {
    // The mean is not a number when the loop was held for the whole window, because the timer has not run then.
    const delay = delays.count > 0 ? delays.mean / 1e6 - RESOLUTION_MS : SHEDDING.windowMs;
    delays.reset();
    shedder.endWindow(delay);
  }, SHEDDING.windowMs).unref();
  return {
    admit: shedder.admit,
    stop() {
      clearInterval(timer);
      delays.disable();
    },
  };
}
