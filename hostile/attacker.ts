/** Runs one attack, in a process of its own. */
import { answer, input } from "./child.ts";
import { type AttackCounts, recordInto } from "./recorder.ts";
import type { Attack } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

/** What the main process tells the attacker. */
export type AttackInput = Pick<Attack, "url" | "rpcUrl" | "keys"> & { name: string };

const { name, ...target } = input<AttackInput>();
const scenario = SCENARIOS.find((one) => one.name === name);
const ending = new AbortController();
const result: AttackCounts = { counts: {}, longest: {} };
const recorder = recordInto(result);
const running = Promise.withResolvers<void>();

answer({
  begin() {
    const attack: Attack = { ...target, signal: ending.signal, ...recorder };
    const attacks = scenario && "attack" in scenario ? scenario.attack?.(attack) : undefined;
    Promise.resolve(attacks).then(running.resolve, (error) => {
      if (!ending.signal.aborted) recorder.count(`the attack failed: ${error.message}`);
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
process.on("uncaughtException", (error) => recorder.count(`uncaught: ${error.message}`));
