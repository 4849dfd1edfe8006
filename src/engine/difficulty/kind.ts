import type { Ability } from "../../contract/terms.ts";
import { formOf } from "./form.ts";
import { count, type Reading } from "./reading.ts";
import type { Topic } from "./topics.ts";

/**
 * The kind of answer that a prompt asks for. `closed`, `maths`, `output` (what a given program returns or prints, as a
 * literal) and `extraction` have one right answer, so answers of several models can be compared. `code` is a program to
 * write, explain or repair; `prose` any other text, also a proof.
 */
export type Kind = "closed" | "code" | "output" | "maths" | "prose" | "extraction" | "conversation";

const ABILITY: Readonly<Partial<Record<Kind, Ability>>> = {
  closed: "knowledge",
  maths: "maths",
  code: "code",
  output: "code",
  extraction: "extraction",
};

/** The ability of a model that a kind of prompt needs; for any other kind it is prose. */
export function abilityOf(kind: Kind): Ability {
  return ABILITY[kind] ?? "prose";
}

/** Most words, or characters of a script without spaces, of a question for a fact, of a case with one and so on. */
const LONGEST = { lookup: 30, fact: 120, remark: 25, calculation: 12, term: 4 };

type Has = (...topics: readonly Topic[]) => boolean;

/**
 * The kind of a prompt by fixed rules, the more certain ones first.
 * @param instructions texts that count only for the form that they demand of the answer
 */
export function kindOf(reading: Reading, instructions: readonly string[] = []): Kind {
  const kind = kindOfTask(reading);
  const isLoose = kind === "prose" || kind === "conversation";
  const form = formOf(isLoose && reading.around !== "" ? [...instructions, reading.around] : instructions);
  if (form === "translation") return "prose";
  if (form === undefined || !isLoose) return kind;
  return form === "choice" ? "closed" : "extraction";
}

function kindOfTask(reading: Reading): Kind {
  const has: Has = (...topics) => topics.some((topic) => count(reading, topic) > 0);
  if (reading.options > 0) return "closed";
  if (isOutput(reading, has)) return "output";
  if (has("choice")) return "closed";
  const isOfCode = isCode(reading, has);
  if (has("translation")) return isOfCode && reading.code > 0 ? "code" : "prose";
  if (isWordProblem(reading, has)) return "maths";
  if (isOfCode) return "code";
  if (has("extraction") && !has("proof")) return "extraction";
  if (has("proof", "compare", "essay", "design", "role")) return "prose";
  if (count(reading, "law") > 1) return "prose";
  if (has("text") && !has("calculus", "ode")) return "prose";
  if (isMaths(reading, has)) return "maths";
  if (isLookup(reading, has)) return "closed";
  if (has("explain", "depth", "make", "law", "medicine", "scale")) return "prose";
  return has("greeting") || reading.words + reading.runs <= LONGEST.remark ? "conversation" : "prose";
}

/** A question about the result of code: words or a call ask for it, or it is left out of a comparison. */
function isOutput({ code, calls, holes, isQuestion, first }: Reading, has: Has): boolean {
  const hasCode = code > 0 || has("source");
  if (holes > 0 && (hasCode || calls > 0)) return true;
  if (!hasCode || has("debug", "translation") || first === "explain") return false;
  return has("result") ? !has("make") : calls > 0 && isQuestion && !has("make", "explain");
}

/** A question or calculation about what a story tells: it counts or sums, or states at least three quantities. */
function isWordProblem(reading: Reading, has: Has): boolean {
  if (!reading.isQuestion && !has("calculate")) return false;
  if (reading.code > 0 || has("source", "essay", "proof")) return false;
  const stated = reading.numbers + count(reading, "numbers");
  const isCount = has("quantity", "amounts");
  if (has("explain") && (stated < 3 || !has("quantity"))) return false;
  if (stated > 2) return isCount || !has("design", "law", "medicine");
  // "Twice", "half" and "each day" state numbers, too.
  if (has("quantity") && count(reading, "amounts") > 2) return !has("compare");
  return stated > 1 && isCount && !has("compare");
}

function isCode(reading: Reading, has: Has): boolean {
  const { code } = reading;
  const isAbout =
    code > 0 || has("source") || count(reading, "program") > count(reading, "text") + count(reading, "essay");
  return isAbout && (code > 0 || has("source", "make", "debug"));
}

function isMaths(reading: Reading, has: Has): boolean {
  const { numbers, operators, singles, calls, words, runs, isQuestion, asks } = reading;
  if (has("ode", "calculus") && numbers + operators + singles > 0) return true;
  if (numbers > 0 && has("quantity", "calculate", "mechanics", "geometry", "probability", "finance")) return true;
  if (numbers > 1 && operators > 0) return true;
  if (has("calculate") && operators + singles > 0) return true;
  if (numbers === 0 || words + runs > LONGEST.calculation || has("explain", "make", "greeting")) return false;
  return (isQuestion && asks !== "lookup") || calls > 0 || words + runs <= LONGEST.term;
}

/** A question for a fact: what asks, or a short question without a sign that many answers are right. */
function isLookup(reading: Reading, has: Has): boolean {
  const { words, runs, first, asks, isQuestion } = reading;
  const size = words + runs;
  if (size > LONGEST.fact || first === "make" || has("depth", "greeting")) return false;
  const opens = (topic: Topic | undefined) => topic === "lookup" || topic === "quantity";
  if (isQuestion && opens(asks) && !has("explain", "advice")) return true;
  if (size > LONGEST.lookup || has("explain", "advice", "make")) return false;
  // "What is recursion?" asks for an explanation, "What is 2 hours in seconds?" does not.
  if (first === "definition" && size <= LONGEST.term) return false;
  return isQuestion || opens(first) || (runs > 0 && has("lookup", "quantity"));
}
