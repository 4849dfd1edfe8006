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

export interface Question {
  conversation: Conversation;
  shape: Shape;
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

/** Most tokens that the answer may have. The lease holds credit for at most `MAX_OUTPUT_TOKENS`. */
export function outputCeiling({ maxTokens = MAX_OUTPUT_TOKENS }: Question): number {
  assert(maxTokens <= MAX_OUTPUT_TOKENS, "the lease does not cover the answer");
  return maxTokens;
}

/** The plan for a question. @param read the valid JSON object in a text, as JSON text; for the two JSON shapes */
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

/** What every model of a plan is called with. */
export function callOptions(
  question: Question,
  signal: AbortSignal,
  prompt: LanguageModelV4Prompt,
): LanguageModelV4CallOptions {
  const { shape, schema, maxTokens, stops, generation, deadlineMs } = question;
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
    // By then the answer must be there, so that a silent model leaves others some of the time.
    providerOptions: { chorus: { generation, endsAt: performance.now() + deadlineMs, ...(strict ? { schema } : {}) } },
  };
}

/** How a model ended. */
export interface ModelEnd {
  reason: LanguageModelV4FinishReason;
  cachedTokens: number;
  /** Tokens written by the vendor's count, hidden thoughts included; 0 where it tells none. */
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

/** What the caller gets to know of what a plan threw. */
export function upstream(error: unknown): unknown {
  return error instanceof UpstreamError ? new Failure("upstream_failed", { cause: error }) : error;
}
