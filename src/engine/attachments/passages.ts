/** A part of a text: the UTF-16 units from `start` to `end`. */
export interface Passage {
  start: number;
  end: number;
}

/** Where a passage likes to end, best first. */
const BORDERS = ["\n\n", "\n", ". ", "。", " "];

/**
 * Cuts a text into passages that follow each other without a gap, each of at most `length` UTF-16 units (at least 2), and half of that
 * or more except the last. A passage ends at the last paragraph's end within reach, else at a line's, a sentence's or a word's.
 */
export function passages(text: string, length: number): Passage[] {
  const found: Passage[] = [];
  for (let start = 0; start < text.length; ) {
    const end = text.length - start <= length ? text.length : start + reach(text.slice(start, start + length));
    found.push({ start, end });
    start = end;
  }
  return found;
}

/** How much of a window the passage takes. */
function reach(window: string): number {
  const half = window.length >> 1;
  for (const border of BORDERS) {
    const at = window.lastIndexOf(border) + border.length;
    if (at > half) return at;
  }
  const cutsPair = (window.charCodeAt(window.length - 1) & 0xfc00) === 0xd800;
  return cutsPair ? window.length - 1 : window.length;
}
