import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { Failure } from "../failure.ts";
import { parseJson, stringifyJson } from "../json.ts";
import { UpstreamError } from "../models/failover.ts";
import { dropAddedNulls } from "../models/schema.ts";
import type { Tier } from "../terms.ts";
import { withStep } from "./plan/composite.ts";
import { partStep, type Step, Steps } from "./plan/step.ts";
import { buildPrompt, buildReask } from "./prompt.ts";
import {
  callOptions,
  type Engine,
  type EngineEvent,
  type ModelEnd,
  modelEnd,
  outputCeiling,
  planOf,
  type Question,
  upstream,
} from "./question.ts";
import { repairJson } from "./structured/repair.ts";
import type { Validator } from "./structured/validate.ts";

/**
 * Ladder of a strict answer: the plan, whose drafts count only where they are valid; one more try with the validator's errors; the other tier.
 * The syntax of each answer is repaired first.
 */
export async function* strictAnswer(
  engine: Engine,
  question: Question,
  signal: AbortSignal,
): AsyncGenerator<EngineEvent> {
  const schema = question.schema ?? "";
  const validator = engine.validators.get(schema);
  const validate: Validator = (text) => validator(clean(text, schema));
  const prompt = buildPrompt(question.conversation, "json_schema");
  const steps = new Steps();
  const tier: Tier = question.level === "low" ? "fast" : "strong";
  const other: Tier = tier === "fast" ? "strong" : "fast";
  const single = (kind: string, tier: Tier) =>
    withStep(engine.models.tier(tier), { kind, role: tier, streamed: false }, steps);
  const read = (text: string) => {
    const verdict = judge(text, validate);
    return verdict.ok ? verdict.text : undefined;
  };
  let reask: LanguageModelV4Prompt | undefined;

  for (const rung of [
    () => ({ model: planOf(engine, { ...question, streamed: false }, steps, read), prompt }),
    // What ran into the caller's cap, or has no errors to show, would come out the same again.
    () => reask && { model: single("reask", tier), prompt: reask },
    () => ({ model: single("escalate", other), prompt }),
  ]) {
    const asked = rung();
    if (!asked) continue;
    const options = callOptions(question, signal, asked.prompt);
    let result: ModelAnswer;
    try {
      result = yield* listen(asked.model, options);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // Who cannot answer has tried the other tier already.
      throw upstream(error);
    }
    // What was cut off may parse by luck, but it is not what the model meant to say.
    const verdict: Verdict = result.end.reason.unified === "length" ? { ok: false } : judge(result.text, validate);
    const outputTokens = verdict.ok ? await engine.tokenizer.countAsync(verdict.text) : 0;
    const fits = verdict.ok && outputTokens <= outputCeiling(question);
    if (result.last) yield { type: "step", step: fits ? result.last : { ...result.last, outcome: "failed" } };
    if (verdict.ok && verdict.repaired) yield* repairSteps(steps);
    if (verdict.ok && fits) {
      yield { type: "text", text: verdict.text };
      yield {
        type: "finish",
        reason: "stop",
        outputTokens,
        cachedTokens: result.end.cachedTokens,
        model: result.end.model,
        structured: verdict.text,
      };
      return;
    }
    reask = !verdict.ok && verdict.errors ? buildReask(prompt, result.text, verdict.errors) : undefined;
  }
  throw new Failure("structured_output_failed");
}

/** Hears a model out and tells its steps as they come, but for the last one: how that ended depends on whether the answer is valid. */
async function* listen(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
): AsyncGenerator<EngineEvent, ModelAnswer> {
  let text = "";
  let last: Step | undefined;
  for await (const part of (await model.doStream(options)).stream) {
    const step = partStep(part);
    if (step) {
      if (last) yield { type: "step", step: last };
      last = step.outcome === "ok" ? step : undefined;
      if (!last) yield { type: "step", step };
    } else if (part.type === "text-delta") text += part.delta;
    else if (part.type === "finish") return { text, end: modelEnd(part), last };
  }
  throw new UpstreamError([]);
}

function* repairSteps(steps: Steps): Generator<EngineEvent> {
  const step = steps.begin("repair", "service");
  yield { type: "step", step };
  yield { type: "step", step: { ...step, outcome: "ok" } };
}

type Verdict = { ok: true; text: string; repaired: boolean } | { ok: false; errors?: string[] };

function judge(answer: string, validate: Validator): Verdict {
  const text = repairJson(answer);
  if (text === undefined) return { ok: false, errors: ["The answer is not one whole JSON object."] };
  const verdict = validate(text);
  return verdict.ok ? { ...verdict, repaired: text !== answer.trim() } : verdict;
}

/** Takes out the nulls that stand for left-out members where a vendor's strict mode demands every member. */
function clean(text: string, schema: string): string {
  try {
    return stringifyJson(dropAddedNulls(parseJson(text), parseJson(schema)));
  } catch {
    return text;
  }
}

interface ModelAnswer {
  text: string;
  end: ModelEnd;
  /** The step that the answer came from, as it ended. */
  last: Step | undefined;
}
