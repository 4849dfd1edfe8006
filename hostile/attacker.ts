/** Runs one attack, in a process of its own. */
import { answer, input } from "./child.ts";
import type { Attack } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

/** What the main process tells the attacker. */
export type AttackInput = Pick<Attack, "url" | "rpcUrl" | "keys"> & { name: string };

/** What happened to the attacker, by the longest time or by the number of times. */
export interface AttackCounts {
  counts: Record<string, number>;
  longest: Record<string, number>;
}

const { name, ...target } = input<AttackInput>();
const scenario = SCENARIOS.find((one) => one.name === name);
const ending = new AbortController();
const result: AttackCounts = { counts: {}, longest: {} };
const running = Promise.withResolvers<void>();

function count(what: string, by = 1): void {
  result.counts[what] = (result.counts[what] ?? 0) + by;
}

answer({
  begin() {
    const attack: Attack = {
      ...target,
      signal: ending.signal,
      count,
      longest: (what, ms) => {
        result.longest[what] = Math.max(result.longest[what] ?? 0, ms);
      },
    };
    const attacks = scenario && "attack" in scenario ? scenario.attack?.(attack) : undefined;
    Promise.resolve(attacks).then(running.resolve, (error) => {
      if (!ending.signal.aborted) count(`the attack failed: ${error.message}`);
      running.resolve();
    });
  },
  async end() {
    ending.abort();
    await running.promise;
    return result;
  },
});
// What happens to a connection does not end the attack.
process.on("uncaughtException", (error) => count(`uncaught: ${error.message}`));
