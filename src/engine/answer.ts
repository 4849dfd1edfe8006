import type { Signal } from "../concurrency/abort.ts";
import type { Parts } from "../concurrency/parts.ts";
import type { Engine, EngineEvent, Question } from "./question.ts";
import { strictAnswer } from "./strict.ts";
import { TextAnswer } from "./text-answer.ts";
import { toolAnswer } from "./tool-answer.ts";

export type { CallReport, Step } from "../models/port/model.ts";
export type { Engine, EngineEvent, Finish, Question } from "./question.ts";

/**
 * Answers a question: text events in order, then the calls of tools, then one `finish`. With a JSON Schema there is one
 * text event, the validated object.
 * @throws Failure structured_output_failed, upstream_failed, or request_too_long, the last at once; the reason of
 *   `signal` when it aborts.
 */
export function answer(engine: Engine, question: Question, signal: Signal): Parts<EngineEvent> {
  if (question.tools && question.tools.choice !== "none") return toolAnswer(engine, question, question.tools, signal);
  return question.shape === "json_schema"
    ? strictAnswer(engine, question, signal)
    : new TextAnswer(engine, question, signal);
}
