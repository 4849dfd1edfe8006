/** Part of a text, from `start` to before `end`, in UTF-16 units. */
export interface Passage {
  start: number;
  end: number;
}

/** Preferred ends of a passage, best first. */
const BORDERS = ["\n\n", "\n", ". ", "。", " "];

/**
 * Splits a text into adjacent passages of at most `length` UTF-16 units (at least 2), and except the last at least
 * half of that. A passage ends at the last possible end of a paragraph, else of a line, a sentence or a word.
 */
export function passages(text: string, length: number): Passage[] {
  const found: Passage[] = [];
  for (let start = 0; start < text.length; ) {
    const end = text.length - start <= length ? text.length : start + passageLength(text.slice(start, start + length));
    found.push({ start, end });
    start = end;
  }
  return found;
}

/** Length of the passage at the start of a window. */
function passageLength(window: string): number {
  const half = window.length >> 1;
  for (const border of BORDERS) {
    const at = window.lastIndexOf(border) + border.length;
    if (at > half) return at;
  }
  const splitsPair = (window.charCodeAt(window.length - 1) & 0xfc00) === 0xd800;
  return splitsPair ? window.length - 1 : window.length;
}
