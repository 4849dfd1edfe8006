import type { Notice, StreamGenerateResponse_ToolCall } from "../../gen/chorus/v1/generation_pb.js";
import { newGenerationId } from "../contract/generation-id.ts";
import type { Subjects } from "../contract/subjects.ts";
import type { Finish } from "../engine/answer.ts";
import type { Trace } from "../engine/trace.ts";
import type { Drafted } from "../outcomes/drafts.ts";
import { Cost } from "./costs.ts";
import type { Idempotency } from "./idempotency.ts";
import type { Running } from "./in-flight.ts";
import type { Input } from "./input.ts";
import type { Choice } from "./level.ts";
import { EFFORT_LOWERED, OFFLINE } from "./notices.ts";
import type { RequestContext } from "./request-context.ts";
import type { Said } from "./said.ts";
import type { CheckedRequest } from "./validate-request.ts";

/** What the steps before the lease have found out about a request. */
interface Found {
  readonly context: RequestContext;
  readonly streamed: boolean;
  readonly running: Running;
  readonly checked: CheckedRequest;
  readonly subjects: Subjects;
  /** Undefined for a stream, and for a request without an idempotency key. */
  readonly idempotency: Idempotency | undefined;
  readonly choice: Choice;
  /** Undefined unless the caller asked for the Intelligence Trace, or runs are kept. */
  readonly trace: Trace | undefined;
  readonly input: Input;
  /** Undefined: no text of the request is kept. */
  readonly said: Said | undefined;
}

/**
 * What is known about a request on its way: what the steps before the lease have found out, and what the answer adds.
 * The part that the report shows is `context.facts`.
 */
export interface Progress extends Found {
  /** As the lease allows it. */
  choice: Choice;
  /** Identifier of the generation, prefix `gen_`. */
  readonly id: string;
  /** Notices for the caller; the answer may add some. */
  readonly notices: Notice[];
  /** Text that the caller has taken. */
  delivered: string;
  /** Calls of tools that the caller has taken. */
  readonly calls: StreamGenerateResponse_ToolCall[];
  /** Undefined until the engine has ended the answer. */
  finish: Finish | undefined;
  /** What the calls of models used. */
  readonly cost: Cost;
  /** The drafts of the last panel; undefined without one. */
  drafted: Drafted | undefined;
}

/** @param isOffline whether no model of a vendor can answer */
export function startProgress(found: Found, isOffline: boolean): Progress {
  const { context, checked } = found;
  const notices = [...context.notices, ...checked.notices, ...(isOffline ? [OFFLINE] : []), ...found.input.notices];
  return {
    ...found,
    id: newGenerationId(),
    notices,
    delivered: "",
    calls: [],
    finish: undefined,
    cost: new Cost(found.trace !== undefined),
    drafted: undefined,
  };
}

/** Lowers the effort of a request to what its caps allow. */
export function lowerEffort(progress: Progress): void {
  const { choice, trace, notices } = progress;
  const reasons = trace ? [...choice.reasons, "a budget is used up"] : [];
  progress.choice = { ...choice, level: "low", difficulty: undefined, reasons };
  notices.push(EFFORT_LOWERED);
}

/** Notes for the report that a request was admitted. */
export function noteAdmission({ id, context: { facts }, input, choice, subjects }: Progress): void {
  facts.generationId = id;
  facts.admittedAt = performance.now();
  facts.admittedTokens = input.inputTokens;
  facts.level = choice.level;
  if (subjects.tags) facts.tags = Object.keys(subjects.tags);
}
