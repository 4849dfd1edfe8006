import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { StreamGenerateResponse_ToolCallSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Parts } from "../concurrency/parts.ts";
import { answer, type Engine, type EngineEvent, type Question } from "../engine/answer.ts";
import { searchWeb } from "../engine/grounding.ts";
import type { Conversation } from "../engine/prompt.ts";
import { CACHED_FROM, lengthOfMessage, type Tools } from "../models/port/model.ts";
import { stepMessage } from "../runs/trace-message.ts";
import type { Search } from "../search/search.ts";
import { tracedParts } from "../telemetry/tracing.ts";
import { searchNotices } from "./notices.ts";
import type { Progress } from "./progress.ts";
import type { GenerateEvent, Take } from "./request-context.ts";
import { noteDrafts } from "./said.ts";

/** The events that are known before the answer begins. */
export function openingEvents({ streamed, choice, checked, trace }: Progress): GenerateEvent[] {
  const known = checked.trace && trace ? trace.steps : [];
  const steps = known.map((step): GenerateEvent => ({ type: "trace", step: stepMessage(step) }));
  // The first text of several models can take long, so the response's headers go out at once.
  return streamed && choice.level === "high" ? [{ type: "open" }, ...steps] : steps;
}

/** Searches the web. @returns the conversation with what was found @throws CallerGone */
export async function search(
  search: Search | undefined,
  { checked, context, input, running, trace, notices }: Progress,
  take: Take,
): Promise<Conversation> {
  const requester = { workspace: context.caller.workspaceId };
  const steps = searchWeb(search, input.conversation, checked.conversation, running.signal, requester);
  const found = tracedParts("search", steps);
  for (;;) {
    const next = await found.next();
    if (next.done) {
      const searched = next.value;
      notices.push(...searchNotices(searched));
      if (searched.outcome === "failed") context.facts.searchFailure = searched.error.message;
      return searched.conversation;
    }
    const step = trace?.add(next.value.step);
    if (checked.trace && step) await take({ type: "trace", step: stepMessage(step) });
  }
}

/** Asks the engine for the answer. @returns its events, one by one for `deliver` */
export function engineEvents(engine: Engine, progress: Progress, conversation: Conversation): Parts<EngineEvent> {
  const { id, checked, choice, context, input, running, streamed, cost, trace } = progress;
  const { kind, difficulty } = choice;
  const namesStop = context.namesStop === true && checked.stops.length > 0;
  const question: Question = {
    ...checked,
    conversation,
    trace: trace !== undefined,
    level: choice.level,
    kind,
    difficulty,
    inputTokens: input.inputTokens,
    namesStop,
    streamed,
    deadlineMs: Math.max(1, running.endsAt - performance.now()),
    generation: id,
    onUsed: cost.add,
    onDrafts(drafts, chosen) {
      progress.drafted = { drafts, chosen };
      if (progress.said) noteDrafts(progress.said, drafts);
    },
    requester: { workspace: context.caller.workspaceId },
    ...cacheKey(context.caller.workspaceId, conversation, checked.tools),
  };
  return tracedParts("plan", answer(engine, question, running.signal), { attributes: { "chorus.kind": kind } });
}

/** Passes an event of the engine to the caller, if it is for callers, and notes what was delivered. */
export function deliver(progress: Progress, engineEvent: EngineEvent, take: Take): Promise<void> | undefined {
  const event = callerEvent(progress, engineEvent);
  const taken = event && take(event);
  if (taken) return taken.then(() => note(progress, event));
  if (event) note(progress, event);
  return undefined;
}

function note(progress: Progress, event: GenerateEvent): void {
  if (event.type === "delta") progress.delivered += event.text;
  else if (event.type === "tool_call") progress.calls.push(event.call);
}

/** Notes an event of the engine. @returns what the caller gets of it, if anything */
function callerEvent(progress: Progress, event: EngineEvent): GenerateEvent | undefined {
  if (event.type === "text") return { type: "delta", text: event.text };
  if (event.type === "call") return { type: "tool_call", call: create(StreamGenerateResponse_ToolCallSchema, event) };
  if (event.type === "finish") progress.finish = event;
  else {
    const step = progress.trace?.add(event.step);
    if (step && progress.checked.trace) return { type: "trace", step: stepMessage(step) };
  }
  return undefined;
}

/**
 * The same key for requests of a workspace that share their tools, their instructions and the beginning of the
 * conversation, in this order, which is that of vendors' caches. `tool_choice` comes after all of them, so the steps of
 * an agent that forces only the first call keep their key.
 */
function cacheKey(
  workspaceId: string,
  { system, messages }: Conversation,
  { list: tools = [] }: Partial<Tools> = {},
): { cacheKey?: string } {
  const head = [...tools.flatMap(({ name, description, parameters }) => [name, description, parameters]), ...system];
  const length = messages.reduce((sum, message) => sum + lengthOfMessage(message), head.join("").length);
  if (length < CACHED_FROM) return {};
  const prefix = [workspaceId, ...head, messages[0]?.text.slice(0, CACHED_FROM) ?? ""].join("\n");
  return { cacheKey: hash("sha256", prefix, "hex").slice(0, 32) };
}
