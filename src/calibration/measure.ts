import type { Ability } from "../contract/terms.ts";
import { closedAnswer } from "../engine/fuse/closed-answer.ts";
import { exactAnswer } from "../engine/fuse/exact-answer.ts";
import type { Member } from "../models/catalogue.ts";
import { complete, type ModelCall } from "../models/port/model.ts";
import type { Question } from "./questions.ts";

/** Whether a model answered a question correctly. */
export interface Result {
  model: string;
  question: string;
  right: boolean;
}

/** Accuracy of a model in one ability. */
export interface Measured {
  /** The centre of the interval, 0 to 1, which does not reach 0 or 1 for few questions. */
  accuracy: number;
  /** The 95 % interval of Wilson. */
  low: number;
  high: number;
  right: number;
  questions: number;
}

/** Time for one answer, in milliseconds. */
const ANSWER_MS = 120_000;
/** Calls of one model at a time, and failures in succession after which it is given up. */
const MAX = { calls: 4, failures: 4 };

/**
 * Asks one model the questions that it has not answered yet. A failed call is no result.
 * @param onResult called after each answer
 * @returns the number of questions without a result
 */
export async function askAll(
  { name, model }: Pick<Member, "name" | "model">,
  questions: readonly Question[],
  onResult: (result: Result) => void,
  signal: AbortSignal,
): Promise<number> {
  const waiting = [...questions];
  let [open, failures] = [questions.length, 0];
  const work = async () => {
    for (let next = waiting.shift(); next && failures < MAX.failures; next = waiting.shift()) {
      try {
        const { text } = await complete(model, callOf(next, signal));
        failures = 0;
        open -= 1;
        onResult({ model: name, question: next.id, right: isRight(next, text) });
      } catch {
        signal.throwIfAborted();
        failures += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: MAX.calls }, work));
  return open;
}

/** Whether a text gives the answer of a question, in any form that means the same. */
export function isRight({ answer, exact }: Question, text: string): boolean {
  const read = exact ? exactAnswer : closedAnswer;
  const form = read(text);
  return form !== undefined && form === read(answer);
}

/** Sums up the results by model and ability. */
export function summarise(
  results: readonly Result[],
  questions: readonly Question[],
): Record<string, Partial<Record<Ability, Measured>>> {
  const abilities = new Map(questions.map(({ id, ability }) => [id, ability]));
  const models: Record<string, Partial<Record<Ability, Measured>>> = {};
  const groups = Map.groupBy(results, ({ model }) => model);
  for (const [model, own] of groups) {
    const byAbility = Map.groupBy(own, ({ question }) => abilities.get(question));
    models[model] = {};
    for (const [ability, some] of byAbility)
      if (ability) models[model][ability] = wilson(some.filter(({ right }) => right).length, some.length);
  }
  return models;
}

/** The 95 % score interval of Wilson (1927) for a share. */
export function wilson(right: number, questions: number): Measured {
  const z2 = 1.96 ** 2;
  const total = questions + z2;
  const accuracy = (right + z2 / 2) / total;
  const margin = (1.96 / total) * Math.sqrt((right * (questions - right)) / questions + z2 / 4);
  const [low, high] = [Math.max(0, accuracy - margin), Math.min(1, accuracy + margin)];
  const rounded = (share: number) => Math.round(share * 1e4) / 1e4;
  return { accuracy: rounded(accuracy), low: rounded(low), high: rounded(high), right, questions };
}

function callOf({ prompt }: Question, signal: AbortSignal): ModelCall {
  return {
    prompt: { system: "", messages: [{ role: "user", text: prompt }] },
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    endsAt: performance.now() + ANSWER_MS,
    streamed: false,
    reasoning: "medium",
    defaultTemperature: 0,
  };
}
