/**
 * Copies a text. V8 keeps a part of 13 or more characters that was cut out of a text as a reference to the whole text,
 * so what lives longer than a request must be a copy: a word of a prompt would hold its body of 64 MB.
 */
export function copyOf(text: string): string {
  return JSON.parse(JSON.stringify(text));
}

/** Keeps what is made of texts, such as compiled schemas. The least recently used leave. */
export class TextCache<T> {
  readonly #most: { readonly entries: number; readonly length: number };
  readonly #kept = new Map<string, { readonly own: string; readonly value: T }>();
  #length = 0;

  /** @param most entries, and length of their texts together, in UTF-16 units */
  constructor(most: { readonly entries: number; readonly length: number }) {
    this.#most = most;
  }

  /**
   * Returns what was made of a text.
   * @param make makes it of a copy of the text, which it may keep. Nothing is kept when it throws.
   */
  get(text: string, make: (own: string) => T): T {
    const known = this.#kept.get(text);
    if (known) {
      this.#kept.delete(text);
      this.#kept.set(known.own, known);
      return known.value;
    }
    const own = copyOf(text);
    const value = make(own);
    // It would push out all others, and then itself.
    if (own.length > this.#most.length) return value;
    this.#kept.set(own, { own, value });
    this.#length += own.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#most.entries && this.#length <= this.#most.length) break;
      this.#kept.delete(oldest);
      this.#length -= oldest.length;
    }
    return value;
  }
}
