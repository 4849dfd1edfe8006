import type { GenerateRequest, GenerateResponse } from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/authenticate.ts";
import type { Admission, Lease } from "../admission/lease.ts";
import { Turns } from "../concurrency/turns.ts";
import type { Config } from "../config/config.ts";
import { CallerGone, CutShort } from "../contract/endings.ts";
import { Failure, toFailure } from "../contract/failure.ts";
import { randomHex } from "../contract/random-hex.ts";
import { MAX_OUTPUT_TOKENS } from "../contract/terms.ts";
import type { Engine } from "../engine/answer.ts";
import type { Reader } from "../engine/attachments/reader.ts";
import type { DifficultyRater } from "../engine/difficulty/difficulty.ts";
import { createTrace } from "../engine/trace.ts";
import type { Search } from "../search/search.ts";
import { traced } from "../telemetry/tracing.ts";
import type { AdmittedRequest } from "./admitted-request.ts";
import { answerEvents, openingEvents, search } from "./answer-events.ts";
import { Cost } from "./costs.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { InFlight, Running } from "./in-flight.ts";
import { type Input, readInput } from "./input.ts";
import { chooseLevel } from "./level.ts";
import { OFFLINE } from "./notices.ts";
import { type ReadRequest, readRequest } from "./read-request.ts";
import { type GenerateEvent, type RequestContext, visibleError } from "./request-context.ts";
import { fold, replay, stepMessage } from "./response.ts";
import { Settlement } from "./settle.ts";

export interface Generation {
  /**
   * Waits for the turn of a request of the caller's workspace, and refuses one that cannot be admitted. Call it before
   * the body is read. Undefined: the request may begin now.
   * @param isRepeatable whether the request may repeat an earlier one. Its answer is free of limits, so it only waits.
   * @throws Failure; see `Standing.check`, and `overloaded` while the service drains
   */
  enter(caller: Caller, isRepeatable: boolean): Promise<void> | undefined;
  /**
   * Answers a request as a stream of events. The work starts when the first event is asked for. Leaving the iteration
   * early aborts the work and, for a stream, charges the text that was taken. The charge is durable before `done` is
   * yielded.
   * @param request a large one has been read in a worker thread; reading it here would hold the event loop
   * @throws Failure; CallerGone when `context.signal` aborted.
   */
  generate(
    request: GenerateRequest | ReadRequest,
    context: RequestContext,
    streamed: boolean,
  ): AsyncGenerator<GenerateEvent>;
  /** Answers a request with one response, made from the events of `generate`. */
  generateWhole(request: GenerateRequest | ReadRequest, context: RequestContext): Promise<GenerateResponse>;
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
  rates: Config["rates"];
}

/** @param current what a request that begins now is answered with, to its end */
export function createGeneration(current: () => GenerationParts): Generation {
  return {
    enter({ workspaceId }, isRepeatable) {
      const turn = turns.enter(workspaceId);
      if (isRepeatable) return turn;
      const { inFlight, admission } = current();
      if (inFlight.draining) throw new Failure("overloaded", { retryAfterMs: 1_000 });
      return turn ? turn.then(() => admission.precheck(workspaceId)) : admission.precheck(workspaceId);
    },
    generate: (request, context, streamed) => generate(current(), request, context, streamed),
    async generateWhole(request, context) {
      let text = "";
      for await (const event of generate(current(), request, context, false)) {
        if (event.type === "delta") text += event.text;
        else if (event.type === "done") return fold(text, event.done, context);
      }
      throw new Failure("internal");
    },
  };
}

/**
 * Pieces of work of requests that start in one turn of the event loop; each takes 0.03 to 0.3 ms. The whole process
 * shares it, because it has one event loop.
 */
const turns = new Turns<string>(8, 64);

/** The six steps of a request: check, level, input, lease, answer, settle. */
async function* generate(
  parts: GenerationParts,
  request: GenerateRequest | ReadRequest,
  context: RequestContext,
  streamed: boolean,
): AsyncGenerator<GenerateEvent> {
  const running = parts.inFlight.begin(context.signal);
  let lease: Lease | undefined;
  // With `finally`, because `using` takes 0.8 µs in V8.
  try {
    const { workspaceId } = context.caller;
    const admitted = await prepare(parts, request, context, streamed, running);
    const opened = await traced("admission", () => openLease(parts, admitted));
    if ("replay" in opened) {
      if (admitted.idempotency) yield* replay(admitted.idempotency.open(opened.replay), context);
      return;
    }
    lease = opened;
    context.facts.generationId = admitted.id;
    context.facts.admittedAt = performance.now();
    context.facts.level = admitted.choice.level;
    // The requests of a burst are admitted together.
    const toAnswer = turns.enter(workspaceId);
    if (toAnswer) await toAnswer;
    const cost = new Cost();
    const settlement = new Settlement(admitted, lease, cost, parts.engine.tokenizer);
    try {
      for (const event of openingEvents(admitted)) yield event;
      const { conversation } = admitted.input;
      const grounded = admitted.checked.webSearch ? yield* search(parts.search, admitted) : conversation;
      for await (const event of answerEvents(parts.engine, admitted, grounded, cost)) {
        if (event.type === "text") {
          yield { type: "delta", text: event.text };
          // The generator resumes only after the caller has taken the text.
          admitted.delivered += event.text;
        } else if (event.type === "finish") admitted.finish = event;
        else if (admitted.trace) yield { type: "trace", step: stepMessage(admitted.trace.add(event.step)) };
      }
      if (context.signal.aborted) throw new CallerGone();
      yield { type: "done", done: await settlement.conclude() };
    } catch (error) {
      if (error instanceof CutShort && admitted.delivered !== "") {
        yield { type: "done", done: await settlement.conclude() };
        return;
      }
      const visible = visibleError(error);
      if (!(visible instanceof CallerGone)) await settlement.settle(toFailure(visible).kind);
      throw visible;
    } finally {
      // The caller has left. An answer that the service had already cut short is free.
      if (!settlement.hasBegun)
        await settlement.settle(running.signal.reason instanceof CutShort ? "cut_short" : "caller_gone");
    }
  } finally {
    await lease?.[Symbol.asyncDispose]();
    running[Symbol.dispose]();
  }
}

/** Check, level and input: everything before the lease. @throws Failure */
async function prepare(
  parts: GenerationParts,
  request: GenerateRequest | ReadRequest,
  context: RequestContext,
  streamed: boolean,
  running: Running,
): Promise<AdmittedRequest> {
  const { engine, deadlines } = parts;
  const isRepeatable = !streamed && context.idempotencyKey !== undefined;
  const read =
    "checked" in request ? request : readRequest(request, { streamed, isRepeatable }, engine.tokenizer.count);
  const { checked } = read;
  const idempotency = isRepeatable ? readIdempotencyKey(read.digest, context) : undefined;

  const choice = chooseLevel(parts.difficulty, parts.levels, checked);
  const deadlineMs = deadlines[choice.level];
  running.limit(deadlineMs);
  const endsAt = performance.now() + deadlineMs;

  const trace = checked.trace ? createTrace() : undefined;
  const owner = context.caller.workspaceId;
  let input: Input;
  try {
    input = await traced("input", () => readInput(engine, parts.reader, read, trace, owner, running.signal));
  } catch (error) {
    throw visibleError(error);
  }
  return {
    id: `gen_${randomHex()}`,
    checked,
    context,
    streamed,
    choice,
    input,
    trace,
    idempotency,
    signal: running.signal,
    endsAt,
    notices: [...context.notices, ...(engine.models.offline ? [OFFLINE] : []), ...input.notices],
    delivered: "",
    finish: undefined,
  };
}

function openLease(
  { admission, rates }: GenerationParts,
  admitted: AdmittedRequest,
): Promise<Lease | { replay: Uint8Array }> {
  const { id, checked, context, streamed, choice, input, idempotency } = admitted;
  return admission.open({
    caller: context.caller,
    authenticatedAt: context.startedAt,
    requestId: context.requestId,
    generationId: id,
    streamed,
    shape: checked.shape,
    effort: checked.effort,
    level: choice.level,
    inputTokens: input.inputTokens,
    maxOutputTokens: checked.maxTokens ?? MAX_OUTPUT_TOKENS,
    rates,
    ...(idempotency ? { idempotency: { key: idempotency.key, body: idempotency.body } } : {}),
  });
}
