import type {
  GenerateRequest,
  GenerateResponse,
  StreamGenerateResponse_Done,
  StreamGenerateResponse_ToolCall,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/authenticate.ts";
import type { Admission } from "../admission/lease.ts";
import type { RateLimit } from "../admission/rate-limits.ts";
import { forEach } from "../concurrency/parts.ts";
import { Turns } from "../concurrency/turns.ts";
import type { Config } from "../config/config.ts";
import { CallerGone } from "../contract/endings.ts";
import { Failure } from "../contract/failure.ts";
import type { Engine } from "../engine/answer.ts";
import type { Reader } from "../engine/attachments/reader.ts";
import type { DifficultyRater } from "../engine/difficulty/difficulty.ts";
import type { Conversation } from "../engine/prompt.ts";
import { Trace } from "../engine/trace.ts";
import type { Delivered, Referee } from "../learning/referee.ts";
import { PER_TURN } from "../overload/bounds.ts";
import type { RunKeeper } from "../runs/keeper.ts";
import type { Search } from "../search/search.ts";
import { traced } from "../telemetry/tracing.ts";
import { deliver, engineEvents, openingEvents, search } from "./answer.ts";
import { check } from "./check.ts";
import { countTokens } from "./count-tokens.ts";
import type { InFlight } from "./in-flight.ts";
import { readInput } from "./input.ts";
import { openLease } from "./lease.ts";
import { chooseLevel } from "./level.ts";
import { lowerEffort, noteAdmission, type Progress, startProgress } from "./progress.ts";
import type { ReadRequest } from "./read-request.ts";
import { type RequestContext, type Take, visibleError } from "./request-context.ts";
import { doneMessage, fold, replay } from "./response.ts";
import { leaveRun, showRun } from "./run.ts";
import { beginText } from "./said.ts";
import { type Ending, ended, failed, settle } from "./settle.ts";

export interface Generation {
  /**
   * Waits for the turn of a request of the caller's workspace, and refuses one that cannot be admitted. Call it before
   * the body is read. Undefined: the request may begin now.
   * @param isCharged whether the request will be charged. One that may not be, because it repeats an earlier one or
   *   counts tokens only, just waits.
   * @throws Failure; see `createStanding`, and `overloaded` while the service drains
   */
  enter(caller: Caller, isCharged: boolean): Promise<void> | undefined;
  /**
   * Answers a request as a stream of events. An error of `take` aborts the work and charges the text that was taken.
   * The charge is durable before `done` is passed on.
   * @param request a large one has been read in a worker thread; reading it here would hold the event loop
   * @throws Failure; CallerGone when `context.signal` aborted.
   */
  generate(request: GenerateRequest | ReadRequest, context: RequestContext, take: Take): Promise<void>;
  /** Answers a request with one response, made from the same events. @throws Failure; CallerGone */
  generateWhole(request: GenerateRequest | ReadRequest, context: RequestContext): Promise<GenerateResponse>;
  /** The rate limits of a workspace; see `Admission.limits`. */
  limits(workspaceId: string): readonly RateLimit[] | undefined;
  /** Counts the input tokens that a request would be charged for. It is free. @throws Failure; CallerGone */
  countTokens(request: GenerateRequest | ReadRequest, context: RequestContext): Promise<number>;
}

/** What requests are answered with. A reload replaces it for later requests. */
export interface GenerationParts {
  engine: Engine;
  difficulty: DifficultyRater;
  /** Reads attached files. */
  reader: Reader;
  /** Undefined: no web search is configured. */
  search: Search | undefined;
  admission: Admission;
  inFlight: InFlight;
  deadlines: Config["deadlines"];
  levels: Config["levels"];
  /** Grades drafts that disagree; undefined: none does. */
  referee?: Referee | undefined;
  /** Shows how answers are made, and keeps how they were made; undefined: nothing does. */
  runs?: Pick<RunKeeper, "begin" | "end" | "keep" | "keepsText"> | undefined;
  rates: Config["rates"];
}

/** @param current what a request that begins now is answered with, to its end */
export function createGeneration(current: () => GenerationParts): Generation {
  return {
    enter({ workspaceId }, isCharged) {
      const turn = turns.enter(workspaceId);
      if (!isCharged) return turn;
      const { inFlight, admission, rates } = current();
      if (inFlight.draining) throw new Failure("overloaded");
      return turn ? turn.then(() => admission.precheck(workspaceId, rates)) : admission.precheck(workspaceId, rates);
    },
    generate: (request, context, take) => generate(current(), request, context, true, take),
    generateWhole(request, context) {
      let text = "";
      const calls: StreamGenerateResponse_ToolCall[] = [];
      let done: StreamGenerateResponse_Done | undefined;
      const generating = generate(current(), request, context, false, (event) => {
        if (event.type === "delta") text += event.text;
        else if (event.type === "tool_call") calls.push(event.call);
        else if (event.type === "done") done = event.done;
        return undefined;
      });
      return generating.then(() => {
        if (!done) throw new Failure("internal");
        return fold({ text, calls }, done, context);
      });
    },
    limits: (workspaceId) => current().admission.limits(workspaceId),
    countTokens: (request, context) => countTokens(current(), request, context),
  };
}

/**
 * Pieces of work of requests, of each workspace in turn. The whole process shares it, because it has one event loop.
 */
const turns = new Turns<string>(...PER_TURN.requests);

/** The six steps of a request: check, level, input, lease, answer, settle. */
async function generate(
  parts: GenerationParts,
  request: GenerateRequest | ReadRequest,
  context: RequestContext,
  streamed: boolean,
  take: Take,
): Promise<void> {
  const { engine } = parts;
  const { workspaceId } = context.caller;
  const running = parts.inFlight.begin(context.signal);
  // With `finally`, because `using` takes 0.8 µs in V8.
  try {
    const { read, subjects, idempotency } = check(request, context, streamed, engine.tokenizer.count);
    const { checked } = read;

    const trace = checked.trace || parts.runs ? new Trace() : undefined;
    const { effort, conversation } = checked;
    const choice = chooseLevel(parts.difficulty, parts.levels, { effort, conversation, trace: trace !== undefined });
    running.limit(parts.deadlines[choice.level]);

    const said = parts.runs && beginText(parts.runs, context.caller, checked);
    const reading = traced("input", () => readInput(engine, parts.reader, read, trace, workspaceId, running.signal));
    const input = reading instanceof Promise ? await reading : reading;

    const { offline } = engine.models;
    const found = { context, streamed, running, checked, subjects, idempotency, choice, trace, input, said };
    const progress = startProgress(found, offline);
    const opening = openLease(parts.admission, parts.rates, progress);
    const lease = opening instanceof Promise ? await opening : opening;
    if ("replay" in lease) {
      if (idempotency) await replay(idempotency.open(lease.replay), context, take);
      return;
    }
    if (lease.isLow) lowerEffort(progress);
    noteAdmission(progress);
    if (parts.runs) showRun(parts.runs, progress);
    let ending: Ending;
    let asked = input.conversation;
    try {
      // The requests of a burst are admitted together.
      const toAnswer = turns.enter(workspaceId);
      if (toAnswer) await toAnswer;
      for (const event of openingEvents(progress)) await take(event);
      if (checked.webSearch) asked = await search(parts.search, progress, take);
      await forEach(engineEvents(engine, progress, asked), (engineEvent) => deliver(progress, engineEvent, take));
      ending = context.signal.aborted ? failed(progress, new CallerGone()) : ended(progress);
    } catch (error) {
      ending = failed(progress, error);
    }
    const settled = await settle(progress, lease, ending, engine);
    if (parts.runs) leaveRun(parts.runs, progress);
    if ("failure" in ending) throw ending.failure;
    if (ending.outcome === "ok") parts.referee?.offer(delivered(progress, asked));
    const taken = take({ type: "done", done: doneMessage(progress, settled) });
    if (taken) await taken;
  } catch (error) {
    throw visibleError(error);
  } finally {
    parts.runs?.end(context.facts.generationId);
    running[Symbol.dispose]();
  }
}

/** What the referee needs of an answer. @param asked with the files and search results that the models got */
function delivered({ id, context, checked, choice, drafted }: Progress, asked: Conversation): Delivered {
  const { workspaceId } = context.caller;
  const { kind } = choice;
  return { workspaceId, generation: id, kind, shape: checked.shape, asked, drafted };
}
