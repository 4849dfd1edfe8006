import type { Encoding } from "./bpe.ts";

/** Characters that are let through before they are encoded, while the cap is far. */
const BATCH = 4096;

/**
 * Counts an answer while it is streamed, and ends it at a cap: what comes out is the text of the first `cap` tokens of the
 * whole answer, less a character that the last of them leaves incomplete, however the answer was split. Near the cap the
 * last one or two words are held back, because what follows can change how they are encoded; `flush` gives them out.
 * Every piece of text is encoded once: 32,000 tokens in 20,000 pushes cost 30 ms in all.
 */
export class TokenMeter {
  readonly #encoding: Encoding;
  readonly #cap: number;
  /** Tokens of the text whose encoding is settled, that is all before the tail. */
  #settled = 0;
  /** The last two pieces of the settled text, which encode differently where the answer ends within the next one. */
  #recent: string[] = [];
  #tail = "";
  /** Characters of the tail that were given out. */
  #given = 0;
  /** The first half of a surrogate pair whose second half has not come. */
  #half = "";
  #full = false;

  /** @param cap Most tokens that may come out; at least 0. */
  constructor(encoding: Encoding, cap: number) {
    this.#encoding = encoding;
    this.#cap = cap;
  }

  /** Whether something was cut off because of the cap. From then on nothing more comes out. */
  get full(): boolean {
    return this.#full;
  }

  /** Tokens of the text that came out: what `count` says of it as a whole. Never more than the cap. */
  get tokens(): number {
    return this.#tokensWith(this.#tail.slice(0, this.#given));
  }

  /** Takes the next piece of the answer and returns what may be given out now. Never ends between two surrogates. */
  push(text: string): string {
    if (this.#full) return "";
    const whole = this.#half + text;
    const isCut = isHighSurrogate(whole.charCodeAt(whole.length - 1));
    this.#half = isCut ? whole.slice(-1) : "";
    this.#tail += isCut ? whole.slice(0, -1) : whole;
    const settled = this.#isFar() && this.#tail.length < BATCH ? "" : this.#settle(2);
    return this.#isFar() ? settled + this.#give(this.#tail.length) : settled;
  }

  /** Returns what was held back. Call it once, when the answer has ended. */
  flush(): string {
    if (this.#full) return "";
    this.#tail += this.#half;
    this.#half = "";
    return this.#isFar() ? this.#settleFar() : this.#settle(0);
  }

  /** Settles the whole tail, of which the cap cuts nothing off, in one go. */
  #settleFar(): string {
    const given = this.#give(this.#tail.length);
    this.#settled = this.#tokensWith(this.#tail);
    this.#recent = [];
    this.#tail = "";
    this.#given = 0;
    return given;
  }

  /** Whether the tail cannot go over the cap: a UTF-16 unit has at most three bytes, a token at least one. */
  #isFar(): boolean {
    return !this.#full && this.#settled + 3 * this.#tail.length <= this.#cap;
  }

  /** Encodes the tail but for its last `unsure` pieces, which later text can still change, and gives it out up to the cap. */
  #settle(unsure: number): string {
    const waiting: string[] = [];
    let end = 0;
    for (const piece of this.#encoding.pieces(this.#tail)) {
      waiting.push(piece);
      if (waiting.length <= unsure) continue;
      const next = waiting.shift() ?? "";
      const tokens = this.#encoding.tokens(next);
      if (this.#settled + tokens > this.#cap) {
        this.#full = true;
        const part = this.#fitting(next);
        const given = this.#give(end + part.length);
        this.#tail = part;
        this.#given = part.length;
        return given;
      }
      this.#settled += tokens;
      this.#recent = [...this.#recent.slice(-1), next];
      end += next.length;
    }
    const given = this.#give(Math.max(end, this.#given));
    this.#tail = this.#tail.slice(end);
    this.#given -= end;
    return given;
  }

  /** The part of the next piece that still fits under the cap. */
  #fitting(piece: string): string {
    const bytes = Buffer.from(piece);
    let end = 0;
    for (const length of this.#encoding.lengths(piece).slice(0, this.#cap - this.#settled)) end += length;
    // A byte 10xxxxxx continues a character.
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    let part = piece.slice(0, bytes.toString("utf8", 0, end).length);
    // A piece cut short may fall apart: of "XYZ're" the part "XYZ'" is two pieces, which can have one token more.
    while (this.#tokensWith(part) > this.#cap) part = dropLast(part);
    return part;
  }

  #give(end: number): string {
    const text = this.#tail.slice(this.#given, end);
    this.#given = end;
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
