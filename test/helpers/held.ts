import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Length of a text, in UTF-16 units of one byte. V8 keeps a longer one outside of its heap. */
const LENGTH = 1_000_000;
const TEXTS = 30;

/**
 * Gives the function parts of long texts, one after the other, as a service cuts them out of the bodies of requests.
 * @param partOf makes a part, which is different for each number
 * @returns the number of texts that are still in memory
 */
export function textsHeld(partOf: (i: number) => string, use: (part: string) => void): number {
  const cut = (i: number) => {
    const part = partOf(i);
    // A text of one piece, as a decoder makes it.
    const text = Buffer.from(part + " ".repeat(LENGTH)).toString();
    use(text.slice(0, part.length));
  };
  cut(TEXTS);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < TEXTS; i++) cut(i);
  collect();
  return Math.round((process.memoryUsage().heapUsed - before) / LENGTH);
}
