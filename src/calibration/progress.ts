import { hash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type Result, summarise } from "./measure.ts";
import type { Question } from "./questions.ts";

/**
 * The results of a calibration on disk. Each result is appended to `<path>.progress` when it arrives, so that an
 * interrupted run continues; `finish` writes the accuracies to `path` and removes the progress.
 */
export class Progress {
  readonly results: Result[] = [];
  readonly #path: string;
  readonly #log: string;

  /** @param questions results of other questions or models, from another set, are ignored */
  constructor(path: string, questions: readonly Question[], models: readonly string[]) {
    this.#path = path;
    this.#log = `${path}.progress`;
    const prompts = new Map(questions.map((question) => [question.id, fingerprint(question)]));
    for (const line of existsSync(this.#log) ? readFileSync(this.#log, "utf8").split("\n") : []) {
      const read = parse(line);
      if (read && prompts.get(read.question) === read.of && models.includes(read.model)) this.results.push(read);
    }
  }

  /** The questions that a model has not answered yet. */
  open(model: string, questions: readonly Question[]): Question[] {
    const done = new Set(this.results.flatMap((result) => (result.model === model ? [result.question] : [])));
    return questions.filter(({ id }) => !done.has(id));
  }

  add(result: Result, question: Question): void {
    this.results.push(result);
    // Begins a line, because an interrupted run can have left half of one.
    appendFileSync(this.#log, `\n${JSON.stringify({ ...result, of: fingerprint(question) })}\n`);
  }

  /** @returns what was written: accuracies by model and ability */
  finish(questions: readonly Question[]): ReturnType<typeof summarise> {
    const models = summarise(this.results, questions);
    const temporary = `${this.#path}.new`;
    writeFileSync(temporary, `${JSON.stringify({ measured: new Date().toISOString(), models }, null, 2)}\n`);
    renameSync(temporary, this.#path);
    rmSync(this.#log, { force: true });
    return models;
  }
}

/** Tells a question from all others, so that no result counts for a question that was changed. */
function fingerprint(question: Question): string {
  return hash("sha256", JSON.stringify(question), "base64url");
}

function parse(line: string): (Result & { of: string }) | undefined {
  try {
    const { model, question, right, of } = JSON.parse(line);
    const isResult = [model, question, of].every((each) => typeof each === "string") && typeof right === "boolean";
    return isResult ? { model, question, right, of } : undefined;
  } catch {
    // An interrupted run can leave half a line.
    return undefined;
  }
}
