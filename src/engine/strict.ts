import type { Signal } from "../concurrency/abort.ts";
import { Failure } from "../contract/failure.ts";
import type { Tier } from "../contract/terms.ts";
import { UpstreamError } from "../models/failover.ts";
import { rank } from "../models/order.ts";
import type { DraftReport, End, Model, ModelCall, Prompt, Step } from "../models/port/model.ts";
import { abilityOf } from "./difficulty/difficulty.ts";
import { tierInTurn } from "./plan/crew.ts";
import { fallbackSteps, repairSteps, Steps } from "./plan/step.ts";
import { buildPrompt, buildReask } from "./prompt.ts";
import {
  type Engine,
  type EngineEvent,
  type Finish,
  furtherCalls,
  membersFor,
  modelCall,
  outputCeiling,
  planOf,
  type Question,
  toUpstreamFailure,
} from "./question.ts";
import { repairJson } from "./structured/repair.ts";
import { type Validator, whileInTime } from "./structured/validate.ts";

const CORRECT = "Send the corrected JSON object, whole, and nothing else.";

/**
 * Answers with an object that is valid against the caller's JSON Schema. It makes up to three attempts: the plan, in
 * which only valid drafts count; a retry with the validator's errors; the other tier. If they fail or take too
 * long, a valid draft of the plan is the answer. The syntax of each result is repaired first.
 */
export async function* strictAnswer(
  engine: Engine,
  question: Question,
  signal: Signal,
  steps = new Steps(),
): AsyncGenerator<EngineEvent> {
  const validate = whileInTime(engine.validators.get(question.schema ?? ""));
  const prompt = buildPrompt(question.conversation, "json_schema");
  const tier: Tier = question.level === "low" ? "fast" : "strong";
  const other: Tier = tier === "fast" ? "strong" : "fast";
  const { members: ranked } = rank(membersFor(engine, question), abilityOf(question.kind), engine.knowledge?.());
  const read = (text: string) => validObject(text, validate);
  const signalOf = furtherCalls(question, signal);
  let reask: Prompt | undefined;
  let drafts: readonly DraftReport[] = [];
  const asked: Question = {
    ...question,
    streamed: false,
    onDrafts(reports, chosen) {
      drafts = reports.filter(({ canonical }) => canonical !== undefined);
      question.onDrafts?.(reports, chosen);
    },
  };

  for (const attempt of [
    () => ({ model: planOf(engine, asked, steps, read), prompt }),
    // Without errors to show, as after a result that was too long, a retry would end the same way.
    () => reask && { model: tierInTurn("reask", tier, ranked, steps), prompt: reask },
    () => ({ model: tierInTurn("escalate", other, ranked, steps), prompt }),
  ]) {
    const next = attempt();
    if (!next) continue;
    using abort = signalOf(drafts.length > 0);
    const call = modelCall(asked, abort, next.prompt, drafts.length > 0);
    let result: Result;
    try {
      result = yield* collect(next.model, call);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // The request fits, but not with its first answer and the errors.
      if (next.prompt === reask && isTooLong(error)) continue;
      if (drafts.length > 0) break;
      // The failed model has already tried the other tier.
      throw toUpstreamFailure(error, question);
    }
    // A result that was cut off can be valid by chance, but is incomplete.
    const isCut = result.end.reason === "length" || result.end.reason === "content_filter";
    const checked: Checked = isCut ? { ok: false } : check(result.text, validate);
    const outputTokens = checked.ok ? await engine.tokenizer.countAsync(checked.text) : 0;
    const fits = checked.ok && outputTokens <= outputCeiling(question);
    if (result.last) yield { type: "step", step: fits ? result.last : { ...result.last, outcome: "failed" } };
    if (checked.ok && checked.repaired) yield* repairSteps(steps);
    if (checked.ok && fits) {
      const { usage, model, version } = result.end;
      return yield* whole(checked.text, { outputTokens, cachedTokens: usage?.cachedTokens ?? 0, model, version });
    }
    reask = !checked.ok && checked.errors ? buildReask(prompt, result.text, checked.errors, CORRECT) : undefined;
  }
  for (const { canonical = "", ...from } of drafts) {
    const outputTokens = await engine.tokenizer.countAsync(canonical);
    if (outputTokens > outputCeiling(question)) continue;
    yield* fallbackSteps(steps);
    return yield* whole(canonical, { ...from, outputTokens });
  }
  throw new Failure("structured_output_failed");
}

/** A valid object and its end. */
function* whole(
  text: string,
  { outputTokens, cachedTokens, model, version }: Omit<Finish, "type" | "reason">,
): Generator<EngineEvent> {
  yield { type: "text", text };
  yield { type: "finish", reason: "stop", outputTokens, cachedTokens, model, version, structured: text };
}

/**
 * Collects the text of a call and yields its steps, except the last successful one: whether that step succeeded
 * depends on the validation. A step that ends while others run is not the last one, and is yielded at once, because
 * the trace measures how long a step takes by when its end is yielded.
 */
async function* collect(model: Model, call: ModelCall): AsyncGenerator<EngineEvent, Result> {
  let text = "";
  let last: Step | undefined;
  const running = new Set<number>();
  for await (const piece of model.ask(call)) {
    if (piece.type === "step") {
      const { step } = piece;
      if (last) yield { type: "step", step: last };
      step.outcome ? running.delete(step.id) : running.add(step.id);
      last = step.outcome === "ok" && running.size === 0 ? step : undefined;
      if (!last) yield piece;
    } else if (piece.type === "text") text += piece.text;
    else if (piece.type === "end") return { text: text.toWellFormed(), end: piece, last };
  }
  throw new UpstreamError([]);
}

function isTooLong(error: unknown): boolean {
  return error instanceof UpstreamError && error.kind === "too_long";
}

type Checked = { ok: true; text: string; repaired: boolean } | { ok: false; errors?: readonly string[] };

/** The object in an answer, as JSON text, if it is valid. */
export function validObject(answer: string, validate: Validator): string | undefined {
  const checked = check(answer, validate);
  return checked.ok ? checked.text : undefined;
}

function check(answer: string, validate: Validator): Checked {
  const text = repairJson(answer);
  if (text === undefined) return { ok: false, errors: ["The answer is not one whole JSON object."] };
  const checked = validate(text);
  return checked.ok ? { ...checked, repaired: text !== answer.trim() } : checked;
}

interface Result {
  text: string;
  end: End;
  /** The end of the step that gave the text. */
  last: Step | undefined;
}
