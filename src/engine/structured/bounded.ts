import { createContext, Script } from "node:vm";
import { type Effort, Exhausted } from "./rules.ts";

/** The work that the checks of one answer may take together: about 20 ms. */
export class LooseEffort implements Effort {
  steps = 100_000;
  /** Time for schemas with regular expressions. */
  milliseconds = 20;

  get isSpent(): boolean {
    return this.steps < 0 || this.milliseconds <= 0;
  }
}

const scope = createContext({ run: () => {} });
const script = new Script("run()");

/** Most tries of a function in `within`. */
const TRIES = 3;

/**
 * Runs a function, and ends it when the time of the effort is up: a pattern of a caller's schema can take forever. The
 * time passes on the clock, so the function runs again if other programs had the processor for most of it.
 * @throws Exhausted
 */
export function within<T>(effort: Pick<LooseEffort, "milliseconds">, run: () => T): T {
  scope.run = run;
  for (let tries = 1; ; tries++) {
    if (effort.milliseconds < 1) throw new Exhausted();
    const before = process.threadCpuUsage();
    try {
      return script.runInContext(scope, { timeout: Math.floor(effort.milliseconds) });
    } catch (error) {
      if (error instanceof Exhausted || tries === TRIES) throw new Exhausted();
    } finally {
      const { user, system } = process.threadCpuUsage(before);
      effort.milliseconds -= (user + system) / 1_000;
    }
  }
}
