import type { Signal } from "../concurrency/abort.ts";
import { Failure } from "../contract/failure.ts";
import { randomHex } from "../contract/random-hex.ts";
import type { Tier } from "../contract/terms.ts";
import { UpstreamError } from "../models/failover.ts";
import { rank } from "../models/order.ts";
import type { DraftReport, End, Model, ModelCall, Piece, Pieces, Tools, WrittenCall } from "../models/port/model.ts";
import { abilityOf } from "./difficulty/difficulty.ts";
import { tierInTurn } from "./plan/crew.ts";
import { fallbackSteps, repairSteps, Steps } from "./plan/step.ts";
import { buildPrompt, buildReask } from "./prompt.ts";
import {
  type CallEvent,
  type Engine,
  type EngineEvent,
  type Finish,
  furtherCalls,
  membersFor,
  modelCall,
  outputCeiling,
  planOf,
  type Question,
} from "./question.ts";
import { strictAnswer, validObject } from "./strict.ts";
import { extractObject } from "./structured/repair.ts";
import { TextAnswer } from "./text-answer.ts";
import { type CheckedCalls, checkCalls } from "./tools/check-calls.ts";
import { tokensOfCalls } from "./tools/tokens.ts";

const FAILED =
  "No answer called the tools as their schemas and tool_choice demand. Nothing was charged; a larger max_tokens or " +
  "simpler schemas may help.";

/**
 * Answers a question whose answer may ask for tools. Text leaves as it comes. Calls leave together, at the end, when
 * all of them are checked. If they are not valid, a model is asked once more. If that does not help, the valid calls of
 * a draft count.
 * @throws Failure structured_output_failed if they are not valid then
 */
export async function* toolAnswer(
  engine: Engine,
  question: Question,
  tools: Tools,
  signal: Signal,
): AsyncGenerator<EngineEvent> {
  const steps = new Steps(question.trace);
  const prompt = buildPrompt(question.conversation, question.shape);
  const read = (text: string) => extractObject(text).structured ?? undefined;
  const plan = planOf(engine, question, steps, read);
  const signalOf = furtherCalls(question, signal);
  let drafts: readonly DraftReport[] = [];
  const asked = modelCall(question, signal, prompt);
  const call: ModelCall = {
    ...asked,
    onDrafts(reports, chosen) {
      drafts = reports;
      asked.onDrafts?.(reports, chosen);
    },
  };
  const first = yield* attempt(engine, question, signal, plan.ask(call));
  let checked = check(first, tools, engine);
  let last = first;
  if (!checked.ok && checked.errors.length > 0) {
    const again = { ...question, streamed: false, tools: { ...tools, choice: demanded(tools) } };
    const reask = buildReask(prompt, callsText(first), checked.errors, "Call the tools again.");
    const hasDraft = drafts.some(hasCalls);
    using abort = signalOf(hasDraft);
    const pieces = retry(engine, question, steps).ask(modelCall(again, abort, reask, hasDraft));
    try {
      last = yield* secondAttempt(engine, again, abort, first.text !== "" ? withoutText(pieces) : pieces);
      checked = check(last, again.tools, engine);
    } catch (error) {
      if (signal.aborted || !hasDraft) throw error;
    }
  }
  const written = last === first ? [first] : [first, last];
  // A second answer that a stop sequence or a filter has ended has no calls either.
  if (!checked.ok || (last !== first && checked.calls.length === 0)) {
    const draft = drafts.find(hasCalls);
    checked = draft ? checkCalls(draft.calls, tools, engine.validators) : checked;
    if (!draft || !checked.ok) throw new Failure("structured_output_failed", { message: FAILED });
    const { model, version, cachedTokens } = draft;
    last = { ...last, finish: { ...last.finish, model, version, cachedTokens } };
    yield* fallbackSteps(steps);
  }
  const { calls } = checked;
  if (calls.length === 0) {
    if (question.shape !== "json_schema") return yield last.finish;
    // Only a valid object is an answer, so the text is kept until it is checked.
    const isWhole = last.finish.reason === "stop";
    const valid = isWhole ? validObject(last.text, engine.validators.get(question.schema ?? "")) : undefined;
    if (!valid) return yield* strictAnswer(engine, { ...question, tools: { ...tools, choice: "none" } }, signal, steps);
    yield { type: "text", text: valid };
    return yield { ...last.finish, reason: "stop", structured: valid };
  }
  if (checked.repaired) yield* repairSteps(steps);
  const isStrict = question.shape === "json_schema";
  // Beside a JSON Schema, the text before calls does not leave.
  const textTokens = written.reduce(
    (sum, { text, finish }) => sum + (text === "" || isStrict ? 0 : finish.outputTokens),
    0,
  );
  const outputTokens = textTokens + (await tokensOfCalls(calls, engine.tokenizer));
  if (outputTokens > outputCeiling(question)) throw new Failure("structured_output_failed", { message: FAILED });
  yield* callEvents(calls);
  yield { ...last.finish, reason: "calls", outputTokens };
}

/** Whether a draft has valid calls. */
function hasCalls({ canonical, calls }: DraftReport): boolean {
  return canonical !== undefined && calls.length > 0;
}

/** What a model, or several that act as one, have answered. */
interface Attempt {
  readonly finish: Finish;
  readonly text: string;
  readonly calls: readonly WrittenCall[];
  /** Whether the text ended the answer, or a model's filter: calls after it do not count. */
  readonly isOver: boolean;
  /** Whether the answer was cut off, perhaps within a call. */
  readonly isCut: boolean;
}

/** Passes text and steps on. @returns the rest */
async function* attempt(
  engine: Engine,
  question: Question,
  signal: Signal,
  pieces: Pieces,
): AsyncGenerator<EngineEvent, Attempt> {
  const caught: Caught = { calls: [], end: undefined };
  const text = new TextAnswer(engine, question, signal, withoutCalls(pieces, caught));
  let whole = "";
  for await (const event of text) {
    if (event.type === "text") whole += event.text;
    if (event.type !== "finish") {
      if (event.type !== "text" || question.shape !== "json_schema") yield event;
      continue;
    }
    const isFiltered = event.reason === "filtered";
    const { calls, end } = caught;
    return { finish: event, text: whole, calls, isOver: text.isOver || isFiltered, isCut: end?.reason === "length" };
  }
  throw new UpstreamError([]);
}

/**
 * As `attempt`.
 * @throws Failure structured_output_failed if the request is too long with the first calls and their errors
 */
async function* secondAttempt(...of: Parameters<typeof attempt>): ReturnType<typeof attempt> {
  try {
    return yield* attempt(...of);
  } catch (error) {
    const isTooLong = error instanceof Failure && error.kind === "request_too_long";
    throw isTooLong ? new Failure("structured_output_failed", { message: FAILED, cause: error }) : error;
  }
}

interface Caught {
  calls: readonly WrittenCall[];
  end: End | undefined;
}

async function* withoutCalls(pieces: Pieces, caught: Caught): AsyncGenerator<Piece, void, undefined> {
  for await (const piece of pieces) {
    if (piece.type === "calls") caught.calls = piece.calls;
    else {
      if (piece.type === "end") caught.end = piece;
      yield piece;
    }
  }
}

async function* withoutText(pieces: Pieces): AsyncGenerator<Piece, void, undefined> {
  for await (const piece of pieces) if (piece.type !== "text") yield piece;
}

/** @returns errors for the model; none if to ask it again would not help */
function check({ calls, isOver, isCut }: Attempt, tools: Tools, { validators }: Engine): CheckedCalls {
  if (isOver) return { ok: true, calls: [], repaired: false };
  if (isCut && calls.length > 0) return { ok: false, errors: [] };
  return checkCalls(calls, tools, validators);
}

/** The model that is asked once more, of the tier of the level first. */
function retry(engine: Engine, question: Question, steps: Steps): Model {
  const { level, kind } = question;
  const tier: Tier = level === "low" ? "fast" : "strong";
  const { members } = rank(membersFor(engine, question), abilityOf(kind), engine.knowledge?.());
  return tierInTurn("reask", tier, members, steps);
}

function demanded({ choice }: Tools): Tools["choice"] {
  return typeof choice === "object" ? choice : "required";
}

/** The calls of an attempt as text, for the model that is asked again. */
function callsText({ calls }: Attempt): string {
  return calls.map(({ name, arguments: given }) => `${name}(${given})`).join("\n");
}

function* callEvents(calls: readonly WrittenCall[]): Generator<CallEvent> {
  for (const [index, call] of calls.entries()) yield { type: "call", index, id: `call_${randomHex()}`, ...call };
}
