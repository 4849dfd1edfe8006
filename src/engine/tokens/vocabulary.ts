import { readFileSync } from "node:fs";

/** Slots of the hash table, as a power of two: 2.6 per token. */
export const SLOTS = 2 ** 19;

/**
 * The tokens of o200k_base and their ranks: a hash table over one array of bytes, in 4.3 MB that the garbage collector
 * does not visit. `tools/pack-vocabulary.ts` makes the file with these arrays, which loads in 2 ms. To make them at
 * each start took 0.15 s of processor time.
 */
export class Vocabulary {
  /** By rank: the end of the token in `#bytes`; entry 0 is the start of the first. */
  readonly #ends: Int32Array;
  /** Rank + 1 by slot; 0: free. A token is in the first free slot from its hash on. */
  readonly #slots: Int32Array;
  /** The bytes of all tokens in the order of rank. */
  readonly #bytes: Uint8Array;

  /** @throws Error on a processor with the other order of bytes, for which the file would have to be made again */
  constructor() {
    const { buffer, byteOffset: start, length } = readFileSync(new URL("o200k_base.bin", import.meta.url));
    const [count = 0] = new Int32Array(buffer, start, 1);
    const bytes = start + 4 * (1 + count + 1 + SLOTS);
    if (bytes > start + length) throw new Error("o200k_base.bin does not have the order of bytes of this processor.");
    this.#ends = new Int32Array(buffer, start + 4, count + 1);
    this.#slots = new Int32Array(buffer, start + 4 * (count + 2), SLOTS);
    this.#bytes = new Uint8Array(buffer, bytes, start + length - bytes);
  }

  /** The rank of a token; -1 if there is none. @param text one character per byte @param end at most its length */
  rank(text: string, start: number, end: number): number {
    let hash = START;
    for (let at = start; at < end; at += 1) hash = mix(hash, text.charCodeAt(at));
    for (let slot = slotOf(hash); ; slot = (slot + 1) % SLOTS) {
      const rank = (this.#slots[slot] ?? 0) - 1;
      if (rank < 0 || this.#is(rank, text, start, end)) return rank;
    }
  }

  #is(rank: number, text: string, start: number, end: number): boolean {
    const from = this.#ends[rank] ?? 0;
    if ((this.#ends[rank + 1] ?? 0) - from !== end - start) return false;
    for (let at = start; at < end; at += 1) {
      if (this.#bytes[from + at - start] !== text.charCodeAt(at)) return false;
    }
    return true;
  }
}

// FNV-1a.
const START = 0x811c9dc5;
const mix = (hash: number, byte: number) => Math.imul(hash ^ byte, 0x01000193);
const slotOf = (hash: number) => (hash ^ (hash >>> 15)) & (SLOTS - 1);

/** The slot where the search for a token begins. */
export function firstSlot(token: Uint8Array): number {
  return slotOf(token.reduce(mix, START));
}
