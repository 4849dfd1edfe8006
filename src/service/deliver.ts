import { answer, type Engine } from "../engine/answer.ts";
import { searchWeb } from "../engine/grounding.ts";
import { toFailure } from "../failure.ts";
import type { Search } from "../search/search.ts";
import { tracedParts } from "../tracing.ts";
import type { AdmittedRequest } from "./admitted-request.ts";
import { searchNotices } from "./notices.ts";
import { CallerGone, CutShort, type GenerateEvent, visibleError } from "./request-context.ts";
import { stepMessage } from "./response.ts";
import type { Settlement } from "./settle.ts";

/** Parts that make the answer. */
export interface AnswerParts {
  engine: Engine;
  /** Undefined: no web search is configured. */
  search: Search | undefined;
}

/**
 * Delivers the answer to an admitted request, then settles it however it ended.
 * @throws Failure, which is not charged; CallerGone when the caller has left.
 */
export async function* deliver(
  parts: AnswerParts,
  request: AdmittedRequest,
  settlement: Settlement,
): AsyncGenerator<GenerateEvent> {
  const { context, signal } = request;
  try {
    yield* answerEvents(parts, request);
    if (context.signal.aborted) throw new CallerGone();
    yield { type: "done", done: await settlement.conclude() };
  } catch (error) {
    if (error instanceof CutShort && request.delivered !== "") {
      yield { type: "done", done: await settlement.conclude() };
      return;
    }
    const visible = visibleError(error);
    if (!(visible instanceof CallerGone)) await settlement.settle(toFailure(visible).kind);
    throw visible;
  } finally {
    // Takes effect only when the caller has left. An answer that the service had already cut short is free.
    await settlement.settle(signal.reason instanceof CutShort ? "cut_short" : "caller_gone");
  }
}

/** Yields the events before `done`. Records the delivered text and the finish in the request. */
async function* answerEvents(parts: AnswerParts, request: AdmittedRequest): AsyncGenerator<GenerateEvent> {
  const { streamed, choice, trace } = request;
  // The first text of several models can take long, so the response's headers go out at once.
  if (streamed && choice.level === "high") yield { type: "open" };
  for (const step of trace?.steps ?? []) yield { type: "trace", step: stepMessage(step) };
  for await (const event of searchAndAnswer(parts, request)) {
    if (event.type === "text") {
      yield { type: "delta", text: event.text };
      // The generator resumes only after the caller has taken the text.
      request.delivered += event.text;
    } else if (event.type === "finish") {
      request.finish = event;
    } else if (trace) {
      yield { type: "trace", step: stepMessage(trace.add(event.step)) };
    }
  }
}

async function* searchAndAnswer({ engine, search }: AnswerParts, request: AdmittedRequest) {
  const { checked, context, input, choice, signal } = request;
  let { conversation } = input;
  if (checked.webSearch) {
    const searched = yield* tracedParts("search", searchWeb(search, conversation, checked.conversation, signal));
    conversation = searched.conversation;
    request.notices.push(...searchNotices(searched));
    if (searched.outcome === "failed") context.facts.searchFailure = searched.error.message;
  }
  const { kind, difficulty } = choice.rating;
  const question = {
    ...checked,
    conversation,
    level: choice.level,
    kind,
    difficulty,
    inputTokens: input.inputTokens,
    streamed: request.streamed,
    deadlineMs: Math.max(1, request.endsAt - performance.now()),
    generation: request.id,
  };
  yield* tracedParts("plan", answer(engine, question, signal), { attributes: { "chorus.kind": kind } });
}
