import { readFileSync } from "node:fs";
import { ABILITIES } from "../contract/terms.ts";
import type { Question } from "./questions.ts";

/**
 * Reads questions from a file with one JSON object a line: `{"ability","prompt","answer"}`, with `"exact": true` where
 * the answer counts character by character.
 * @throws Error naming the line and what was expected
 */
export function readQuestions(path: string): Question[] {
  const lines = read(path).split("\n");
  const questions = lines.flatMap((line, at) => (line.trim() === "" ? [] : [question(line, `${path}:${at + 1}`, at)]));
  if (questions.length === 0) throw new Error(`${path} has no questions. Expected one JSON object a line: ${FORM}.`);
  return questions;
}

const FORM = '{"ability","prompt","answer"}';

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new Error(`${path} cannot be read. Expected a file of questions; correct --questions.`);
  }
}

function question(line: string, where: string, at: number): Question {
  let item: Record<string, unknown>;
  try {
    // Some editors begin a file with a byte order mark, which counts as white space here.
    item = Object(JSON.parse(line.trim()));
  } catch {
    throw new Error(`${where} is not JSON. Expected ${FORM}.`);
  }
  const ability = ABILITIES.find((one) => one === item.ability);
  const { prompt, answer, exact = false } = item;
  if (!ability || typeof prompt !== "string" || typeof answer !== "string" || typeof exact !== "boolean")
    throw new Error(`${where}: expected ${FORM} with an ability of ${ABILITIES.join(", ")}. Correct the line.`);
  return { id: `line-${at + 1}`, ability, prompt, answer, exact };
}
