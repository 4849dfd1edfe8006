/** The usual constants of BM25: saturation by repeated terms, and normalisation by length. */
const K1 = 1.2;
const B = 0.75;

/** Scripts without spaces between words. */
const UNSPACED =
  "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}" +
  "\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
const WORDS = new RegExp(`[${UNSPACED}]+|[[\\p{L}\\p{M}\\p{N}]--[${UNSPACED}]]+`, "gv");
const STARTS_UNSPACED = new RegExp(`^[${UNSPACED}]`, "v");

/**
 * Scores passages against a question by Okapi BM25 (Robertson and Zaragoza 2009, "The Probabilistic Relevance
 * Framework"), where the length of a passage is its number of characters. A term is a word without a plural s, or two
 * neighbouring characters of a script without spaces. Takes linear time.
 * @returns one score for each passage; 0 if it shares no term with the question
 */
export function relevance(passages: Iterable<string>, question: string): Float64Array {
  const queryTerms = new Map<string, number>();
  for (const term of terms(question)) if (!queryTerms.has(term)) queryTerms.set(term, queryTerms.size);
  const found: Array<Map<number, number>> = [];
  const lengths: number[] = [];
  /** Number of passages with each term. */
  const frequencies = new Uint32Array(queryTerms.size);
  for (const passage of passages) {
    const counts = new Map<number, number>();
    for (const term of terms(passage)) {
      const index = queryTerms.get(term);
      if (index !== undefined) counts.set(index, (counts.get(index) ?? 0) + 1);
    }
    for (const index of counts.keys()) frequencies[index] = (frequencies[index] ?? 0) + 1;
    found.push(counts);
    lengths.push(passage.length);
  }
  const mean = lengths.reduce((sum, length) => sum + length, 0) / (lengths.length || 1);
  return Float64Array.from(found, (counts, i) => {
    const damping = K1 * (1 - B + (B * (lengths[i] ?? 0)) / mean);
    let score = 0;
    for (const [index, count] of counts) {
      const frequency = frequencies[index] ?? 0;
      const rarity = Math.log(1 + (found.length - frequency + 0.5) / (frequency + 0.5));
      score += (rarity * count * (K1 + 1)) / (count + damping);
    }
    return score;
  });
}

function terms(text: string): string[] {
  const words = text.toLowerCase().match(WORDS) ?? [];
  const found: string[] = [];
  for (const word of words) {
    if (STARTS_UNSPACED.test(word)) {
      for (let i = 0; i + 1 < word.length || i === 0; i += 1) found.push(word.slice(i, i + 2));
    } else found.push(word.length > 3 && word.endsWith("s") ? word.slice(0, -1) : word);
  }
  return found;
}
