/** One of the six invariants of docs/decisions/grants.md does not hold. */
export class Violation extends Error {
  readonly invariant: number;

  constructor(invariant: number, message: string) {
    super(`invariant ${invariant}: ${message}`);
    this.name = "Violation";
    this.invariant = invariant;
  }
}
