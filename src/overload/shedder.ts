import { monitorEventLoopDelay } from "node:perf_hooks";
import { Failure } from "../contract/failure.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** Refuses some requests of callers while the event loop is late. */
export interface Shedder {
  /** Admits a request of a workspace. While the loop is in time, it costs one comparison. @throws Failure overloaded */
  admit(workspace: string): void;
}

/** Length of a window, in milliseconds. */
const WINDOW_MS = 500;
/** Interval of the timer whose delay is measured, in milliseconds. */
const RESOLUTION_MS = 10;
/** Factors of the cap after a window with too much delay and after one with little. */
const DECREASE = 0.7;
const INCREASE = 1.25;
/** Lowest cap, because a workspace with so few requests is not the reason for the delay. */
const MIN_CAP = 50;
/** Windows in a row with little delay and without a refusal after which nothing is counted any more. */
const CALM_WINDOWS = 10;

/**
 * Creates a shedder, and the function that ends each window. After a second window in a row with too much delay, each
 * workspace may have at most `cap` requests in a window. The cap is the same for all, so it concerns the workspaces
 * that send most (max-min fairness). It falls by 30 % in each window with more than `boundMs` of delay, rises by 25 %
 * in each with less than half of that, and does not apply while only one workspace sends requests.
 */
export function createShedder(
  boundMs: number,
  telemetry: Pick<Telemetry, "requestShed">,
): Shedder & {
  /** @param delayMs mean delay of the event loop in the window */
  endWindow(delayMs: number): void;
} {
  /** Requests of each workspace in this window; undefined while the loop is in time. */
  let counts: Map<string, number> | undefined;
  let cap = Number.POSITIVE_INFINITY;
  let refused = 0;
  let calm = 0;

  function adapt(admitted: ReadonlyMap<string, number>, delayMs: number): void {
    // A workspace that is alone delays nobody else.
    if (admitted.size < 2) cap = Number.POSITIVE_INFINITY;
    else if (delayMs > boundMs)
      cap = Math.max(MIN_CAP, Math.floor(DECREASE * Math.min(cap, Math.max(...admitted.values(), 0))));
    else if (delayMs < boundMs / 2) cap = Math.ceil(INCREASE * cap);
    calm = delayMs < boundMs / 2 && refused === 0 ? calm + 1 : 0;
  }

  return {
    admit(workspace) {
      if (!counts) return;
      const count = counts.get(workspace) ?? 0;
      if (count >= cap) {
        refused += 1;
        telemetry.requestShed("event_loop");
        throw new Failure("overloaded", { retryAfterMs: 1_000 });
      }
      counts.set(workspace, count + 1);
    },
    endWindow(delayMs) {
      if (counts) adapt(counts, delayMs);
      else if (delayMs > boundMs) calm = 0;
      const isWatched = counts ? calm < CALM_WINDOWS : delayMs > boundMs;
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
    const delay = delays.count > 0 ? delays.mean / 1e6 - RESOLUTION_MS : WINDOW_MS;
    delays.reset();
    shedder.endWindow(delay);
  }, WINDOW_MS).unref();
  return {
    admit: shedder.admit,
    stop() {
      clearInterval(timer);
      delays.disable();
    },
  };
}
