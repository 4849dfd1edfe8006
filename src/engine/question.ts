import assert from "node:assert/strict";
import { LinkedAbort, type Signal } from "../concurrency/abort.ts";
import type { Requester } from "../concurrency/breaker.ts";
import { Failure } from "../contract/failure.ts";
import { MAX_OUTPUT_TOKENS } from "../contract/terms.ts";
import type { Catalogue, Member } from "../models/catalogue.ts";
import { UpstreamError } from "../models/failover.ts";
import type { Knowledge } from "../models/order.ts";
import type {
  CallReport,
  Format,
  Model,
  ModelCall,
  Prompt,
  Step,
  ToolCall,
  Tools,
  WrittenCall,
} from "../models/port/model.ts";
import { eligible } from "./plan/crew.ts";
import { choosePlan, type PlanCriteria } from "./plan/plan.ts";
import type { Steps } from "./plan/step.ts";
import type { Conversation } from "./prompt.ts";
import type { Validators } from "./structured/validate.ts";
import type { Tokenizer } from "./tokens/tokens.ts";
import { canonicalCalls } from "./tools/canonical.ts";

/** What the engine needs to answer one request. */
export interface Question extends Omit<PlanCriteria, "continues" | "hasImages" | "knowledge" | "read" | "readCalls"> {
  conversation: Conversation;
  /** The request's field that has the conversation, for failures that concern its length. */
  promptField?: "prompt" | "messages";
  /** The caller's JSON Schema; only with shape `json_schema`. */
  schema: string | undefined;
  /** Absent: the answer cannot ask for any. */
  tools?: Tools | undefined;
  temperature: number | undefined;
  maxTokens: number | undefined;
  stops: string[];
  /**
   * Whether the answer must say which stop sequence has ended it. Most vendors do not, so they do not get the
   * sequences, and the engine finds them in the text.
   */
  namesStop?: boolean;
  /** Learns what each vendor call used, once it has ended. */
  onUsed?: (used: CallReport) => void;
  /** Learns what the members of a panel have answered, and which of them is the answer. */
  onDrafts?: ModelCall["onDrafts"];
  /** Absent: a request of no workspace. */
  requester?: Requester;
  /** Whether the steps are read. Default true. */
  trace?: boolean;
  /** Same text for requests whose prompts share a long prefix. */
  cacheKey?: string;
}

export interface Finish {
  type: "finish";
  /**
   * `calls`: the answer asks for tools. `length`: the caller's max_tokens was reached. `filtered`: the model's safety
   * filter ended the answer. `cut`: the model ended it early for another reason, or the service at its own ceiling.
   */
  reason: "stop" | "calls" | "length" | "cut" | "filtered";
  /** The stop sequence that the engine found, with the reason `stop`. A vendor may have stopped at one unseen. */
  stop?: string;
  outputTokens: number;
  cachedTokens: number;
  /** Catalogue name of the model that answered; for operators only. */
  model: string | undefined;
  /** What answered, as its vendor names it; undefined if it names nothing. */
  version?: string | undefined;
  /** In the two JSON shapes: the object as JSON text, or the text `null` when there is none. */
  structured?: string;
  /** Why there is no object. */
  structuredError?: string;
}

/** One of the calls that an answer asks for; `index` from 0. */
export type CallEvent = { type: "call"; index: number } & ToolCall;

export type EngineEvent = { type: "text"; text: string } | { type: "step"; step: Step } | CallEvent | Finish;

export interface Engine {
  models: Catalogue;
  tokenizer: Tokenizer;
  validators: Validators;
  /** Gives what has been learned of the models so far. Absent: nothing. */
  knowledge?: () => Knowledge;
}

/** Most tokens that the answer may have. The lease holds credit for at most `MAX_OUTPUT_TOKENS`. */
export function outputCeiling({ maxTokens = MAX_OUTPUT_TOKENS }: Question): number {
  assert(maxTokens <= MAX_OUTPUT_TOKENS, "the lease does not cover the answer");
  return maxTokens;
}

/**
 * Chooses the plan for a question.
 * @throws Failure request_too_long when the request exceeds the context window of every model; upstream_failed when all
 *   models are disabled
 * @param read gives the valid JSON object in a text, as JSON text; for the two JSON shapes
 */
export function planOf(
  engine: Engine,
  question: Question,
  steps: Steps,
  read: (text: string) => string | undefined,
): Model {
  const { inputTokens = 0, promptField = "prompt" } = question;
  const fits = ({ contextTokens = Number.POSITIVE_INFINITY }) => inputTokens <= contextTokens;
  if (!enabledMembers(engine).some(fits)) throw new Failure("request_too_long", { field: promptField });
  const { conversation, tools } = question;
  const { continues } = conversation;
  const isCallable = tools !== undefined && tools.choice !== "none";
  const readCalls = isCallable
    ? (calls: readonly WrittenCall[]) => canonicalCalls(calls, tools, engine.validators)
    : undefined;
  const hasImages = areImagesIn(conversation);
  const criteria = { ...question, continues, hasImages, read, readCalls, knowledge: engine.knowledge?.() };
  return choosePlan(engine.models, criteria, steps);
}

/** The call that every model of a plan gets. @param hasDraft see `ModelCall.hasDraft` */
export function modelCall(question: Question, signal: Signal, prompt: Prompt, hasDraft = false): ModelCall {
  const { shape, maxTokens, stops, deadlineMs, streamed, onUsed, onDrafts, requester, cacheKey, level } = question;
  const { temperature, namesStop } = question;
  const format = formatOf(question);
  const tools = toolsOf(question, prompt);
  return {
    prompt,
    signal,
    // From the end time each model derives a timeout that leaves other models enough time.
    endsAt: performance.now() + deadlineMs,
    streamed,
    reasoning: level,
    // Failover sets it in its copies. If a copy got a member that this object lacks, an answer took 7 % longer.
    isReplaceable: false,
    hasDraft,
    ...(temperature === undefined ? {} : { temperature }),
    // JSON is best without sampling; for prose the model's default temperature is best.
    ...(shape === "text" ? {} : { defaultTemperature: 0 }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    // Saves tokens at the vendor. The engine cuts the answer in any case, because not every model supports them.
    ...(stops.length === 0 || (namesStop && streamed) ? {} : { stops, ...(namesStop ? { containsStop: true } : {}) }),
    ...(format ? { format } : {}),
    ...(tools ? { tools } : {}),
    ...(onUsed ? { onUsed } : {}),
    // Calls of tools are steps towards an answer, and have no form by which outcomes are compared.
    ...(onDrafts && (!tools || tools.choice === "none") ? { onDrafts } : {}),
    ...(requester ? { requester } : {}),
    ...(cacheKey === undefined ? {} : { cacheKey }),
  };
}

/** Share of the time of a question after which a valid draft is the answer. */
const DRAFT_SHARE = 0.95;

/**
 * The time of the further calls of a question, from now on. Its signals abort with that of the request and, where a
 * valid draft can be the answer, before the deadline.
 */
export function furtherCalls({ deadlineMs }: Question, signal: Signal): (hasDraft: boolean) => LinkedAbort {
  const endsAt = performance.now() + deadlineMs * DRAFT_SHARE;
  return (hasDraft) => {
    const abort = new LinkedAbort(signal);
    if (hasDraft) abort.abortAfter(Math.max(0, endsAt - performance.now()));
    return abort;
  };
}

function formatOf({ shape, schema }: Question): Format | undefined {
  if (shape === "text") return undefined;
  return shape === "json_schema" && schema !== undefined ? { type: "schema", schema } : { type: "json" };
}

/**
 * The tools of a question. Without any, those that the conversation has called: some vendors refuse calls of tools that
 * they do not know.
 */
function toolsOf({ tools }: Question, { messages }: Prompt): Tools | undefined {
  if (tools || !messages.some(({ calls }) => calls)) return tools;
  const names = new Set(messages.flatMap(({ calls = [] }) => calls.map(({ name }) => name)));
  const list = Array.from(names, (name) => ({ name, description: "", parameters: '{"type":"object"}' }));
  return { list, choice: "none", parallel: true };
}

/**
 * The models that a request may call: at least one.
 * @throws Failure upstream_failed when all are disabled
 */
function enabledMembers({ models }: Engine): readonly Member[] {
  if (models.members.length === 0) throw allDisabled("No model");
  return models.members;
}

/** The models that may be asked again after an answer that is not valid: those that the plan could ask. */
export function membersFor(engine: Engine, { conversation, inputTokens }: Question): readonly Member[] {
  return eligible(enabledMembers(engine), { hasImages: areImagesIn(conversation), inputTokens });
}

function areImagesIn({ messages }: Conversation): boolean {
  return messages.some(({ images }) => images?.length);
}

/** The failure of a request for which only disabled models are left. @param which `No model`, with what it must do */
export function allDisabled(which: string): Failure {
  const message =
    `${which} could answer: all are disabled. Waiting does not help; the operator must enable one. Nothing was ` +
    "charged.";
  return new Failure("upstream_failed", { needsOperator: true, message });
}

const NEEDS_OPERATOR =
  "No model could answer: the vendors refuse the service's keys, accounts or model names. Waiting does not help; the " +
  "operator must correct them. Nothing was charged.";

/** Converts the error of a plan to the failure that the caller gets. */
export function toUpstreamFailure(error: unknown, { promptField = "prompt" }: Question): unknown {
  if (!(error instanceof UpstreamError)) return error;
  if (error.kind === "refused") return new Failure("content_refused", { cause: error });
  if (error.kind === "too_long") return new Failure("request_too_long", { field: promptField, cause: error });
  const { retryAfterMs } = error;
  if (retryAfterMs !== undefined) return new Failure("overloaded", { retryAfterMs, cause: error });
  const { needsOperator } = error;
  return new Failure("upstream_failed", {
    cause: error,
    needsOperator,
    ...(needsOperator ? { message: NEEDS_OPERATOR } : {}),
  });
}
