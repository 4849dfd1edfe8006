import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { Tier } from "../config.ts";
import { Failure } from "../failure.ts";
import { parseJson, stringifyJson } from "../json.ts";
import type { Catalogue } from "../models/catalogue.ts";
import { UpstreamError } from "../models/failover.ts";
import { dropAddedNulls } from "../models/schema.ts";
import { buildPrompt, buildReask, type Conversation } from "./prompt.ts";
import { createStopper } from "./stop.ts";
import { extractObject, repairJson } from "./structured/repair.ts";
import type { Validators } from "./structured/validate.ts";
import type { Tokenizer } from "./tokens.ts";

/** Ceiling of an answer whose caller set none, in tokens. */
const DEFAULT_CEILING = 32_000;

export interface Question {
  conversation: Conversation;
  shape: "text" | "extract" | "json_schema";
  schema: string | undefined;
  tier: Tier;
  temperature: number | undefined;
  maxTokens: number | undefined;
  stops: string[];
  /** Whether pieces are wanted as they come. */
  streamed: boolean;
}

export interface Step {
  kind: "answer" | "repair" | "reask" | "escalate";
  role: Tier | "service";
  /** Absent when the step begins. */
  outcome?: "ok" | "failed";
}

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
  const { stops, shape, tier, maxTokens } = question;
  const model = engine.models.tier(tier);
  const options = callOptions(question, signal, buildPrompt(question.conversation, shape));
  const stopper = createStopper(stops);
  const meter = engine.tokenizer.meter(maxTokens ?? DEFAULT_CEILING);
  let whole = "";
  let isStopped = false;
  let end: ModelEnd | undefined;

  yield { type: "step", step: { kind: "answer", role: tier } };
  const source = question.streamed ? (await model.doStream(options)).stream : unary(model, options);
  try {
    for await (const part of source) {
      if (part.type === "finish") {
        end = modelEnd(part);
        break;
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
  yield { type: "step", step: { kind: "answer", role: tier, outcome: "ok" } };
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

/** Why an answer ended that the model ended: without a cap of the caller's, `length` is the model's own limit. */
function endReason(end: ModelEnd | undefined, isCapped: boolean): Finish["reason"] {
  if (end?.reason.unified === "length") return isCapped ? "length" : "cut";
  return end?.reason.unified === "stop" ? "stop" : "cut";
}

/** Ladder of a strict answer: local repair of the syntax, one more try with the validator's errors, the other tier. */
async function* strictAnswer(engine: Engine, question: Question, signal: AbortSignal): AsyncGenerator<EngineEvent> {
  const schema = question.schema ?? "";
  const validator = engine.validators.get(schema);
  const prompt = buildPrompt(question.conversation, "json_schema");
  const responseFormat = { type: "json" as const, name: "answer", schema: JSON.parse(schema) };
  const other: Tier = question.tier === "fast" ? "strong" : "fast";
  let reask: LanguageModelV4Prompt | undefined;

  for (const [kind, tier] of [
    ["answer", question.tier],
    ["reask", question.tier],
    ["escalate", other],
  ] as const) {
    // A model that ran into the caller's cap will do so again.
    if (kind === "reask" && !reask) continue;
    yield { type: "step", step: { kind, role: tier } };
    let result: ModelAnswer;
    try {
      result = await call(engine.models.tier(tier), {
        ...callOptions(question, signal, kind === "reask" && reask ? reask : prompt),
        responseFormat,
        providerOptions: { chorus: { schema } },
      });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      yield { type: "step", step: { kind, role: tier, outcome: "failed" } };
      // A tier that cannot answer has tried the other one already.
      throw upstream(error);
    }
    const verdict = judge(result, (text) => validator(clean(text, schema)));
    const outputTokens = verdict.ok ? await engine.tokenizer.countAsync(verdict.text) : 0;
    if (verdict.ok && outputTokens <= (question.maxTokens ?? DEFAULT_CEILING)) {
      yield { type: "step", step: { kind, role: tier, outcome: "ok" } };
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
    if (!verdict.ok && verdict.errors) reask = buildReask(prompt, result.text, verdict.errors);
    yield { type: "step", step: { kind, role: tier, outcome: "failed" } };
  }
  throw new Failure("structured_output_failed");
}

type Verdict = { ok: true; text: string } | { ok: false; errors?: string[] };

function judge(
  result: ModelAnswer,
  validate: (text: string) => { ok: true; text: string } | { ok: false; errors: string[] },
): Verdict {
  // What was cut off may parse by luck, but it is not what the model meant to say.
  if (result.end.reason.unified === "length") return { ok: false };
  const text = repairJson(result.text);
  return text === undefined ? { ok: false, errors: ["The answer is not one whole JSON object."] } : validate(text);
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
  const { shape, maxTokens, stops } = question;
  // JSON is wanted exact, prose as the model's maker tuned it.
  const temperature = question.temperature ?? (shape === "text" ? undefined : 0);
  return {
    prompt,
    abortSignal: signal,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    // Spares the vendor what comes after; the answer is cut here in any case, because not every model takes them.
    ...(stops.length === 0 ? {} : { stopSequences: stops }),
    ...(shape === "extract" ? { responseFormat: { type: "json" as const } } : {}),
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
}

async function call(model: LanguageModelV4, options: LanguageModelV4CallOptions): Promise<ModelAnswer> {
  const { content, ...rest } = await model.doGenerate(options);
  let text = "";
  for (const part of content) if (part.type === "text") text += part.text;
  return { text, end: modelEnd(rest) };
}

/** A unary call, in the parts of a stream. */
async function* unary(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
): AsyncGenerator<LanguageModelV4StreamPart> {
  const { content, ...rest } = await model.doGenerate(options);
  for (const part of content) if (part.type === "text") yield { type: "text-delta", id: "", delta: part.text };
  yield { type: "finish", ...rest };
}

function modelEnd(end: Pick<LanguageModelV4GenerateResult, "finishReason" | "usage" | "providerMetadata">): ModelEnd {
  const model = end.providerMetadata?.chorus?.model;
  return {
    reason: end.finishReason,
    cachedTokens: end.usage.inputTokens.cacheRead ?? 0,
    model: typeof model === "string" ? model : undefined,
  };
}

function upstream(error: unknown): unknown {
  return error instanceof UpstreamError ? new Failure("upstream_failed", { cause: error }) : error;
}
