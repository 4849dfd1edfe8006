import type { Environment } from "./environment.ts";
import { type Entry, type Rounds, type Sample, takeTurns } from "./rounds.ts";

/** Numbers of workers that are compared. */
const COUNTS = [1, 2, 4] as const;

/** Measures Chorus with one and with several workers, which share the core of the server under test. */
export async function measureWorkers({ startWorkers }: Environment, how: Rounds): Promise<Sample[]> {
  await using stack = new AsyncDisposableStack();
  const contestants = [];
  for (const workers of COUNTS) contestants.push({ workers, ...stack.use(await startWorkers(workers)) });
  const samples: Sample[] = [];
  for (const shape of ["unary", "paced"] as const) {
    const entries = contestants.map(({ workers, name, server, target }): Entry => {
      return { workers, name, server, target: target(shape) };
    });
    samples.push(...(await takeTurns(`workers ${shape}`, entries, how)));
  }
  return samples;
}
