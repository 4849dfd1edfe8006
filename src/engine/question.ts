import assert from "node:assert/strict";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { Failure } from "../failure.ts";
import type { Catalogue } from "../models/catalogue.ts";
import { UpstreamError } from "../models/failover.ts";
import { type Level, MAX_OUTPUT_TOKENS, type Shape } from "../terms.ts";
import type { Kind } from "./difficulty/difficulty.ts";
import type { FinishPart } from "./plan/composite.ts";
import { choosePlan } from "./plan/plan.ts";
import type { Step, Steps } from "./plan/step.ts";
import type { Conversation } from "./prompt.ts";
import type { Validators } from "./structured/validate.ts";
import type { Tokenizer } from "./tokens.ts";

/** What the engine needs to answer one request. */
export interface Question {
  conversation: Conversation;
  shape: Shape;
  /** The caller's JSON Schema; only with shape `json_schema`. */
  schema: string | undefined;
  level: Level;
  kind: Kind;
  /** Probability that the strong tier does better than the fast one, 0 to 1; undefined counts as 1. */
  difficulty?: number | undefined;
  temperature: number | undefined;
  maxTokens: number | undefined;
  stops: string[];
  /** Whether the answer is streamed. */
  streamed: boolean;
  /** Tokens of the request. Models with a context window that is too small are not called. */
  inputTokens?: number | undefined;
  /** Time for the answer, in milliseconds. */
  deadlineMs: number;
  /** Identifier of the generation, to which the cost of its calls is added. */
  generation: string;
}

export interface Finish {
  type: "finish";
  /** `length`: the caller's max_tokens was reached. `cut`: the model ended the answer early for another reason. */
  reason: "stop" | "length" | "cut";
  outputTokens: number;
  cachedTokens: number;
  /** Catalogue name of the model that answered; for operators only. */
  model: string | undefined;
  /** In the two JSON shapes: the object as JSON text, or the text `null` when there is none. */
  structured?: string;
  /** Why there is no object. */
  structuredError?: string;
}

export type EngineEvent = { type: "text"; text: string } | { type: "step"; step: Step } | Finish;

export interface Engine {
  models: Catalogue;
  tokenizer: Tokenizer;
  validators: Validators;
}

/** Most tokens that the answer may have. The lease holds credit for at most `MAX_OUTPUT_TOKENS`. */
export function outputCeiling({ maxTokens = MAX_OUTPUT_TOKENS }: Question): number {
  assert(maxTokens <= MAX_OUTPUT_TOKENS, "the lease does not cover the answer");
  return maxTokens;
}

/**
 * Chooses the plan for a question.
 * @param read gives the valid JSON object in a text, as JSON text; for the two JSON shapes
 */
export function planOf(
  engine: Engine,
  question: Question,
  steps: Steps,
  read: (text: string) => string | undefined,
): LanguageModelV4 {
  const { continues, turns } = question.conversation;
  const hasImages = turns.some(({ images }) => images?.length);
  return choosePlan(engine.models, { ...question, continues, hasImages, read }, steps);
}

/** The options of every call of a plan. */
export function callOptions(
  question: Question,
  signal: AbortSignal,
  prompt: LanguageModelV4Prompt,
): LanguageModelV4CallOptions {
  const { shape, schema, maxTokens, stops, generation, deadlineMs } = question;
  // JSON is best without sampling; for prose the model's default temperature is best.
  const temperature = question.temperature ?? (shape === "text" ? undefined : 0);
  const strict = shape === "json_schema" && schema !== undefined;
  return {
    prompt,
    abortSignal: signal,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    // Saves tokens at the vendor. The engine cuts the answer in any case, because not every model supports them.
    ...(stops.length === 0 ? {} : { stopSequences: stops }),
    ...(shape === "extract" ? { responseFormat: { type: "json" as const } } : {}),
    ...(strict ? { responseFormat: { type: "json" as const, name: "answer", schema: JSON.parse(schema) } } : {}),
    // From the end time each model derives a timeout that leaves other models enough time.
    providerOptions: { chorus: { generation, endsAt: performance.now() + deadlineMs, ...(strict ? { schema } : {}) } },
  };
}

/** How a call of a model ended. */
export interface ModelEnd {
  reason: LanguageModelV4FinishReason;
  cachedTokens: number;
  /** Output tokens by the vendor's count, including reasoning; 0 where the vendor reports none. */
  writtenTokens: number;
  model: string | undefined;
}

export function modelEnd({ finishReason, usage, providerMetadata }: FinishPart): ModelEnd {
  const model = providerMetadata?.chorus?.model;
  return {
    reason: finishReason,
    cachedTokens: usage.inputTokens.cacheRead ?? 0,
    writtenTokens: usage.outputTokens.total ?? 0,
    model: typeof model === "string" ? model : undefined,
  };
}

/** Converts the error of a plan to the failure that the caller gets. */
export function toUpstreamFailure(error: unknown): unknown {
  return error instanceof UpstreamError ? new Failure("upstream_failed", { cause: error }) : error;
}
