import { copyOf } from "../../contract/text-cache.ts";
import { Vocabulary } from "./vocabulary.ts";

// The pattern of o200k_base with bounded repeats. With unbounded repeats a text of one repeated letter is one piece,
// for which encoding takes quadratic time (docs/decisions/tokens.md).
const ANY = "{0,256}";
const SOME = "{1,256}";
const LEAD = "[^\\r\\n\\p{L}\\p{N}]?";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const CONTRACTION = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?";
const PIECE = new RegExp(
  [
    `${LEAD}${UPPER}${ANY}${LOWER}${SOME}${CONTRACTION}`,
    `${LEAD}${UPPER}${SOME}${LOWER}${ANY}${CONTRACTION}`,
    "\\p{N}{1,3}",
    ` ?[^\\s\\p{L}\\p{N}]${SOME}[\\r\\n/]${ANY}`,
    `\\s${ANY}[\\r\\n]${SOME}`,
    `\\s${SOME}(?!\\S)`,
    `\\s${SOME}`,
  ].join("|"),
  "yu",
);

/** The end of the piece that starts at `start`. The pattern matches at each place. test() makes no list of matches. */
function endOfPiece(text: string, start: number): number {
  PIECE.lastIndex = start;
  return PIECE.test(text) ? PIECE.lastIndex : text.length;
}

/** Most pieces in the cache of counts, and the longest piece in it, in UTF-16 units: about 1 MB in all. */
const CACHE_SIZE = 8192;
const MAX_CACHED_LENGTH = 32;

/** Upper bound of the UTF-8 length of a piece: 515 characters of four bytes, as a power of two. */
const MAX_BYTES = 4096;

/**
 * Byte-pair encoding with the vocabulary and the rules of OpenAI's o200k_base, except that it splits a run of letters,
 * marks, punctuation or space every 256 characters, which makes the time linear in the text. Loading takes 0.05 s.
 */
export class Encoding {
  readonly #vocabulary = new Vocabulary();
  /** Cached counts by piece. */
  readonly #counts = new Map<string, number>();
  readonly #queue = new MinQueue(3 * MAX_BYTES);
  /**
   * By the start of a token: the starts of the next and the previous token, and the rank of the token merged with the
   * next.
   */
  readonly #next = new Int32Array(MAX_BYTES);
  readonly #previous = new Int32Array(MAX_BYTES);
  readonly #pair = new Int32Array(MAX_BYTES);

  /**
   * Splits a text into the pieces that are encoded separately. Text that is added later can change only the last two
   * pieces, unless it completes a surrogate pair.
   */
  *pieces(text: string): Generator<string> {
    for (let start = 0; start < text.length; ) {
      const end = endOfPiece(text, start);
      yield text.slice(start, end);
      start = end;
    }
  }

  /** The number of tokens of a text. */
  count(text: string): number {
    let count = 0;
    // Without pieces(), because a generator takes longer than the look-up of a count.
    for (let start = 0; start < text.length; ) {
      const end = endOfPiece(text, start);
      count += this.tokens(text.slice(start, end));
      start = end;
    }
    return count;
  }

  /** The number of tokens of one piece. A lone surrogate counts as U+FFFD. */
  tokens(piece: string): number {
    const known = this.#counts.get(piece);
    if (known !== undefined) return known;
    const bytes = toBytes(piece);
    const count = this.#isToken(bytes) ? 1 : this.#merge(bytes);
    if (piece.length <= MAX_CACHED_LENGTH) {
      if (this.#counts.size >= CACHE_SIZE) this.#counts.clear();
      this.#counts.set(copyOf(piece), count);
    }
    return count;
  }

  /** The UTF-8 length of each token of one piece, in order. */
  lengths(piece: string): number[] {
    const bytes = toBytes(piece);
    if (this.#isToken(bytes)) return [bytes.length];
    this.#merge(bytes);
    const lengths: number[] = [];
    for (let at = 0; at < bytes.length; at = this.#after(at)) lengths.push(this.#after(at) - at);
    return lengths;
  }

  /** Merges neighbours, lowest rank first, then leftmost, until no two make a token. @returns the number of tokens */
  #merge(bytes: string): number {
    const end = bytes.length;
    for (let at = 0; at < end; at += 1) {
      this.#next[at] = at + 1;
      this.#previous[at] = at - 1;
      this.#propose(bytes, at, at + 2);
    }
    let count = end;
    for (let key = this.#queue.pop(); key !== undefined; key = this.#queue.pop()) {
      const at = key % MAX_BYTES;
      const rank = (key - at) / MAX_BYTES;
      // The entry is stale: one of its two tokens has been merged with another.
      if (this.#pair[at] !== rank) continue;
      const middle = this.#after(at);
      const after = this.#after(middle);
      this.#next[at] = after;
      this.#previous[after] = at;
      this.#pair[middle] = -1;
      count -= 1;
      this.#propose(bytes, at, after < end ? this.#after(after) : Number.POSITIVE_INFINITY);
      const before = this.#previous[at] ?? -1;
      if (before >= 0) this.#propose(bytes, before, after);
    }
    return count;
  }

  /** Queues the two tokens from `start` to `end` if they merge to one. */
  #propose(bytes: string, start: number, end: number): void {
    const rank = end <= bytes.length ? this.#vocabulary.rank(bytes, start, end) : -1;
    this.#pair[start] = rank;
    if (rank >= 0) this.#queue.push(rank * MAX_BYTES + start);
  }

  #isToken(bytes: string): boolean {
    return this.#vocabulary.rank(bytes, 0, bytes.length) >= 0;
  }

  #after(at: number): number {
    return this.#next[at] ?? 0;
  }
}

/** A binary heap of 32-bit numbers. */
class MinQueue {
  readonly #heap: Int32Array;
  #size = 0;

  constructor(capacity: number) {
    this.#heap = new Int32Array(capacity);
  }

  push(value: number): void {
    let at = this.#size;
    this.#size += 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#at(parent) <= value) break;
      this.#heap[at] = this.#at(parent);
      at = parent;
    }
    this.#heap[at] = value;
  }

  pop(): number | undefined {
    if (this.#size === 0) return undefined;
    const top = this.#at(0);
    this.#size -= 1;
    const value = this.#at(this.#size);
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#at(child + 1) < this.#at(child)) child += 1;
      if (this.#at(child) >= value) break;
      this.#heap[at] = this.#at(child);
      at = child;
    }
    this.#heap[at] = value;
    return top;
  }

  #at(index: number): number {
    return this.#heap[index] ?? 0;
  }
}

/** The UTF-8 bytes of a text as a string with one character per byte. */
function toBytes(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString("latin1");
}
