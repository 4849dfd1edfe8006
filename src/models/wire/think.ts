const OPEN = "<think>";
const CLOSE = "</think>";
/** Characters of white space after which the mark may still come. */
const MAX_SPACE = 1_000;

/** The second mark at the beginning of a line, as models write it. */
const CLOSE_LINE = /(?:^|\n)[ \t]*<\/think>/;
/** Characters that are searched again with the next text, because the mark may have begun in them. */
const TAIL = 32;

/**
 * Whether a model writes its thinking into the text without the first mark, which belongs to its prompt, as in the chat
 * templates of DeepSeek R1 and Qwen3 Thinking.
 */
export type Unopened = "no" | "perhaps" | "yes";

/**
 * Drops `<think>…</think>` at the beginning of a text, where many open models write their thinking. Elsewhere the
 * same words are text. It holds back only what may be the beginning of one of the two marks. If the first mark may be
 * missing, it holds back the text up to the second one, or to the end.
 */
export class ThinkFilter {
  #state: "head" | "unsure" | "thinking" | "after" | "text" = "head";
  #held = "";
  /** The whole text, while it may be thinking without its first mark. */
  #kept: string[] = [];
  #unopened: Unopened;
  /** Whether the text began with thinking. */
  hasThought = false;
  /** Whether its first mark was missing. */
  isUnopened = false;

  constructor(unopened: Unopened = "no") {
    this.#unopened = unopened;
  }

  /** Whether all further text belongs to the answer. */
  get isOver(): boolean {
    return this.#state === "text";
  }

  /** Takes the next text. @returns the part that belongs to the answer */
  push(text: string): string {
    if (this.#state === "text") return text;
    this.#held += text;
    if (this.#state === "unsure") this.#kept.push(text);
    if (this.#state === "head") {
      const start = this.#held.trimStart();
      if (start.length < OPEN.length && OPEN.startsWith(start) && this.#held.length < MAX_SPACE) return "";
      const isOpened = start.startsWith(OPEN);
      if (!isOpened && this.#unopened === "no") return this.#release();
      this.#state = isOpened ? "thinking" : "unsure";
      this.hasThought = isOpened;
      if (isOpened) this.#held = start.slice(OPEN.length);
      else this.#kept.push(this.#held);
    }
    if (this.#state === "unsure" && !this.#findEnd()) return "";
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

  /** Looks for the second mark where the first one may be missing. */
  #findEnd(): boolean {
    const end = CLOSE_LINE.exec(this.#held);
    if (!end) {
      // The character before the tail shows that no line begins there.
      if (this.#held.length > TAIL) this.#held = `.${this.#held.slice(-TAIL)}`;
      return false;
    }
    this.#kept = [];
    this.#state = "after";
    this.#held = this.#held.slice(end.index + end[0].length);
    this.hasThought = this.isUnopened = true;
    return true;
  }

  /** The server sends thinking apart from the text. @returns what was held back because it might be thinking */
  trust(): string {
    this.#unopened = "no";
    if (this.#state !== "unsure") return "";
    this.#held = this.#kept.join("");
    this.#kept = [];
    return this.#release();
  }

  /**
   * Ends the text. @param isCut whether the completion reached its ceiling
   * @returns what was held back, if it is text; nothing if that is only white space
   */
  end(isCut = false): string {
    const isThinking = isCut && this.#unopened === "yes";
    const text = this.#state === "head" ? this.#release() : this.trust();
    return isThinking || text.trim() === "" ? "" : text;
  }

  #release(): string {
    const text = this.#held;
    this.#held = "";
    this.#state = "text";
    return text;
  }
}
