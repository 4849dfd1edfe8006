import { count, type Reading, read } from "./reading.ts";
import type { Topic } from "./topics.ts";

/** Most earlier texts that are read to find the task of a follow-up. */
export const EARLIER = 4;
/** Longest follow-up, longest one without a word that refers to what was said, and longest thanks. */
const LONGEST = { follow: 20, bare: 12, thanks: 3 };
/** Marks of a text that has a task of its own. */
const OWN: readonly Topic[] = [
  ...([
    "make",
    "text",
    "translation",
    "extraction",
    "compare",
    "design",
    "essay",
    "proof",
    "explain",
    "debug",
  ] as const),
  ...(["lookup", "quantity", "calculate", "choice", "program", "source"] as const),
];

/**
 * Reads a text; one that goes on with an earlier task, together with that task and the follow-ups between.
 * @param earlier the user's earlier texts, the latest first
 */
export function readInContext(text: string, earlier: readonly string[]): Reading {
  const own = read(text);
  if (earlier.length === 0 || !isFollowUp(own)) return own;
  const said = [text];
  for (const before of earlier.slice(0, EARLIER)) {
    said.unshift(before);
    if (!isFollowUp(read(before))) break;
  }
  return read(said.join("\n\n"));
}

function isFollowUp(reading: Reading): boolean {
  const { words, runs, numbers, first, options, code } = reading;
  const size = words + runs / 2 + numbers;
  const has = (topic: Topic) => count(reading, topic) > 0;
  if (size > LONGEST.follow || options > 0 || code > 0) return false;
  if (has("greeting") && (first !== "resumes" || size <= LONGEST.thanks)) return false;
  if (first === "resumes" || has("refers")) return true;
  return size <= LONGEST.bare && (words + runs <= 1 || !OWN.some(has));
}
