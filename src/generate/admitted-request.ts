import type { Notice } from "../../gen/chorus/v1/generation_pb.js";
import type { Signal } from "../concurrency/abort.ts";
import type { Finish } from "../engine/answer.ts";
import type { Trace } from "../engine/trace.ts";
import type { Idempotency } from "./idempotency.ts";
import type { Input } from "./input.ts";
import type { Choice } from "./level.ts";
import type { RequestContext } from "./request-context.ts";
import type { CheckedRequest } from "./validate-request.ts";

/** A request that holds a lease, and the progress of its answer. */
export interface AdmittedRequest {
  /** Identifier of the generation, prefix `gen_`. */
  readonly id: string;
  readonly checked: CheckedRequest;
  readonly context: RequestContext;
  readonly streamed: boolean;
  readonly choice: Choice;
  readonly input: Input;
  /** Undefined unless the caller asked for the Intelligence Trace. */
  readonly trace: Trace | undefined;
  /** Undefined for a stream, and for a request without an idempotency key. */
  readonly idempotency: Idempotency | undefined;
  /** Aborts with CallerGone or CutShort as its reason. */
  readonly signal: Signal;
  /** `performance.now()` at which the answer must have ended. */
  readonly endsAt: number;
  /** Notices for the caller; the answer may add some. */
  readonly notices: Notice[];
  /** Text that the caller has taken. */
  delivered: string;
  /** Undefined until the engine has ended the answer. */
  finish: Finish | undefined;
}
