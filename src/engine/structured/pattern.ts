/**
 * The regular expression of a `pattern`. Without the flag `u`, more escapes are possible. Many authors write them, as
 * in `\d\-\d`.
 * @returns undefined for a text that is no expression of JavaScript's
 */
export function expressionOf(pattern: string): RegExp | undefined {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(pattern, flags);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return undefined;
}
