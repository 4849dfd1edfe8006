import { classOf, DIGIT, fold, LETTER, OPERATOR, RUN, SIGN, SPACE } from "./marks/fold.ts";
import { unwrap } from "./templates.ts";
import { LEXICON, TOPIC_NUMBERS, TOPICS, type Topic } from "./topics.ts";

/** What one pass over a prompt finds. Letter case, accents and usual templates change nothing. */
export interface Reading {
  /** Units of the task. */
  end: number;
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
  /** Lines that are options of a closed question: "A. Rome", "B. Paris" and so on. */
  options: number;
  /** Lines of program code. */
  code: number;
  /** Calls such as "sqrt(" outside the code. */
  calls: number;
  /** Places to fill in: "== ?", "= ____". */
  holes: number;
  equations: number;
  /** Letters with a coefficient or a power. */
  variables: number;
  isQuestion: boolean;
  /** The topic of a mark at the start of the prompt, and at the start of the last question. */
  first: Topic | undefined;
  asks: Topic | undefined;
  /** What was around the task; see `Unwrapped`. */
  around: string;
  /** Number of marks of all topics. */
  found: number;
  /** Number of marks by number of topic, each at most 255. */
  marks: Uint8Array;
}

/** Number of marks of a topic in a prompt. */
export function count({ marks }: Reading, topic: Topic): number {
  return marks[TOPIC_NUMBERS[topic]] ?? 0;
}

const [COMMA, POINT, QUESTION, BRACKET, SPACE_UNIT, A] = [44, 46, 63, 40, 32, 97];
const [SEMICOLON, EQUALS, COLON, EXCLAMATION, LOW_LINE, POWER] = [59, 61, 58, 33, 95, 94];
/** Characters of a prompt that are read. Reading more changes the difficulty little and takes time. */
const READ = 12_000;
/** Longest word that is short. */
const SHORT = 3;
/** A character of a script without spaces says as much as this many Latin ones. */
const RUN_LENGTH = 3;

const { source: SOURCE, program: PROGRAM, quantifiers: QUANTIFIERS } = TOPIC_NUMBERS;

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
  const reading = blank(length, around);
  readings++;
  readLines(text, reading);
  if (reading.options < 2) [reading.length, reading.options] = [length, 0];
  reading.length += (RUN_LENGTH - 1) * Math.min(reading.runs, reading.length) + prompt.length - sampled.length;
  return reading;
}

/**
 * The part of a text that is rated: all of it up to 12,000 characters, else the first 6,000, 2,000 from the middle
 * and the last 4,000, which usually hold the question of a long prompt. Deterministic.
 */
function sample(text: string): string {
  if (text.length <= READ) return text;
  const middle = Math.floor(text.length / 2);
  return `${text.slice(0, 6000)}\n${text.slice(middle - 1000, middle + 1000)}\n${text.slice(-4000)}`;
}

function blank(length: number, around: string): Reading {
  const marks = new Uint8Array(TOPICS.length);
  const counts = { words: 0, repeats: 0, shortWords: 0, singles: 0, numbers: 0, operators: 0, commas: 0, runs: 0 };
  const found = { found: 0, options: 0, code: 0, calls: 0, holes: 0, equations: 0, variables: 0 };
  return {
    end: length,
    length,
    ...counts,
    ...found,
    isQuestion: false,
    first: undefined,
    asks: undefined,
    around,
    marks,
  };
}

/**
 * Reads a text line by line. A line of code ends with a bracket or a semicolon, or is a part of an indented block. The
 * length of a prompt ends before its options.
 */
function readLines(text: string, reading: Reading): void {
  let [opens, isCode] = [-1, false];
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    const stop = end < 0 ? text.length : end;
    let last = stop - 1;
    while (last > start && units[last] === SPACE_UNIT) last--;
    const isIndented = last > start + 1 && units[start] === SPACE_UNIT && units[start + 1] === SPACE_UNIT;
    if (isIndented && opens >= 0 && !isCode) reading.code++;
    isCode =
      (isCode && last <= start) ||
      (isIndented && (isCode || opens >= 0)) ||
      isCodeEnd(start, last) ||
      LEXICON.at(units, start, text.length) === TOPIC_NUMBERS.source;
    if (isCode) reading.code++;
    opens = units[last] === COLON ? start : -1;
    if (isOption(start, text.length, A + reading.options) && reading.options++ === 0) reading.length = start;
    readLine(reading, start, stop, isCode);
  }
}

/** Counts what a line of the folded text has. Of code, only marks of code count. */
function readLine(reading: Reading, from: number, to: number, isCode: boolean): void {
  const { marks } = reading;
  let [previous, start, hash, solid] = [SPACE, from, 0, 0];
  let opening = -1;
  let isStart = true;
  // One step past the end ends the last word.
  for (let at = from; at <= to; at++) {
    const unit = at < to ? (units[at] ?? 0) : SPACE_UNIT;
    const kind = classOf(unit);
    const isWordStart = kind === LETTER && previous !== LETTER;
    if (previous === LETTER && kind !== LETTER) endWord(reading, start, at, hash);
    if ((isWordStart && previous !== DIGIT) || kind === RUN || kind === SIGN) {
      const topic = LEXICON.at(units, at, reading.end);
      if (topic >= 0 && (isCode ? topic === SOURCE || topic === PROGRAM : isStart || topic !== QUANTIFIERS)) {
        marks[topic] = Math.min(255, (marks[topic] ?? 0) + 1);
        reading.found++;
        if (reading.words + reading.runs + reading.numbers === 0) reading.first = TOPICS[topic];
        if (isStart) opening = topic;
      }
    }
    if (isWordStart) {
      [start, hash] = [at, 0];
      if (unit === LOW_LINE && solid === EQUALS) reading.holes++;
    }
    if (kind === LETTER) hash = (Math.imul(hash, 31) + unit) | 0;
    else if (kind === RUN) reading.runs++;
    else if (kind === DIGIT) {
      if (previous !== DIGIT && previous !== LETTER && !isFraction(at)) reading.numbers++;
    } else if (kind === OPERATOR || kind === SIGN) {
      reading.operators++;
      if (unit === EQUALS && !isCode) reading.equations++;
    } else if (unit === COMMA) reading.commas++;
    else if (unit === QUESTION && solid === EQUALS) reading.holes++;
    else if (kind === 0 && !isCode) {
      if (unit === BRACKET && (previous === LETTER || previous === DIGIT)) reading.calls++;
      else if (isEnd(unit) || (unit === SEMICOLON && isGreek(from))) {
        if (unit === QUESTION || unit === SEMICOLON) [reading.isQuestion, reading.asks] = [true, TOPICS[opening]];
        [isStart, opening] = [true, -1];
      }
    }
    if (kind >= DIGIT && kind <= RUN) isStart = false;
    if (kind !== SPACE) solid = unit;
    previous = kind;
  }
}

function endWord(reading: Reading, start: number, end: number, hash: number): void {
  reading.words++;
  if (end - start <= SHORT) reading.shortWords++;
  if (end - start === 1) {
    reading.singles++;
    // A coefficient or a power makes a letter a variable.
    if (units[end] === POWER || classOf(units[start - 1] ?? 0) === DIGIT) reading.variables++;
  }
  const bucket = Math.imul(hash, 0x9e3779b1) >>> 19;
  if (seen[bucket] === readings) reading.repeats++;
  seen[bucket] = readings;
}

/** Whether a unit ends a sentence or what introduces one. */
function isEnd(unit: number): boolean {
  return unit === QUESTION || unit === POINT || unit === EXCLAMATION || unit === COLON;
}

/** Whether a line ends like code: "{", "}" or ";". */
function isCodeEnd(start: number, last: number): boolean {
  const unit = units[last];
  return unit === 123 || unit === 125 || (unit === SEMICOLON && !isGreek(start));
}

/** Whether a line begins with a letter of Greek, in which a semicolon asks. */
function isGreek(start: number): boolean {
  const unit = units[start] ?? 0;
  return unit >= 0x370 && unit < 0x400;
}

/** Whether the digits at a place follow a decimal point or comma. */
function isFraction(at: number): boolean {
  const point = units[at - 1];
  return (point === POINT || point === COMMA) && classOf(units[at - 2] ?? 0) === DIGIT;
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
