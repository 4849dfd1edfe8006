import type { Signal } from "../abort.ts";
import type { End, Pieces, Step } from "../models/model.ts";
import { Turns } from "../turns.ts";
import { Steps } from "./plan/step.ts";
import { buildPrompt } from "./prompt.ts";
import {
  type Engine,
  type EngineEvent,
  type Finish,
  modelCall,
  outputCeiling,
  planOf,
  type Question,
  toUpstreamFailure,
} from "./question.ts";
import { createStopper } from "./stop.ts";
import { strictAnswer } from "./strict.ts";
import { extractObject } from "./structured/repair.ts";

export type { Step } from "../models/model.ts";
export type { Engine, EngineEvent, Finish, Question } from "./question.ts";

/**
 * Answers a question: text events in order, then one `finish`. With a JSON Schema there is one text event, the
 * validated object.
 * @throws Failure structured_output_failed or upstream_failed; the reason of `signal` when it aborts.
 */
export function answer(engine: Engine, question: Question, signal: Signal): AsyncGenerator<EngineEvent> {
  return question.shape === "json_schema"
    ? strictAnswer(engine, question, signal)
    : textAnswer(engine, question, signal);
}

/**
 * Longest text that is counted at once, in UTF-16 units. It takes 0.4 ms, and 13 ms in the worst case. A whole answer
 * arrives as one text.
 */
const SLICE = 16 * 1024;

/** Slices of long texts that are counted in one turn of the event loop, one of each answer in turn. */
const slices = new Turns<string>(2);

async function* textAnswer(engine: Engine, question: Question, signal: Signal): AsyncGenerator<EngineEvent> {
  const { stops, shape, maxTokens } = question;
  const pieces = ask(engine, question, signal);
  const stopper = createStopper(stops);
  const meter = engine.tokenizer.meter(outputCeiling(question));
  /** Steps that have begun but not ended. Undefined without steps. */
  let openSteps: Map<number, Step> | undefined;
  let text = "";
  let isStopped = false;
  let end: End | undefined;

  try {
    for await (const piece of pieces) {
      if (piece.type === "end") {
        end = piece;
        break;
      }
      if (piece.type === "step") {
        const { step } = piece;
        openSteps ??= new Map();
        step.outcome ? openSteps.delete(step.id) : openSteps.set(step.id, step);
        yield piece;
      }
      if (piece.type !== "text" || isStopped) continue;
      for (let at = 0; at < piece.text.length && !isStopped; at += SLICE) {
        if (piece.text.length > SLICE) await slices.enter(question.generation);
        const { text: beforeStop, stopped } = stopper.push(piece.text.slice(at, at + SLICE));
        const counted = meter.push(beforeStop);
        if (counted !== "") {
          if (shape === "extract") text += counted;
          yield { type: "text", text: counted };
        }
        isStopped = stopped;
      }
      // A unary call has already ended. Its end, which has the usage, is still to come.
      if (question.streamed && (isStopped || meter.full)) break;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : toUpstreamFailure(error, question);
  }
  const rest = meter.push(isStopped ? "" : stopper.flush()) + meter.flush();
  if (rest !== "") {
    text += rest;
    yield { type: "text", text: rest };
  }
  for (const step of openSteps?.values() ?? []) yield { type: "step", step: { ...step, outcome: "ok" } };
  const finish: Finish = {
    type: "finish",
    reason: meter.full ? "length" : isStopped ? "stop" : endReason(end, meter.tokens, maxTokens),
    outputTokens: meter.tokens,
    cachedTokens: end?.usage?.cachedTokens ?? 0,
    model: end?.model,
  };
  if (shape === "extract") {
    const { structured, error } = extractObject(text);
    finish.structured = structured ?? "null";
    if (error !== null) finish.structuredError = error;
  }
  yield finish;
}

/** A function apart from `textAnswer`, which would hold the plan, 1 KB, until the end of the answer. */
function ask(engine: Engine, question: Question, signal: Signal): Pieces {
  const read = (text: string) => extractObject(text).structured ?? undefined;
  const plan = planOf(engine, question, new Steps(question.trace), read);
  return plan.ask(modelCall(question, signal, buildPrompt(question.conversation, question.shape)));
}

/** Output limits of current models are not below this, so a smaller limit that was reached is the caller's. */
const MIN_MODEL_LIMIT = 4_096;

/**
 * Why the model ended the answer. When the model reports `length`, the reason is `length` if the caller's limit was
 * reached: it is small, or the answer has at least half of it by the vendor's count or ours, which differ by less
 * than half. Else the limit was the model's or a draft's, and the reason is `cut`.
 */
function endReason(end: End | undefined, tokens: number, maxTokens = Number.POSITIVE_INFINITY): Finish["reason"] {
  if (end?.reason === "stop") return "stop";
  if (end?.reason !== "length") return end?.reason === "content_filter" ? "filtered" : "cut";
  const written = (end.usage?.outputTokens ?? 0) - (end.usage?.thinkingTokens ?? 0);
  const isReached = 2 * Math.max(written, tokens) >= maxTokens;
  return maxTokens <= MIN_MODEL_LIMIT || isReached ? "length" : "cut";
}
