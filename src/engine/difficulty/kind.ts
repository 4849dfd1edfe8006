import { count, type Reading } from "./reading.ts";
import type { Topic } from "./topics.ts";

/**
 * The kind of answer that a prompt asks for. `closed`, `maths`, `output` (what a given program returns or prints, as a
 * literal) and `extraction` have one right answer, so answers of several models can be compared. `code` is a program to
 * write, explain or repair; `prose` any other text, also a proof.
 */
export type Kind = "closed" | "code" | "output" | "maths" | "prose" | "extraction" | "conversation";

/** Longest question for a fact and longest remark, in words or characters of a script without spaces. */
const LONGEST = { lookup: 30, remark: 25 };

type Has = (...topics: readonly Topic[]) => boolean;

/** The kind of a prompt by fixed rules, the more certain ones first. */
export function kindOf(reading: Reading): Kind {
  const has: Has = (...topics) => topics.some((topic) => count(reading, topic) > 0);
  if (reading.options > 0 || has("choice")) return "closed";
  if (has("result") && has("source", "program")) return "output";
  if (has("translation")) return "prose";
  if (isWordProblem(reading, has)) return "maths";
  if (isCode(reading, has)) return "code";
  if (has("extraction") && !has("proof")) return "extraction";
  if (has("proof", "compare", "essay", "design", "role") || count(reading, "law") > 1) return "prose";
  if (has("text") && !has("calculus", "ode")) return "prose";
  if (isMaths(reading, has)) return "maths";
  if (isLookup(reading, has)) return "closed";
  if (has("explain", "depth", "make", "law", "medicine", "scale")) return "prose";
  return has("greeting") || isRemark(reading) ? "conversation" : "prose";
}

/** A question or calculation about what a story tells: it counts or sums, or states at least three quantities. */
function isWordProblem(reading: Reading, has: Has): boolean {
  if (!reading.isQuestion && !has("calculate")) return false;
  if (has("source", "explain", "essay", "proof")) return false;
  const stated = reading.numbers + count(reading, "numbers");
  const isCount = has("quantity", "amounts");
  if (stated > 2) return isCount || !has("design", "law");
  // "Twice", "half" and "each day" state numbers, too.
  if (has("quantity") && count(reading, "amounts") > 2) return !has("compare");
  return stated > 1 && isCount && !has("compare");
}

function isCode(reading: Reading, has: Has): boolean {
  const isAbout = has("source") || count(reading, "program") > count(reading, "text") + count(reading, "essay");
  return isAbout && has("source", "make", "debug");
}

function isMaths({ numbers, operators, singles }: Reading, has: Has): boolean {
  if (has("ode", "calculus") && numbers + operators + singles > 0) return true;
  if (numbers > 0 && has("quantity", "calculate", "mechanics", "geometry", "probability", "finance")) return true;
  if (numbers > 1 && operators > 0) return true;
  return has("calculate") && operators + singles > 0;
}

function isLookup(reading: Reading, has: Has): boolean {
  const { words, runs, first } = reading;
  if (words + runs > LONGEST.lookup || has("explain", "greeting", "depth")) return false;
  return first === "lookup" || first === "quantity" || (runs > 0 && has("lookup", "quantity"));
}

function isRemark({ words, runs }: Reading): boolean {
  return words + runs <= LONGEST.remark;
}
