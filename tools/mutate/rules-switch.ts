/**
 * Loaded before everything else in each process that runs instrumented sources, also in those that tests start. Defines
 * what the instrumented sources call: whether a mutant is active, and, while tests are explored, that code is reached.
 */

/** Identifier of the active mutant; empty: none. A process that a test starts gets it in its environment. */
let active = process.env.CHORUS_MUTANT ?? "";

/** Number of further questions after which the code counts as endless. */
let left = Number.MAX_SAFE_INTEGER;

let reached = new Set<string>();

/** @param most number of questions, whether it is active, that end in an error */
export function activate(mutant: string, most: number): void {
  active = mutant;
  left = most;
  process.env.CHORUS_MUTANT = mutant;
}

/** Begins or ends to note the mutants whose code is reached. @returns those since the last call */
export function explore(isExploring: boolean): ReadonlySet<string> {
  const before = reached;
  reached = new Set();
  Object.assign(globalThis, { stryIsExploring: isExploring });
  return before;
}

Object.assign(globalThis, {
  stryIsExploring: false,
  stryMutAct_9fa48(id: string): boolean {
    if (left-- < 0) throw new Error("the mutant does not end");
    return id === active;
  },
  stryCov_9fa48(...ids: string[]): void {
    for (const id of ids) reached.add(id);
  },
});
