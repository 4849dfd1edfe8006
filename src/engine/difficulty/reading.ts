import { classOf, DIGIT, fold, LETTER, OPERATOR, RUN, SIGN, SPACE } from "./marks/fold.ts";
import { sample } from "./sample.ts";
import { unwrap } from "./templates.ts";
import { LEXICON, TOPIC_NUMBERS, TOPICS, type Topic } from "./topics.ts";

/** What one pass over a prompt finds. Letter case, accents and usual templates change nothing. */
export interface Reading {
  /** Characters before the options; of a script without spaces each counts three. */
  length: number;
  words: number;
  /** Words that also occur earlier. */
  repeats: number;
  /** Words of up to three letters. */
  shortWords: number;
  /** Single letters, such as variables. */
  singles: number;
  numbers: number;
  operators: number;
  commas: number;
  /** Characters of scripts without spaces. */
  runs: number;
  lines: number;
  /** Lines that are options of a closed question: "A. Rome", "B. Paris" and so on. */
  options: number;
  /** Lines of program code. */
  code: number;
  /** Calls such as "sqrt(" outside the code. */
  calls: number;
  /** Places to fill in: "== ?", "= ____". */
  holes: number;
  isQuestion: boolean;
  /** The topic of a mark at the start of the prompt, and at the start of the last question. */
  first: Topic | undefined;
  asks: Topic | undefined;
  /** What was around the task; see `Unwrapped`. */
  around: string;
  /** Number of marks by number of topic, each at most 255. */
  marks: Uint8Array;
}

/** Number of marks of a topic in a prompt. */
export function count({ marks }: Reading, topic: Topic): number {
  return marks[TOPIC_NUMBERS[topic]] ?? 0;
}

const [COMMA, POINT, QUESTION, BRACKET, SPACE_UNIT, A] = [44, 46, 63, 40, 32, 97];
const [SEMICOLON, EQUALS, COLON, EXCLAMATION, LOW_LINE, POWER] = [59, 61, 58, 33, 95, 94];
/** Longest word that is short. */
const SHORT = 3;
/** A character of a script without spaces says as much as this many Latin ones. */
const RUN_LENGTH = 3;

/** The number of the last reading in which a word with a hash occurred. Two words rarely share a hash. */
const seen = new Int32Array(1 << 13);
let readings = 0;
/** The folded text that is being read. It is longer than a sample only if upper case lengthens the text, as of ß. */
let units = new Uint16Array(1 << 14);

/** Reads a prompt; of one with more than 12,000 characters, a sample. */
export function read(prompt: string): Reading {
  const sampled = sample(prompt);
  const { task, around } = unwrap(sampled);
  const text = task.toUpperCase();
  const { length } = text;
  if (units.length < length) units = new Uint16Array(length);
  for (let at = 0; at < length; at++) units[at] = fold(text.charCodeAt(at));
  const lines = linesOf(text);
  const reading = scan(length, lines);
  readOptions(lines, reading);
  reading.around = around;
  reading.length += (RUN_LENGTH - 1) * Math.min(reading.runs, reading.length) + prompt.length - sampled.length;
  return reading;
}

/** Counts what the folded text of a length has, without its options. */
function scan(length: number, lines: readonly Line[]): Reading {
  const marks = new Uint8Array(TOPICS.length);
  let [first, asks, opening]: Array<Topic | undefined> = [];
  let [words, repeats, shortWords, singles, numbers, operators, commas, runs] = [0, 0, 0, 0, 0, 0, 0, 0];
  let [code, calls, holes, equations, powers] = [0, 0, 0, 0, 0];
  let [previous, hash, start, solid, line] = [SPACE, 0, 0, 0, 0];
  let [isStart, isQuestion, isCode] = [true, false, false];
  readings++;
  // One step past the end ends the last word.
  for (let at = 0; at <= length; at++) {
    const unit = at < length ? (units[at] ?? 0) : SPACE_UNIT;
    const kind = classOf(unit);
    if (at === lines[line]?.start) {
      isCode = lines[line]?.isCode ?? false;
      if (isCode) code++;
      [isStart, opening] = [true, undefined];
      line++;
    }
    const isWordStart = kind === LETTER && previous !== LETTER;
    if ((isWordStart && previous !== DIGIT) || kind === RUN || kind === SIGN) {
      const topic = LEXICON.at(units, at, length);
      if (topic >= 0 && !(isCode ? !IN_CODE.has(topic) : topic === QUANTIFIER && !isStart)) {
        marks[topic] = Math.min(255, (marks[topic] ?? 0) + 1);
        if (words + runs + numbers === 0) first = TOPICS[topic];
        if (isStart) opening = TOPICS[topic];
      }
    }
    if (kind === LETTER) {
      if (isWordStart) [hash, start, isStart] = [0, at, false];
      hash = (Math.imul(hash, 31) + unit) | 0;
      if (unit === LOW_LINE && solid === EQUALS) holes++;
    } else if (previous === LETTER) {
      words++;
      if (at - start === 1) {
        singles++;
        // A coefficient or a power makes a letter a variable.
        if (unit === POWER || classOf(units[start - 1] ?? 0) === DIGIT) powers++;
      }
      if (at - start <= SHORT) shortWords++;
      const bucket = Math.imul(hash, 0x9e3779b1) >>> 19;
      if (seen[bucket] === readings) repeats++;
      seen[bucket] = readings;
    }
    if (kind === RUN) {
      runs++;
      isStart = false;
    } else if (kind === DIGIT) {
      if (previous !== DIGIT && previous !== LETTER && !isFraction(at)) numbers++;
      isStart = false;
    } else if (kind === OPERATOR || kind === SIGN) operators++;
    else if (unit === COMMA) commas++;
    if (unit === QUESTION && solid === EQUALS) holes++;
    else if (kind === 0 && !isCode) {
      const isAsking = unit === QUESTION || (unit === SEMICOLON && isGreek(units[at - 1] ?? 0));
      if (isAsking) [isQuestion, asks] = [true, opening];
      else if (unit === BRACKET && (previous === LETTER || previous === DIGIT)) calls++;
      if (isAsking || unit === POINT || unit === EXCLAMATION || unit === COLON) [isStart, opening] = [true, undefined];
    }
    if (unit === EQUALS && solid !== EQUALS && !isCode) equations++;
    if (kind !== SPACE && unit !== LOW_LINE) solid = unit;
    previous = kind;
  }
  if (equations > 0 && powers > 0 && !marks[TOPIC_NUMBERS.calculus] && !marks[TOPIC_NUMBERS.ode])
    marks[TOPIC_NUMBERS.algebra] ||= 1;
  return {
    length,
    words,
    repeats,
    shortWords,
    singles,
    numbers,
    operators,
    commas,
    runs,
    lines: lines.length,
    options: 0,
    code,
    calls,
    holes,
    isQuestion,
    first,
    asks,
    around: "",
    marks,
  };
}

/** Topics whose marks count in code, and those that the reading itself needs. */
const IN_CODE: ReadonlySet<number> = new Set([TOPIC_NUMBERS.source, TOPIC_NUMBERS.program]);
const QUANTIFIER = TOPIC_NUMBERS.quantifiers;

/** Whether a line that ends at a place ends like code: "{", "}", or ";" after what is not a letter of Greek. */
function isCodeEnd(at: number): boolean {
  const unit = units[at];
  return unit === 123 || unit === 125 || (unit === SEMICOLON && !isGreek(units[at - 1] ?? 0));
}

/** Whether a unit is a letter of Greek, in which a semicolon asks. */
function isGreek(unit: number): boolean {
  return unit >= 0x370 && unit < 0x400;
}

/** Whether the digits at a place follow a decimal point or comma. */
function isFraction(at: number): boolean {
  const point = units[at - 1];
  return (point === POINT || point === COMMA) && classOf(units[at - 2] ?? 0) === DIGIT;
}

interface Line {
  start: number;
  isCode: boolean;
  /** Whether it ends with a colon, so that an indented block may follow. */
  opens: boolean;
}

/** The lines of a text. A line of code ends with a bracket or a semicolon, or is a part of an indented block. */
function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    let last = (end < 0 ? text.length : end) - 1;
    while (last > start && classOf(units[last] ?? 0) === SPACE) last--;
    const before = lines.at(-1);
    const isIndented = classOf(units[start] ?? 0) === SPACE && classOf(units[start + 1] ?? 0) === SPACE && last > start;
    const isBlock = isIndented && before !== undefined && (before.isCode || before.opens);
    if (isBlock) before.isCode = true;
    const isBlank = last <= start && before?.isCode === true;
    const isCode = isBlank || isBlock || isCodeEnd(last) || TOPICS[LEXICON.at(units, start, text.length)] === "source";
    lines.push({ start, isCode, opens: units[last] === COLON });
  }
  return lines;
}

/** Counts options, and shortens the length to what comes before them. Options need at least A and B. */
function readOptions(lines: readonly Line[], reading: Reading): void {
  const { length } = reading;
  let [options, stem] = [0, length];
  for (const { start } of lines) {
    if (!isOption(start, length, A + options)) continue;
    if (options === 0) stem = start;
    options++;
  }
  if (options < 2) return;
  reading.options = options;
  reading.length = stem;
}

/** Whether a line starts with a letter as an option: "B. ", "(b) " or "b: ". */
function isOption(start: number, length: number, letter: number): boolean {
  let at = start;
  while (at < length && units[at] === SPACE_UNIT && at - start < 8) at++;
  if (units[at] === BRACKET) at++;
  if (at + 2 >= length || units[at] !== letter || units[at + 2] !== SPACE_UNIT) return false;
  const sign = units[at + 1];
  return sign === POINT || sign === 41 || sign === 58;
}
