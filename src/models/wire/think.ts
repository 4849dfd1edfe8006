const OPEN = "<think>";
const CLOSE = "</think>";
/** Characters of white space after which the mark may still come. */
const MAX_SPACE = 1_000;

/**
 * Drops `<think>…</think>` at the beginning of a text, where many open models write their thinking. Elsewhere the
 * same words are text. It holds back only what may be the beginning of one of the two marks.
 */
export class ThinkFilter {
  #state: "head" | "thinking" | "after" | "text" = "head";
  #held = "";
  /** Whether the text began with thinking. */
  hasThought = false;

  /** Whether all further text belongs to the answer. */
  get isOver(): boolean {
    return this.#state === "text";
  }

  /** Takes the next text. @returns the part that belongs to the answer */
  push(text: string): string {
    if (this.#state === "text") return text;
    this.#held += text;
    if (this.#state === "head") {
      const start = this.#held.trimStart();
      if (start.length < OPEN.length && OPEN.startsWith(start) && this.#held.length < MAX_SPACE) return "";
      if (!start.startsWith(OPEN)) return this.#release();
      this.#state = "thinking";
      this.hasThought = true;
      this.#held = start.slice(OPEN.length);
    }
    if (this.#state === "thinking") {
      const at = this.#held.indexOf(CLOSE);
      if (at < 0) {
        this.#held = this.#held.slice(-(CLOSE.length - 1));
        return "";
      }
      this.#state = "after";
      this.#held = this.#held.slice(at + CLOSE.length);
    }
    // White space between the thinking and the answer belongs to neither.
    this.#held = this.#held.trimStart();
    return this.#held === "" ? "" : this.#release();
  }

  /** Ends the text. @returns what was held back as a possible mark; nothing if that is only white space */
  end(): string {
    return this.#state === "head" && this.#held.trim() !== "" ? this.#release() : "";
  }

  #release(): string {
    const text = this.#held;
    this.#held = "";
    this.#state = "text";
    return text;
  }
}
