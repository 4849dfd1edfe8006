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

/** Operations of patterns for a short answer, more for each UTF-16 unit, and the most. Zod's formats take about ten. */
const OPERATIONS = { short: 50_000, unit: 16, most: 400_000 };

/** The work that the checks of one answer may take together: about 20 ms for its schemas, and as much for patterns. */
export class LooseEffort implements Effort {
  steps = 100_000;
  operations: number;

  /** @param length of what is checked, in UTF-16 units */
  constructor(length: number) {
    this.operations = Math.min(OPERATIONS.most, OPERATIONS.short + OPERATIONS.unit * length);
  }

  get isSpent(): boolean {
    return this.steps < 0 || this.operations < 0;
  }
}

/** Thrown where a check would take too much work. */
export class Exhausted extends Error {}
