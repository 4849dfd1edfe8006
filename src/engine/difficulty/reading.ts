import { classOf, DIGIT, fold, LETTER, OPERATOR, RUN, SIGN, SPACE } from "./marks/fold.ts";
import { sample } from "./sample.ts";
import { stripTemplates } from "./templates.ts";
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
  isQuestion: boolean;
  /** The topic of a mark at the start of the prompt. */
  first: Topic | undefined;
  /** Number of marks by number of topic, each at most 255. */
  marks: Uint8Array;
}

/** Number of marks of a topic in a prompt. */
export function count({ marks }: Reading, topic: Topic): number {
  return marks[TOPIC_NUMBERS[topic]] ?? 0;
}

const [COMMA, POINT, QUESTION, BRACKET, SPACE_UNIT, A] = [44, 46, 63, 40, 32, 97];
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
  const text = stripTemplates(sampled).toUpperCase();
  const { length } = text;
  if (units.length < length) units = new Uint16Array(length);
  for (let at = 0; at < length; at++) units[at] = fold(text.charCodeAt(at));
  const reading = scan(length);
  readLayout(text, reading);
  reading.length += (RUN_LENGTH - 1) * Math.min(reading.runs, reading.length) + prompt.length - sampled.length;
  return reading;
}

/** Counts what the folded text of a length has, without its layout. */
function scan(length: number): Reading {
  const marks = new Uint8Array(TOPICS.length);
  let first: Topic | undefined;
  let [words, repeats, shortWords, singles, numbers, operators, commas, runs] = [0, 0, 0, 0, 0, 0, 0, 0];
  let [previous, hash, start] = [SPACE, 0, 0];
  readings++;
  // One step past the end ends the last word.
  for (let at = 0; at <= length; at++) {
    const unit = at < length ? (units[at] ?? 0) : SPACE_UNIT;
    const kind = classOf(unit);
    const isWordStart = kind === LETTER && previous !== LETTER;
    if ((isWordStart && previous !== DIGIT) || kind === RUN || kind === SIGN) {
      const topic = LEXICON.at(units, at, length);
      if (topic >= 0) {
        marks[topic] = Math.min(255, (marks[topic] ?? 0) + 1);
        if (words + runs + numbers === 0) first = TOPICS[topic];
      }
    }
    if (kind === LETTER) {
      if (isWordStart) [hash, start] = [0, at];
      hash = (Math.imul(hash, 31) + unit) | 0;
    } else if (previous === LETTER) {
      words++;
      if (at - start === 1) singles++;
      if (at - start <= SHORT) shortWords++;
      const bucket = Math.imul(hash, 0x9e3779b1) >>> 19;
      if (seen[bucket] === readings) repeats++;
      seen[bucket] = readings;
    }
    if (kind === RUN) runs++;
    else if (kind === DIGIT) {
      if (previous !== DIGIT && previous !== LETTER && !isFraction(at)) numbers++;
    } else if (kind === OPERATOR || kind === SIGN) operators++;
    else if (unit === COMMA) commas++;
    previous = kind;
  }
  const isQuestion = length > 0 && units[length - 1] === QUESTION;
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
    lines: 1,
    options: 0,
    isQuestion,
    first,
    marks,
  };
}

/** Whether the digits at a place follow a decimal point or comma. */
function isFraction(at: number): boolean {
  const point = units[at - 1];
  return (point === POINT || point === COMMA) && classOf(units[at - 2] ?? 0) === DIGIT;
}

/** Counts lines and options, and shortens the length to what comes before them. Options need at least A and B. */
function readLayout(text: string, reading: Reading): void {
  let [lines, options, stem] = [0, 0, text.length];
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    lines++;
    if (!isOption(start, text.length, A + options)) continue;
    if (options === 0) stem = start;
    options++;
  }
  reading.lines = lines;
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
