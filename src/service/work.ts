import { Failure } from "../failure.ts";
import { CallerGone, CutShort } from "./call.ts";

/** One request that runs; disposing it takes it off the books. */
export interface Running extends Disposable {
  /** Aborts with CallerGone or CutShort as its reason. */
  readonly signal: AbortSignal;
}

/** The requests that run now, and the end of them. */
export interface Work {
  /** @throws Failure overloaded once the service is draining. */
  admit(): void;
  /** Starts the clock of a request. It is cut short after `deadlineMs`, and ends when `caller` aborts. */
  begin(caller: AbortSignal, deadlineMs: number): Running;
  /** Lets what runs finish for `graceMs`, then cuts the rest short. Resolves when nothing runs any more. New requests are refused. */
  drain(graceMs: number): Promise<void>;
  readonly draining: boolean;
  readonly count: number;
}

export function createWork(): Work {
  const running = new Set<AbortController>();
  let draining = false;
  let idle: (() => void) | undefined;

  return {
    get draining() {
      return draining;
    },
    get count() {
      return running.size;
    },
    admit() {
      if (draining) throw new Failure("overloaded", { retryAfterMs: 1_000 });
    },
    begin(caller, deadlineMs) {
      const controller = new AbortController();
      const gone = () => controller.abort(new CallerGone());
      if (caller.aborted) gone();
      caller.addEventListener("abort", gone, { once: true });
      const timer = setTimeout(() => controller.abort(new CutShort("deadline")), deadlineMs);
      running.add(controller);
      return {
        signal: controller.signal,
        [Symbol.dispose]() {
          clearTimeout(timer);
          caller.removeEventListener("abort", gone);
          running.delete(controller);
          if (running.size === 0) idle?.();
        },
      };
    },
    async drain(graceMs) {
      draining = true;
      if (running.size === 0) return;
      const done = new Promise<void>((resolve) => {
        idle = resolve;
      });
      const timer = setTimeout(() => {
        for (const controller of running) controller.abort(new CutShort("drain"));
      }, graceMs);
      await done;
      clearTimeout(timer);
    },
  };
}
