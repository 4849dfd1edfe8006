import { createRequire } from "node:module";
import type { AST, RegExpParser } from "@eslint-community/regexpp";
import { CharacterSet, type SetNode } from "./character-set.ts";

/** Operations of a program. */
export const OP = {
  /** The pattern, or what is looked for around a place, has matched. */
  MATCH: 0,
  /** Reads the next character, which is one of a set. */
  READ: 1,
  /** Reads the character before. */
  READ_BACK: 2,
  /** Goes on at the next operation, or else at another one. */
  SPLIT: 3,
  JUMP: 4,
  START: 5,
  END: 6,
  WORD: 7,
  NOT_WORD: 8,
  /** Goes on at another operation if the next ones lead to a match, or if they do not. */
  LOOK: 9,
  LOOK_NOT: 10,
} as const;

/** What a pattern does, step by step. */
export interface Program {
  readonly ops: Uint8Array;
  /** Of each operation: the number of a set, or of the operation to go on at. */
  readonly args: Int32Array;
  readonly sets: readonly CharacterSet[];
  /** Whether a character is a code point, or else a UTF-16 unit. */
  readonly unicode: boolean;
}

let parser: RegExpParser | undefined;

/** Loads the parser at its first use: most services never see a pattern. */
function loadParser(): RegExpParser {
  const load: (name: string) => typeof import("@eslint-community/regexpp") = createRequire(import.meta.url);
  return new (load("@eslint-community/regexpp").RegExpParser)({ ecmaVersion: 2024 });
}

/** Thrown for what a program cannot do: references to groups, or more operations than allowed. */
class Unsupported extends Error {}

/**
 * Reads a regular expression of JavaScript. Without the flag `u`, more escapes are possible. Many authors write them,
 * as in `\d\-\d`.
 * @param most operations
 * @returns undefined for a text that is none, that refers to its groups (`\1`), or that has more operations
 */
export function programOf(source: string, most: number): Program | undefined {
  parser ??= loadParser();
  for (const unicode of [true, false]) {
    try {
      const writer = new Writer(most);
      writer.choose(parser.parsePattern(source, 0, source.length, { unicode }).alternatives, false);
      writer.add(OP.MATCH);
      return writer.program(unicode);
    } catch (error) {
      if (error instanceof Unsupported) return undefined;
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return undefined;
}

/** Most elements that are written, for each operation that is allowed. Some, such as `()`, add no operation. */
const MAX_WRITTEN = 4;

class Writer {
  readonly #most: number;
  #written = 0;
  readonly #ops: number[] = [];
  readonly #args: number[] = [];
  readonly #sets: CharacterSet[] = [];
  readonly #known = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  program(unicode: boolean): Program {
    return { ops: Uint8Array.from(this.#ops), args: Int32Array.from(this.#args), sets: this.#sets, unicode };
  }

  /** @returns the place of the operation */
  add(op: number, arg = 0): number {
    if (this.#ops.length === this.#most) throw new Unsupported();
    this.#args.push(arg);
    return this.#ops.push(op) - 1;
  }

  /** Lets an operation go on at the one that is written next. */
  #land(at: number): void {
    this.#args[at] = this.#ops.length;
  }

  /** @param back whether characters are read from the last to the first, as behind a place */
  choose(alternatives: readonly AST.Alternative[], back: boolean): void {
    const ends: number[] = [];
    for (const [i, { elements }] of alternatives.entries()) {
      const isLast = i === alternatives.length - 1;
      const split = isLast ? undefined : this.add(OP.SPLIT);
      for (const element of back ? elements.toReversed() : elements) this.#write(element, back);
      if (split === undefined) continue;
      ends.push(this.add(OP.JUMP));
      this.#land(split);
    }
    for (const end of ends) this.#land(end);
  }

  #write(node: AST.Element, back: boolean): void {
    if (++this.#written > MAX_WRITTEN * this.#most) throw new Unsupported();
    switch (node.type) {
      case "Character":
      case "CharacterSet":
        this.#read(node, back);
        break;
      case "CharacterClass":
        if (node.unicodeSets) throw new Unsupported();
        this.#read(node, back);
        break;
      case "Group":
      case "CapturingGroup":
        this.choose(node.alternatives, back);
        break;
      case "Quantifier":
        this.#repeat(node, back);
        break;
      case "Assertion":
        this.#assert(node);
        break;
      default:
        throw new Unsupported();
    }
  }

  #read(node: SetNode, back: boolean): void {
    let set = this.#known.get(node.raw);
    if (set === undefined) {
      set = this.#sets.push(new CharacterSet(node)) - 1;
      this.#known.set(node.raw, set);
    }
    this.add(back ? OP.READ_BACK : OP.READ, set);
  }

  #repeat({ element, min, max }: AST.Quantifier, back: boolean): void {
    for (let i = 0; i < min; i++) {
      const before = this.#ops.length;
      this.#write(element, back);
      if (this.#ops.length === before) return;
    }
    if (max === Number.POSITIVE_INFINITY) {
      const split = this.add(OP.SPLIT);
      this.#write(element, back);
      this.add(OP.JUMP, split);
      this.#land(split);
      return;
    }
    const splits: number[] = [];
    for (let i = min; i < max; i++) {
      splits.push(this.add(OP.SPLIT));
      this.#write(element, back);
    }
    for (const split of splits) this.#land(split);
  }

  #assert(node: AST.Assertion): void {
    switch (node.kind) {
      case "start":
        this.add(OP.START);
        break;
      case "end":
        this.add(OP.END);
        break;
      case "word":
        this.add(node.negate ? OP.NOT_WORD : OP.WORD);
        break;
      default: {
        const look = this.add(node.negate ? OP.LOOK_NOT : OP.LOOK);
        this.choose(node.alternatives, node.kind === "lookbehind");
        this.add(OP.MATCH);
        this.#land(look);
      }
    }
  }
}
