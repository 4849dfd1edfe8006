import { partStep, type Step, Steps } from "./plan/step.ts";
import { buildPrompt } from "./prompt.ts";
import {
  callOptions,
  type Engine,
  type EngineEvent,
  type Finish,
  type ModelEnd,
  modelEnd,
  outputCeiling,
  planOf,
  type Question,
  upstream,
} from "./question.ts";
import { createStopper } from "./stop.ts";
import { strictAnswer } from "./strict.ts";
import { extractObject } from "./structured/repair.ts";

export type { Step } from "./plan/step.ts";
export type { Engine, EngineEvent, Finish, Question } from "./question.ts";

/**
 * Answers a question: text events in order, then one finish. With a JSON Schema the one text event is the validated object.
 * @throws Failure structured_output_failed or upstream_failed; the reason of `signal` once that has aborted.
 */
export function answer(engine: Engine, question: Question, signal: AbortSignal): AsyncGenerator<EngineEvent> {
  return question.shape === "json_schema"
    ? strictAnswer(engine, question, signal)
    : textAnswer(engine, question, signal);
}

async function* textAnswer(engine: Engine, question: Question, signal: AbortSignal): AsyncGenerator<EngineEvent> {
  const { stops, shape, maxTokens } = question;
  const plan = planOf(engine, question, new Steps(), (text) => extractObject(text).structured ?? undefined);
  const stopper = createStopper(stops);
  const meter = engine.tokenizer.meter(outputCeiling(question));
  /** Steps that have begun and not ended. */
  const open = new Map<number, Step>();
  let whole = "";
  let isStopped = false;
  let end: ModelEnd | undefined;

  try {
    const options = callOptions(question, signal, buildPrompt(question.conversation, shape));
    for await (const part of (await plan.doStream(options)).stream) {
      if (part.type === "finish") {
        end = modelEnd(part);
        break;
      }
      const step = partStep(part);
      if (step) {
        step.outcome ? open.delete(step.id) : open.set(step.id, step);
        yield { type: "step", step };
      }
      if (part.type !== "text-delta" || isStopped) continue;
      const { text, stopped } = stopper.push(part.delta);
      const piece = meter.push(text);
      if (piece !== "") {
        if (shape === "extract") whole += piece;
        yield { type: "text", text: piece };
      }
      isStopped = stopped;
      // A unary call has ended already; its last part tells what it used up.
      if (question.streamed && (stopped || meter.full)) break;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : upstream(error);
  }
  const rest = meter.push(isStopped ? "" : stopper.flush()) + meter.flush();
  if (rest !== "") {
    whole += rest;
    yield { type: "text", text: rest };
  }
  for (const step of open.values()) yield { type: "step", step: { ...step, outcome: "ok" } };
  const finish: Finish = {
    type: "finish",
    reason: meter.full ? "length" : isStopped ? "stop" : endReason(end, meter.tokens, maxTokens),
    outputTokens: meter.tokens,
    cachedTokens: end?.cachedTokens ?? 0,
    model: end?.model,
  };
  if (shape === "extract") {
    const { structured, error } = extractObject(whole);
    finish.structured = structured ?? "null";
    if (error !== null) finish.structuredError = error;
  }
  yield finish;
}

/** Tokens that every current model may write: a smaller cap is never a model's own. */
const ANY_MODEL_TOKENS = 4_096;

/**
 * Why an answer ended that the model ended. `length` is the caller's doing where the caller's cap is a small one, or the answer came near it by
 * the vendor's count or ours, which differ by less than half; else it is the model's own limit, or that of a draft.
 */
function endReason(end: ModelEnd | undefined, tokens: number, maxTokens = Number.POSITIVE_INFINITY): Finish["reason"] {
  if (end?.reason.unified !== "length") return end?.reason.unified === "stop" ? "stop" : "cut";
  const isReached = 2 * Math.max(end.writtenTokens, tokens) >= maxTokens;
  return maxTokens <= ANY_MODEL_TOKENS || isReached ? "length" : "cut";
}
