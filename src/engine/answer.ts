import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import type { Tier } from "../config.ts";
import { Failure } from "../failure.ts";
import { parseJson, stringifyJson } from "../json.ts";
import type { Catalogue } from "../models/catalogue.ts";
import { UpstreamError } from "../models/failover.ts";
import { dropAddedNulls } from "../models/schema.ts";
import type { Kind } from "./judge/judge.ts";
import type { Level } from "./judge/level.ts";
import { type FinishPart, told } from "./plan/model.ts";
import { choosePlan } from "./plan/plan.ts";
import { partStep, type Step, Steps } from "./plan/step.ts";
import { buildPrompt, buildReask, type Conversation } from "./prompt.ts";
import { createStopper } from "./stop.ts";
import { extractObject, repairJson } from "./structured/repair.ts";
import type { Validator, Validators } from "./structured/validate.ts";
import type { Tokenizer } from "./tokens.ts";

/** Ceiling of an answer whose caller set none, in tokens. */
const DEFAULT_CEILING = 32_000;

export interface Question {
  conversation: Conversation;
  shape: "text" | "extract" | "json_schema";
  schema: string | undefined;
  level: Level;
  kind: Kind;
  /** How likely the strong tier is to do better than the fast one, 0 to 1; undefined counts as likely. */
  difficulty?: number | undefined;
  temperature: number | undefined;
  maxTokens: number | undefined;
  stops: string[];
  /** Whether pieces are wanted as they come. */
  streamed: boolean;
  /** Tokens of the request: models whose context window is too small for them are left out. */
  inputTokens?: number | undefined;
  /** Time that is left for the answer, in milliseconds. */
  deadlineMs: number;
  /** Identifier of the generation, under which its calls are counted. */
  generation: string;
}

export type { Step } from "./plan/step.ts";

export interface Finish {
  type: "finish";
  /** `length`: the caller's max_tokens was reached. `cut`: the model ended it, without the caller having asked for that. */
  reason: "stop" | "length" | "cut";
  outputTokens: number;
  cachedTokens: number;
  /** Catalogue name of the model that answered, for the service's own books. */
  model: string | undefined;
  /** JSON text, in the two JSON modes; the text `null` when there is no object. */
  structured?: string;
  structuredError?: string;
}

export type EngineEvent = { type: "text"; text: string } | { type: "step"; step: Step } | Finish;

export interface Engine {
  models: Catalogue;
  tokenizer: Tokenizer;
  validators: Validators;
}

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
  const meter = engine.tokenizer.meter(maxTokens ?? DEFAULT_CEILING);
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
    reason: meter.full ? "length" : isStopped ? "stop" : endReason(end, maxTokens !== undefined),
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

function planOf(
  engine: Engine,
  question: Question,
  steps: Steps,
  read: (text: string) => string | undefined,
): LanguageModelV4 {
  const { continues, turns } = question.conversation;
  const hasImages = turns.some(({ images }) => images?.length);
  return choosePlan(engine.models, { ...question, continues, hasImages, read }, steps);
}

/** Why an answer ended that the model ended: without a cap of the caller's, `length` is the model's own limit. */
function endReason(end: ModelEnd | undefined, isCapped: boolean): Finish["reason"] {
  if (end?.reason.unified === "length") return isCapped ? "length" : "cut";
  return end?.reason.unified === "stop" ? "stop" : "cut";
}

/**
 * Ladder of a strict answer: the plan, whose drafts count only where they are valid; one more try with the validator's errors; the other tier.
 * The syntax of each answer is repaired first.
 */
async function* strictAnswer(engine: Engine, question: Question, signal: AbortSignal): AsyncGenerator<EngineEvent> {
  const schema = question.schema ?? "";
  const validator = engine.validators.get(schema);
  const validate: Validator = (text) => validator(clean(text, schema));
  const prompt = buildPrompt(question.conversation, "json_schema");
  const steps = new Steps();
  const tier: Tier = question.level === "low" ? "fast" : "strong";
  const other: Tier = tier === "fast" ? "strong" : "fast";
  const single = (kind: string, tier: Tier) =>
    told(engine.models.tier(tier), { kind, role: tier, streamed: false }, steps);
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
    const fits = verdict.ok && outputTokens <= (question.maxTokens ?? DEFAULT_CEILING);
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

function callOptions(
  question: Question,
  signal: AbortSignal,
  prompt: LanguageModelV4Prompt,
): LanguageModelV4CallOptions {
  const { shape, schema, maxTokens, stops, generation } = question;
  // JSON is wanted exact, prose as the model's maker tuned it.
  const temperature = question.temperature ?? (shape === "text" ? undefined : 0);
  const strict = shape === "json_schema" && schema !== undefined;
  return {
    prompt,
    abortSignal: signal,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    // Spares the vendor what comes after; the answer is cut here in any case, because not every model takes them.
    ...(stops.length === 0 ? {} : { stopSequences: stops }),
    ...(shape === "extract" ? { responseFormat: { type: "json" as const } } : {}),
    ...(strict ? { responseFormat: { type: "json" as const, name: "answer", schema: JSON.parse(schema) } } : {}),
    providerOptions: { chorus: strict ? { generation, schema } : { generation } },
  };
}

interface ModelEnd {
  reason: LanguageModelV4FinishReason;
  cachedTokens: number;
  model: string | undefined;
}

interface ModelAnswer {
  text: string;
  end: ModelEnd;
  /** The step that the answer came from, as it ended. */
  last: Step | undefined;
}

function modelEnd({ finishReason, usage, providerMetadata }: FinishPart): ModelEnd {
  const model = providerMetadata?.chorus?.model;
  return {
    reason: finishReason,
    cachedTokens: usage.inputTokens.cacheRead ?? 0,
    model: typeof model === "string" ? model : undefined,
  };
}

function upstream(error: unknown): unknown {
  return error instanceof UpstreamError ? new Failure("upstream_failed", { cause: error }) : error;
}
