const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\t\r\n]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const SCALAR =
  /"(?:[^"\\\t\r\n]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** The service has the same limit. */
const MAX_DEPTH = 512;

/**
 * Finds the first error in a JSON text. The error messages of browsers differ and cannot be used for this.
 * @returns offset of the error; undefined if the text is valid JSON
 */
export function jsonErrorAt(text: string): number | undefined {
  let at = 0;
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    at += match?.[0].length ?? 0;
    return match !== null;
  };
  const mark = (character: string): boolean => {
    take(SPACE);
    if (text[at] !== character) return false;
    at += 1;
    take(SPACE);
    return true;
  };
  const list = (end: string, item: () => boolean): boolean => {
    if (mark(end)) return true;
    do {
      if (!item()) return false;
    } while (mark(","));
    return mark(end);
  };
  let depth = 0;
  const value = (): boolean => {
    take(SPACE);
    depth += 1;
    const isValue =
      depth <= MAX_DEPTH &&
      (mark("{") ? list("}", () => take(STRING) && mark(":") && value()) : mark("[") ? list("]", value) : take(SCALAR));
    depth -= 1;
    return isValue;
  };
  const isValue = value();
  take(SPACE);
  return isValue && at === text.length ? undefined : at;
}
