import { type CharacterSet, isWord } from "./character-set.ts";
import { type Effort, Exhausted } from "./effort.ts";
import { OP, type Program } from "./pattern-program.ts";

/**
 * A regular expression. Matching a text takes at most as many operations as the expression has for each character, and
 * again for each character where it looks ahead or behind.
 */
export class Pattern {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  /** Number of its operations. */
  get parts(): number {
    return this.#program.ops.length;
  }

  /** Whether a part of a text matches. @throws Exhausted */
  test(text: string, effort: Effort): boolean {
    return new Search(this.#program, text, effort).finds();
  }
}

/** A choice of the pattern is followed once at each place: without references, what was read before does not matter. */
class Search {
  readonly #program: Program;
  readonly #text: string;
  readonly #effort: Effort;
  /** Choices that lead to no match: of the pattern, and of what it looks for, by the first operation. */
  readonly #failed = new Map<number, Set<number>>();

  constructor(program: Program, text: string, effort: Effort) {
    this.#program = program;
    this.#text = text;
    this.#effort = effort;
  }

  finds(): boolean {
    for (let at = 0; at <= this.#text.length; at++)
      if (!(this.#program.unicode && this.#isWithin(at)) && this.#leads(0, at)) return true;
    return false;
  }

  /** Whether a match can be reached from an operation. */
  #leads(from: number, start: number): boolean {
    const seen = this.#failed.get(from) ?? new Set();
    const leads = this.#follow(from, start, seen);
    if (leads) this.#failed.delete(from);
    else this.#failed.set(from, seen);
    return leads;
  }

  #follow(from: number, start: number, seen: Set<number>): boolean {
    const { ops, args } = this.#program;
    const open = [from, start];
    while (open.length > 0) {
      let at = open.pop() as number;
      for (let next = open.pop() as number; at >= 0; ) {
        if (--this.#effort.operations < 0) throw new Exhausted();
        const arg = args[next] as number;
        switch (ops[next]) {
          case OP.MATCH:
            return true;
          case OP.READ:
            at = this.#read(arg, at);
            next++;
            break;
          case OP.READ_BACK:
            at = this.#readBack(arg, at);
            next++;
            break;
          case OP.SPLIT: {
            const choice = next * (this.#text.length + 1) + at;
            if (seen.has(choice)) at = -1;
            else {
              // It takes twice as long as other operations.
              this.#effort.operations--;
              seen.add(choice);
              open.push(arg, at);
              next++;
            }
            break;
          }
          case OP.JUMP:
            next = arg;
            break;
          default:
            if (!this.#holds(next, at)) at = -1;
            else next = arg || next + 1;
        }
      }
    }
    return false;
  }

  /** Whether what the pattern says about a place is true. */
  #holds(operation: number, at: number): boolean {
    const text = this.#text;
    switch (this.#program.ops[operation]) {
      case OP.START:
        return at === 0;
      case OP.END:
        return at === text.length;
      case OP.WORD:
        return isWord(text.charCodeAt(at - 1)) !== isWord(text.charCodeAt(at));
      case OP.NOT_WORD:
        return isWord(text.charCodeAt(at - 1)) === isWord(text.charCodeAt(at));
      case OP.LOOK:
        return this.#leads(operation + 1, at);
      default:
        return !this.#leads(operation + 1, at);
    }
  }

  /** @returns the place behind a character of a set, or -1 */
  #read(set: number, at: number): number {
    const text = this.#text;
    const { sets, unicode } = this.#program;
    if (at === text.length) return -1;
    const point = unicode ? (text.codePointAt(at) as number) : text.charCodeAt(at);
    return (sets[set] as CharacterSet).has(point, this.#effort) ? at + (point > 0xffff ? 2 : 1) : -1;
  }

  /** @returns the place before a character of a set, or -1 */
  #readBack(set: number, at: number): number {
    if (at === 0) return -1;
    const before = this.#program.unicode && this.#isWithin(at - 1) ? at - 2 : at - 1;
    return this.#read(set, before) < 0 ? -1 : before;
  }

  /** Whether a place is between the two units of a code point. */
  #isWithin(at: number): boolean {
    const isLow = (this.#text.charCodeAt(at) & 0xfc00) === 0xdc00;
    return at > 0 && isLow && (this.#text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
  }
}
