import { TextCache } from "../../contract/text-cache.ts";
import { Pattern } from "./pattern.ts";
import { programOf } from "./pattern-program.ts";

/** Longest pattern, in UTF-16 units. The longest one of zod has 414. */
export const MAX_PATTERN = 512;
/** Most parts of the patterns of a schema, where `a{3}` counts as three. Each takes five bytes. */
export const MAX_PARTS = 20_000;
/** Most patterns of a schema that are refused, until all others are. To find that out can take 1 ms. */
const MAX_REFUSED = 4;

/** Kept, because the schema of a request is read each time. To read a pattern of zod takes 0.2 ms. */
const kept = new TextCache<Pattern | undefined>({ entries: 128, length: 65_536 });

function patternOf(source: string): Pattern | undefined {
  const program = programOf(source, MAX_PARTS);
  return program && new Pattern(program);
}

/** The regular expressions of one schema. */
export class Patterns {
  readonly #read = new Map<string, Pattern>();
  #parts = 0;
  #refused = 0;

  /**
   * @returns undefined for a text that JavaScript cannot read, that refers to groups, or that is too large, and for all
   * further texts after some of these
   */
  read(source: string): Pattern | undefined {
    const known = this.#read.get(source);
    if (known || source.length > MAX_PATTERN || this.#refused === MAX_REFUSED) return known;
    const pattern = kept.get(source, patternOf);
    this.#parts += pattern?.parts ?? 0;
    if (!pattern || this.#parts > MAX_PARTS) {
      this.#refused++;
      return undefined;
    }
    this.#read.set(source, pattern);
    return pattern;
  }
}
