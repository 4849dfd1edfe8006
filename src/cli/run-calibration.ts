import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { askAll } from "../calibration/measure.ts";
import { Progress } from "../calibration/progress.ts";
import { readQuestions } from "../calibration/question-file.ts";
import { generateQuestions, type Question } from "../calibration/questions.ts";
import { ConfigError, envToConfig } from "../config/config.ts";
import { readWithFiles } from "../config/file-variables.ts";
import { readSources } from "../config/models.ts";
import { type Catalogue, createCatalogue } from "../models/catalogue.ts";
import type { ModelEntry } from "../models/port/entry.ts";
import { saidText } from "./models.ts";
import { printJson, printTable, safe } from "./print.ts";
import { CliError } from "./target.ts";

export interface CalibrationOptions {
  each: string;
  questions?: string;
  out?: string;
  yes?: boolean;
}

/** Tokens of an answer with its thinking, and characters per token, for the estimate of the cost. */
const ESTIMATE = { answerTokens: 600, characters: 4 };
/** npm and `chorus` repeat a terminal's Ctrl-C. A signal within this time is such a repetition. */
const REPEAT_MS = 1_000;
/** The file with the accuracies if neither the caller nor the catalogue names one. */
const DEFAULT_FILE = "chorus.accuracies.json";

/**
 * Asks every model of the catalogue, writes the accuracies and prints them.
 * @param json prints one JSON document in place of a table
 * @throws CliError that says what is wrong
 */
export async function runCalibration(options: CalibrationOptions, json: boolean): Promise<void> {
  try {
    await calibrate(options, json);
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.message);
    throw error;
  }
}

async function calibrate(options: CalibrationOptions, json: boolean): Promise<void> {
  const config = envToConfig(process.env);
  const named = readWithFiles(process.env, readSources).accuracies;
  const entries = config.models.filter(({ vendor }) => vendor !== "offline");
  if (entries.length === 0)
    throw new CliError("The catalogue has no model of a vendor. Set an API key, or CHORUS_MODELS.");
  const path = resolve(options.out ?? named ?? DEFAULT_FILE);
  const questions = questionsOf(options);
  const progress = new Progress(
    path,
    questions,
    entries.map(({ name }) => name),
  );
  announce(entries, questions, progress);
  if (!options.yes && !(await isConfirmed())) throw new CliError("Nothing was asked. Confirm with y, or use --yes.");

  const catalogue = createCatalogue(config.models, config.timeouts);
  const interrupt = interruptSignal();
  try {
    const members = catalogue.members.filter(({ vendor }) => vendor !== "offline");
    const unanswered = await Promise.all(
      members.map(async (member) => {
        const open = progress.open(member.name, questions);
        const byId = new Map(open.map((question) => [question.id, question]));
        let left = open.length;
        const missing = await askAll(
          member,
          open,
          (result) => {
            const question = byId.get(result.question);
            if (question) progress.add(result, question);
            left -= 1;
            if (left % 10 === 0) say(`${member.name}: ${questions.length - left} of ${questions.length}`);
          },
          interrupt,
        );
        return missing > 0 ? [`${member.name} (${missing})`] : [];
      }),
    );
    const failed = unanswered.flat();
    if (failed.length > 0) {
      const again = `Questions without an answer: ${failed.join(", ")}. The same command asks only these again.`;
      throw new CliError([again, ...reasons(catalogue)].join(" "));
    }
  } finally {
    await catalogue.close();
  }
  const models = progress.finish(questions);
  if (json) return printJson(JSON.parse(JSON.stringify({ path, models })));
  printTable(
    ["MODEL", "KIND", "ACCURACY", "95 % INTERVAL", "RIGHT"],
    Object.entries(models).flatMap(([name, abilities]) =>
      Object.entries(abilities).map(([ability, { accuracy, low, high, right, questions }]) => [
        ...[name, ability, accuracy.toFixed(3)],
        ...[`${low.toFixed(3)} to ${high.toFixed(3)}`, `${right} of ${questions}`],
      ]),
    ),
  );
  say(`Wrote ${path}.`);
  if (named !== path) say(`To use it, add "accuracies": ${JSON.stringify(path)} to the catalogue.`);
}

/** Why the last call of each model failed, and what to do. */
function reasons(catalogue: Catalogue): string[] {
  return catalogue.load().flatMap(({ model, failure }) => {
    if (!failure) return [];
    const what = [failure.status, failure.code].filter(Boolean).join(" ") || "no answer";
    return [`${model}: ${what}.${saidText(failure)}`];
  });
}

function questionsOf({ questions, each }: CalibrationOptions): Question[] {
  if (questions !== undefined) {
    try {
      return readQuestions(questions);
    } catch (error) {
      throw new CliError(error instanceof Error ? error.message : String(error));
    }
  }
  const number = Number(each);
  if (!Number.isInteger(number) || number < 1 || number > 200)
    throw new CliError(`--each must be a whole number from 1 to 200, but is "${each}". Correct it.`);
  return generateQuestions(number);
}

/** Says what is going to be asked and about what it costs. */
function announce(entries: readonly ModelEntry[], questions: readonly Question[], progress: Progress): void {
  for (const { name, price } of entries) {
    const open = progress.open(name, questions);
    const characters = open.reduce((sum, { prompt }) => sum + prompt.length, 0);
    const usd =
      price &&
      ((characters / ESTIMATE.characters) * price.input + open.length * ESTIMATE.answerTokens * price.output) / 1e6;
    const cost = usd === undefined ? "cost unknown: the catalogue has no price" : `about USD ${usd.toFixed(2)}`;
    say(`${name}: ${open.length} of ${questions.length} questions to ask, ${cost}`);
  }
}

async function isConfirmed(): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Without an answer, the end of the input counts as no.
  const closed = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
  const answer = await Promise.race([terminal.question("Ask them now? [y/N] "), closed]);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** Aborts at Ctrl-C. A later one ends the process at once. */
function interruptSignal(): AbortSignal {
  const interrupt = new AbortController();
  let since = 0;
  process.on("SIGINT", () => {
    if (interrupt.signal.aborted) {
      if (performance.now() - since > REPEAT_MS) process.exit(130);
      return;
    }
    since = performance.now();
    interrupt.abort(new CliError("Interrupted. The same command continues."));
  });
  return interrupt.signal;
}

/** Progress goes to standard error, so that `--json` prints one document. */
function say(text: string): void {
  process.stderr.write(`${safe(text)}\n`);
}
