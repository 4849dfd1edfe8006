/** Cuts a streamed text before the first stop sequence. */
export interface Stopper {
  /** The sequence before which the text was cut; undefined until one was found. Known for certain after `flush`. */
  readonly found: string | undefined;
  /** Takes the next piece of text. @returns the text that is safe to deliver, and whether a stop sequence was found */
  push(piece: string): { text: string; stopped: boolean };
  /** Returns the text that was held back. Call it once, at the end of the text. */
  flush(): string;
}

const NO_STOPS: Stopper = { found: undefined, push: (text) => ({ text, stopped: false }), flush: () => "" };

/**
 * The match that starts first in the text wins, however the text is split. Only text that may be the start of a stop
 * sequence is held back. Takes linear time for any sequences.
 * @param sequences none of them empty; compared by UTF-16 unit, without normalisation
 */
export function createStopper(sequences: readonly string[]): Stopper {
  if (sequences.length === 0) return NO_STOPS;
  const matchers = sequences.map((sequence) => new Matcher(sequence));
  let held = "";
  /** Start of the longest part that may become a stop sequence, counted back from the end of the text so far. */
  let candidate = 0;
  /** Start of the first match, counted in the same way. */
  let match: number | undefined;
  let found: string | undefined;
  let stopped = false;

  const push = (piece: string) => {
    if (stopped) return { text: "", stopped };
    let read = 0;
    while (read < piece.length && !stopped) {
      const code = piece.charCodeAt(read);
      read += 1;
      if (match !== undefined) match += 1;
      candidate = 0;
      for (const matcher of matchers) {
        if (matcher.isComplete(code) && matcher.length > (match ?? 0)) {
          match = matcher.length;
          found = matcher.sequence;
        }
        candidate = Math.max(candidate, matcher.matched);
      }
      // A complete match must wait while an earlier candidate can still become a match.
      stopped = match !== undefined && candidate <= match;
    }
    const text = held + piece.slice(0, read);
    const end = text.length - (stopped ? (match ?? 0) : candidate);
    held = text.slice(end);
    return { text: text.slice(0, end), stopped };
  };

  const flush = () => {
    const text = stopped ? "" : held.slice(0, held.length - (match ?? 0));
    held = "";
    return text;
  };
  return {
    get found() {
      return found;
    },
    push,
    flush,
  };
}

/** The Knuth–Morris–Pratt automaton for one sequence. */
class Matcher {
  /** Length of the longest prefix of the sequence with which the text so far ends, in UTF-16 units. */
  matched = 0;
  readonly sequence: string;
  /**
   * For each length of a prefix: the length of the longest shorter prefix with which it ends. The table grows with the
   * longest match so far, because a sequence may be as long as a request.
   */
  readonly #shorter = [0, 0];

  constructor(sequence: string) {
    this.sequence = sequence;
  }

  get length(): number {
    return this.sequence.length;
  }

  /** Takes one UTF-16 unit of the text. @returns whether it completes the sequence */
  isComplete(code: number): boolean {
    this.matched = this.#next(this.matched, code);
    if (this.matched < this.sequence.length) return false;
    this.matched = this.#shorterThan(this.matched);
    return true;
  }

  /** Length of the longest prefix that a prefix of the given length ends with after one more unit. */
  #next(length: number, code: number): number {
    let next = length;
    while (next > 0 && this.sequence.charCodeAt(next) !== code) next = this.#shorterThan(next);
    return this.sequence.charCodeAt(next) === code ? next + 1 : next;
  }

  #shorterThan(length: number): number {
    const table = this.#shorter;
    for (let known = table.length - 1; known < length; known += 1) {
      table.push(this.#next(table[known] ?? 0, this.sequence.charCodeAt(known)));
    }
    return table[length] ?? 0;
  }
}
