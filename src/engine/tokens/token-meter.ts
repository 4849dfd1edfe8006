import type { Encoding } from "./bpe.ts";

/** Characters that are collected before they are encoded, while the cap is far. */
const BATCH = 4096;

/**
 * Counts a streamed answer and cuts it at a cap: it delivers the text of the first `cap` tokens of the whole answer,
 * without a character that the last token leaves incomplete, however the answer is split. Near the cap it holds back
 * the last one or two words, because the text after them can change how they are encoded; `flush` delivers them. It
 * encodes each piece of text once.
 */
export class TokenMeter {
  readonly #encoding: Encoding;
  readonly #cap: number;
  /** Tokens of the text before the tail, whose encoding cannot change. */
  #settled = 0;
  /** The last two pieces of the settled text. They are encoded differently if the answer ends within the next piece. */
  #recent: readonly string[] = [];
  #tail = "";
  /** Characters of the tail that were delivered. */
  #delivered = 0;
  /** The first half of a surrogate pair whose second half has not arrived. */
  #highSurrogate = "";
  #full = false;

  /** @param cap most tokens to deliver; at least 0 */
  constructor(encoding: Encoding, cap: number) {
    this.#encoding = encoding;
    this.#cap = cap;
  }

  /** Whether the cap cut the text. Nothing is delivered after that. */
  get full(): boolean {
    return this.#full;
  }

  /** Tokens of the delivered text, equal to `count` of that text. Never more than the cap. */
  get tokens(): number {
    return this.#tokensWith(this.#tail.slice(0, this.#delivered));
  }

  /**
   * Takes the next piece of the answer.
   * @returns the text to deliver now, which never ends between two surrogates. A lone one becomes U+FFFD, because what
   *   reads the answer may refuse it.
   */
  push(text: string): string {
    if (this.#full) return "";
    const added = this.#highSurrogate + text;
    const isSplit = isHighSurrogate(added.charCodeAt(added.length - 1));
    this.#highSurrogate = isSplit ? added.slice(-1) : "";
    this.#tail += (isSplit ? added.slice(0, -1) : added).toWellFormed();
    const settled = this.#isFar() && this.#tail.length < BATCH ? "" : this.#settle(2);
    return this.#isFar() ? settled + this.#deliver(this.#tail.length) : settled;
  }

  /** Returns the text that was held back. Call it once, at the end of the answer. */
  flush(): string {
    if (this.#full) return "";
    this.#tail += this.#highSurrogate.toWellFormed();
    this.#highSurrogate = "";
    return this.#isFar() ? this.#settleFar() : this.#settle(0);
  }

  /** Settles the whole tail at once, where the cap cannot cut it. */
  #settleFar(): string {
    const delivered = this.#deliver(this.#tail.length);
    this.#settled = this.#tokensWith(this.#tail);
    this.#recent = [];
    this.#tail = "";
    this.#delivered = 0;
    return delivered;
  }

  /** Whether the tail cannot exceed the cap: a UTF-16 unit has at most three bytes, a token at least one. */
  #isFar(): boolean {
    return !this.#full && this.#settled + 3 * this.#tail.length <= this.#cap;
  }

  /** Encodes the tail except its last `open` pieces, which later text can change, and delivers it up to the cap. */
  #settle(open: number): string {
    let end = 0;
    let [before = "", last = ""] = this.#recent;
    const pieces = Array.from(this.#encoding.pieces(this.#tail));
    for (let i = 0; i < pieces.length - open; i++) {
      const next = pieces[i] ?? "";
      const tokens = this.#encoding.tokens(next);
      if (this.#settled + tokens > this.#cap) {
        this.#full = true;
        this.#recent = [before, last];
        const part = this.#fitting(next);
        const delivered = this.#deliver(end + part.length);
        this.#tail = part;
        this.#delivered = part.length;
        return delivered;
      }
      this.#settled += tokens;
      before = last;
      last = next;
      end += next.length;
    }
    this.#recent = [before, last];
    const delivered = this.#deliver(Math.max(end, this.#delivered));
    this.#tail = this.#tail.slice(end);
    this.#delivered -= end;
    return delivered;
  }

  /** The part of the next piece that fits under the cap. */
  #fitting(piece: string): string {
    const bytes = Buffer.from(piece);
    let end = 0;
    for (const length of this.#encoding.lengths(piece).slice(0, this.#cap - this.#settled)) end += length;
    // A byte 10xxxxxx continues a character.
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    let part = piece.slice(0, bytes.toString("utf8", 0, end).length);
    // A shortened piece can become two: "XYZ'" of "XYZ're" is two pieces, which can have one token more.
    while (this.#tokensWith(part) > this.#cap) part = dropLast(part);
    return part;
  }

  #deliver(end: number): string {
    const text = this.#tail.slice(this.#delivered, end);
    this.#delivered = end;
    return text;
  }

  /** Tokens of the settled text followed by `text`. */
  #tokensWith(text: string): number {
    let before = this.#settled;
    for (const piece of this.#recent) before -= this.#encoding.tokens(piece);
    return before + this.#encoding.count(this.#recent.join("") + text);
  }
}

function isHighSurrogate(code: number): boolean {
  return (code & 0xfc00) === 0xd800;
}

function dropLast(text: string): string {
  const last = text.codePointAt(text.length - 2) ?? 0;
  return text.slice(0, last > 0xffff ? -2 : -1);
}
