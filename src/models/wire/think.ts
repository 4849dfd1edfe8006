const OPEN = "<think>";
const CLOSE = "</think>";
/** Characters of white space after which the mark may still come. */
const MAX_SPACE = 1_000;

/** Whether a model leaves out the first mark of its thinking. `unknown`: only whole completions are cut. */
export type Unopened = "unknown" | "no" | "perhaps" | "yes";

/** The second mark on a line of its own, as models write it. */
const CLOSE_LINE = /(?:^|\n)[ \t]*<\/think>[ \t]*(?:\n|$)/;

/**
 * Where the text begins behind thinking whose first mark is missing, because it belongs to the prompt, as in the chat
 * templates of DeepSeek R1 and Qwen3 Thinking. @returns 0 if there is no such thinking
 */
export function afterUnopened(text: string): number {
  const end = text.includes(CLOSE) ? CLOSE_LINE.exec(text) : null;
  return end && !text.slice(0, end.index).includes(OPEN) ? end.index + end[0].length : 0;
}

/**
 * Drops `<think>…</think>` at the beginning of a text, where many open models write their thinking. Elsewhere the
 * same words are text. It holds back only what may be the beginning of one of the two marks. If the model usually
 * leaves out the first mark, it holds back the text up to the second one, or to the end.
 */
export class ThinkFilter {
  #state: "head" | "thinking" | "after" | "text" = "head";
  #held = "";
  /** The text so far, while it is thinking only by experience. */
  #kept: string[] | undefined;
  readonly #unopened: Unopened;
  /** Whether the text began with thinking. */
  hasThought = false;
  /** Whether its first mark was missing. */
  isUnopened = false;

  constructor(unopened: Unopened = "unknown") {
    this.#unopened = unopened;
    if (unopened === "unknown" || unopened === "no") return;
    this.#state = "thinking";
    this.#kept = [];
  }

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
      this.#kept?.push(text);
      const at = this.#held.indexOf(CLOSE);
      if (at < 0) {
        this.#held = this.#held.slice(-(CLOSE.length - 1));
        return "";
      }
      this.isUnopened = this.#kept !== undefined && !isOpened(this.#kept);
      this.#kept = undefined;
      this.hasThought = true;
      this.#state = "after";
      this.#held = this.#held.slice(at + CLOSE.length);
    }
    // White space between the thinking and the answer belongs to neither.
    this.#held = this.#held.trimStart();
    return this.#held === "" ? "" : this.#release();
  }

  /** The server sends thinking apart from the text. @returns what was held back by experience */
  trust(): string {
    if (!this.#kept) return "";
    const text = this.#kept.join("");
    this.#kept = undefined;
    this.#state = "head";
    this.#held = "";
    return text === "" ? "" : this.push(text);
  }

  /**
   * Ends the text. @param isCut whether the completion reached its ceiling
   * @returns what was held back as a possible mark, or by experience; nothing if that is only white space
   */
  end(isCut = false): string {
    if (this.#kept?.length) {
      const isThinking = isOpened(this.#kept) || (isCut && this.#unopened === "yes");
      const kept = this.#kept.join("");
      this.#kept = undefined;
      return isThinking || kept.trim() === "" ? "" : kept;
    }
    return this.#state === "head" && this.#held.trim() !== "" ? this.#release() : "";
  }

  #release(): string {
    const text = this.#held;
    this.#held = "";
    this.#state = "text";
    return text;
  }
}

function isOpened(pieces: readonly string[]): boolean {
  return pieces.join("").trimStart().startsWith(OPEN);
}
