/** Longest pattern, in UTF-16 units. The longest one of zod has 414. */
export const MAX_PATTERN = 512;
/** Most classes of Unicode, such as `\p{L}`, in the patterns of a schema. Each takes up to 0.2 ms to prepare. */
export const MAX_CLASSES = 32;

/**
 * Most weight of the choices in a pattern. JavaScript prepares a pattern at its first uses, which no timeout ends, in a
 * time that grows with the fourth power of their number: 100 choices can take 10 s, and this weight at most about
 * 0.1 s. The heaviest pattern of zod has 133.
 */
const MAX_WEIGHT = 144;

/** Weights of optional parts, alternatives, repetitions of few times, assertions about what is around, and places. */
const WEIGHTS: readonly (readonly [RegExp, number])[] = [
  [/(?<!\()\?/g, 8],
  [/\|/g, 5],
  [/\{(?:[0-3](?:,[0-3]?)?|0,\d*)\}/g, 16],
  [/\(\?<?[=!]/g, 4],
  [/\\b|[\^$]/gi, 3],
];

/** The regular expressions of one schema. */
export class Patterns {
  readonly #read = new Map<string, RegExp>();
  #classes = 0;

  /** @returns undefined for a text that is no expression of JavaScript's, or that could take too long to prepare */
  read(pattern: string): RegExp | undefined {
    const known = this.#read.get(pattern);
    if (known || pattern.length > MAX_PATTERN || weightOf(pattern) > MAX_WEIGHT) return known;
    this.#classes += count(pattern, /\\p/gi);
    const expression = this.#classes > MAX_CLASSES ? undefined : expressionOf(pattern);
    if (expression) this.#read.set(pattern, expression);
    return expression;
  }
}

function weightOf(pattern: string): number {
  return WEIGHTS.reduce((sum, [part, weight]) => sum + weight * count(pattern, part), 0);
}

function count(text: string, part: RegExp): number {
  return text.match(part)?.length ?? 0;
}

/** Without the flag `u`, more escapes are possible. Many authors write them, as in `\d\-\d`. */
function expressionOf(pattern: string): RegExp | undefined {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(pattern, flags);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return undefined;
}
