/** The work that checks may take together. */
export interface Effort {
  /**
   * Schemas that may still be applied to values; a long text and an object with many members count as several. A
   * thousand steps take 0.1 to 0.3 ms.
   */
  steps: number;
  /** Operations of patterns that may still be done. A thousand take about 0.05 ms. */
  operations: number;
}

/** Most operations of patterns in the check of an answer. */
const MAX_OPERATIONS = 400_000;

/** The work that the checks of the calls in one answer may take together: about 20 ms each. */
export class LooseEffort implements Effort {
  steps = 100_000;
  operations = MAX_OPERATIONS;

  get isSpent(): boolean {
    return this.steps < 0 || this.operations < 0;
  }
}

/** Thrown where a check would take too much work. */
export class Exhausted extends Error {}
