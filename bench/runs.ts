import type { Environment } from "./environment.ts";
import { type Entry, type Rounds, type Sample, takeTurns } from "./rounds.ts";

/** Measures Chorus that keeps how each request was answered, beside Chorus that does not. */
export async function measureRuns({ startWithRuns }: Environment, how: Rounds): Promise<Sample[]> {
  await using off = await startWithRuns("off");
  await using on = await startWithRuns("on");
  const entries = [off, on].map(({ name, server, target }): Entry => ({ name, server, target: target("unary") }));
  return await takeTurns("runs", entries, how);
}
