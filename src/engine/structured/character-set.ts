import type { AST } from "@eslint-community/regexpp";
import { TextCache } from "../../contract/text-cache.ts";
import { type Effort, Exhausted } from "./effort.ts";

/** A part of a pattern that reads one character. */
export type SetNode = AST.Character | AST.CharacterSet | AST.ClassRangesCharacterClass;

/** First and last code points of ranges. */
type Ranges = readonly number[];

const DIGITS: Ranges = [48, 57];
const WORDS: Ranges = [48, 57, 65, 90, 95, 95, 97, 122];
const LINE_ENDS: Ranges = [10, 10, 13, 13, 0x2028, 0x2029];
/** `WhiteSpace` and `LineTerminator` of ECMAScript. */
const SPACES: Ranges = [
  ...[9, 13, 32, 32, 160, 160, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f],
  ...[0x3000, 0x3000, 0xfeff, 0xfeff],
];

/** Operations for a look at a class of Unicode, and for the first one, which takes V8 about 0.5 ms. */
const [LOOK, FIRST_LOOK] = [3, 10_000];

/** Expressions of classes of Unicode, such as `\p{L}`, by their text. */
const CLASSES = new TextCache<RegExp>({ entries: 256, length: 16_384 });

/** The characters that a part of a pattern reads. */
export class CharacterSet {
  readonly #ranges: Int32Array;
  readonly #negate: boolean;
  /** Texts of classes of Unicode. */
  readonly #classes: readonly string[];

  constructor(node: SetNode) {
    const isClass = node.type === "CharacterClass";
    const elements = isClass ? node.elements : [node];
    const ranges = elements.map(rangesOf);
    this.#negate = isClass && node.negate;
    this.#ranges = Int32Array.from(ranges.flatMap((range) => range ?? []));
    this.#classes = elements.filter((_, i) => ranges[i] === undefined).map(({ raw }) => raw);
  }

  /** @throws Exhausted */
  has(codePoint: number, effort: Effort): boolean {
    effort.operations -= this.#ranges.length >> 4;
    for (let i = 0; i < this.#ranges.length; i += 2)
      if (codePoint >= (this.#ranges[i] as number) && codePoint <= (this.#ranges[i + 1] as number))
        return !this.#negate;
    if (this.#classes.length === 0) return this.#negate;
    const character = String.fromCodePoint(codePoint);
    return this.#classes.some((name) => isOf(name, character, effort)) !== this.#negate;
  }
}

/** Whether a character is of a class of Unicode. @throws Exhausted */
function isOf(name: string, character: string, effort: Effort): boolean {
  let operations = LOOK;
  const expression = CLASSES.get(name, (own) => {
    operations = FIRST_LOOK;
    return expressionOf(own);
  });
  effort.operations -= operations;
  if (effort.operations < 0) throw new Exhausted();
  return expression.test(character);
}

function expressionOf(name: string): RegExp {
  try {
    return new RegExp(`^${name}$`, "u");
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The parser knows scripts of a later Unicode than V8. None of the characters that V8 knows is of them.
    return name.startsWith("\\P") ? /^/ : /(?!)/;
  }
}

/** Whether a UTF-16 unit is a letter, digit or underscore of ASCII. False for `NaN`. */
export function isWord(unit: number): boolean {
  return (unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90) || (unit >= 48 && unit <= 57) || unit === 95;
}

/** @returns undefined for a class of Unicode */
function rangesOf(node: AST.ClassRangesCharacterClassElement | AST.CharacterSet): Ranges | undefined {
  if (node.type === "Character") return [node.value, node.value];
  if (node.type === "CharacterClassRange") return [node.min.value, node.max.value];
  if (node.kind === "property") return undefined;
  if (node.kind === "any") return others(LINE_ENDS);
  const ranges = { digit: DIGITS, word: WORDS, space: SPACES }[node.kind];
  return node.negate ? others(ranges) : ranges;
}

/** All other code points. @param ranges in order */
function others(ranges: Ranges): Ranges {
  const ends = ranges.map((point, i) => (i % 2 === 0 ? point - 1 : point + 1));
  return [0, ...ends, 0x10ffff];
}
