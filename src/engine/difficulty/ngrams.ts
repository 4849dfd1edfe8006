/** Buckets of the hash, a power of two. Twice as many gain .001 APGR on MMLU. */
export const BUCKETS = 1 << 17;

/** Longest run of words that is one feature. */
const LONGEST = 3;

/** Words of up to this many characters are kept; of longer ones only the ending is. */
const SHORT = 3;

/** One bit for each bucket, to find buckets that occur twice. `ngrams` clears the bits that it sets. */
const seen = new Uint8Array(BUCKETS / 8);

/**
 * The distinct buckets of a text's n-grams: runs of one to three words, where a long word is replaced by its last two
 * letters and a number by "0". These describe how a text is built, not its subject, and therefore generalise to
 * subjects that training did not see (docs/decisions/difficulty.md).
 */
export function ngrams(text: string): Int32Array {
  const words = shapes(text);
  const found = new Int32Array(words.length * LONGEST);
  let count = 0;
  for (let start = 0; start < words.length; start++) {
    let hash = 0x811c9dc5;
    const end = Math.min(words.length, start + LONGEST);
    for (let at = start; at < end; at++) {
      hash = fold(hash, words[at] ?? 0);
      const bucket = spread(hash + at + 1 - start) & (BUCKETS - 1);
      const byte = seen[bucket >> 3] ?? 0;
      const bit = 1 << (bucket & 7);
      if ((byte & bit) !== 0) continue;
      seen[bucket >> 3] = byte | bit;
      found[count++] = bucket;
    }
  }
  const buckets = found.subarray(0, count);
  for (const bucket of buckets) seen[bucket >> 3] = 0;
  return buckets;
}

/** The shape of each word: up to three UTF-16 units of 16 bits each, first unit highest, as one number. */
function shapes(text: string): number[] {
  const lower = text.toLowerCase();
  return ASCII.test(lower) ? asciiShapes(lower) : (lower.match(/\p{L}+|\d+|[^\s\p{L}\d]/gu) ?? []).map(shape);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is all of ASCII
const ASCII = /^[\x00-\x7f]*$/;

/** The same as the pattern in `shapes`, in a fifth of the time: most prompts are ASCII. */
function asciiShapes(text: string): number[] {
  const found: number[] = [];
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    const start = at++;
    if (isLetter(code)) {
      while (at < text.length && isLetter(text.charCodeAt(at))) at++;
      const length = at - start;
      found.push(length <= SHORT ? units(text, start, at) : ending(text, at));
    } else if (isDigit(code)) {
      while (at < text.length && isDigit(text.charCodeAt(at))) at++;
      found.push(ZERO);
    } else if (code !== 32 && (code < 9 || code > 13)) found.push(code);
  }
  return found;
}

function shape(word: string): number {
  if (isDigit(word.charCodeAt(0))) return ZERO;
  return word.length <= SHORT ? units(word, 0, word.length) : ending(word, word.length);
}

const ZERO = 48;
const TILDE = 126;

function isLetter(code: number): boolean {
  return code >= 97 && code <= 122;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** A long word: a tilde and the two units before `end`. */
function ending(text: string, end: number): number {
  return TILDE * 2 ** 32 + units(text, end - 2, end);
}

function units(text: string, start: number, end: number): number {
  let packed = 0;
  for (let at = start; at < end; at++) packed = packed * 2 ** 16 + text.charCodeAt(at);
  return packed;
}

/** FNV-1a over the units of a shape and a space. */
function fold(hash: number, shape: number): number {
  let folded = hash;
  const first = Math.floor(shape / 2 ** 32);
  const second = (shape / 2 ** 16) & 0xffff;
  if (first !== 0) folded = Math.imul(folded ^ first, 0x01000193);
  if (second !== 0 || first !== 0) folded = Math.imul(folded ^ second, 0x01000193);
  folded = Math.imul(folded ^ (shape & 0xffff), 0x01000193);
  return Math.imul(folded ^ 32, 0x01000193);
}

/** Mixes the high bits, which FNV distributes best, into the low bits that select the bucket. */
function spread(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 12)) >>> 0;
}
