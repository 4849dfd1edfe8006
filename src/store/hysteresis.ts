/**
 * Follows a condition with a delay, so that a short change of it has no effect.
 * @param delays how long the condition must be false, or true again, before the value follows, in milliseconds
 * @param clock the time in milliseconds, from any fixed point
 */
export function createHysteresis(delays: { toFalse: number; toTrue: number }, clock = () => performance.now()) {
  let followed = true;
  let given = true;
  let since = Number.NEGATIVE_INFINITY;
  const settle = () => {
    if (clock() - since >= (given ? delays.toTrue : delays.toFalse)) followed = given;
    return followed;
  };
  return {
    /** The condition has this value from now on. */
    set(value: boolean): void {
      settle();
      if (value === given) return;
      given = value;
      since = clock();
    },
    /** The value that the condition has had for long enough. True at the beginning. */
    get value(): boolean {
      return settle();
    },
  };
}
