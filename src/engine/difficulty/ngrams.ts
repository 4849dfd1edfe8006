/** Buckets of the hash, a power of two. Twice as many gain .001 APGR on MMLU. */
export const BUCKETS = 1 << 17;

/** Longest run of words that is one feature. */
const LONGEST = 3;

/** Words of up to this many characters are kept; of longer ones only the ending is. */
const SHORT = 3;

/**
 * The distinct buckets of a text's n-grams: runs of one to three words, where a long word is replaced by its last two
 * letters and a number by "0". These describe how a text is built, not its subject, and therefore generalise to
 * subjects that training did not see (docs/decisions/difficulty.md).
 */
export function ngrams(text: string): Int32Array {
  const words = (text.toLowerCase().match(/\p{L}+|\d+|[^\s\p{L}\d]/gu) ?? []).map(shape);
  const found = new Set<number>();
  for (let start = 0; start < words.length; start++) {
    let hash = 0x811c9dc5;
    for (let length = 1; length <= LONGEST && start + length <= words.length; length++) {
      hash = fold(hash, words[start + length - 1] ?? "");
      found.add(spread(hash + length) & (BUCKETS - 1));
    }
  }
  return Int32Array.from(found);
}

function shape(word: string): string {
  const first = word.charCodeAt(0);
  if (first >= 48 && first <= 57) return "0";
  return word.length <= SHORT ? word : `~${word.slice(-2)}`;
}

/** FNV-1a over the word and a space. */
function fold(hash: number, word: string): number {
  let folded = hash;
  for (let at = 0; at < word.length; at++) folded = Math.imul(folded ^ word.charCodeAt(at), 0x01000193);
  return Math.imul(folded ^ 32, 0x01000193);
}

/** Mixes the high bits, which FNV distributes best, into the low bits that select the bucket. */
function spread(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 12)) >>> 0;
}
