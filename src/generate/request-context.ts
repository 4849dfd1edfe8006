import type {
  Notice,
  StreamGenerateResponse_Done,
  StreamGenerateResponse_ToolCall,
  TraceStep,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/authenticate.ts";
import type { Signal } from "../concurrency/abort.ts";
import { CutShort } from "../contract/endings.ts";
import { Failure } from "../contract/failure.ts";
import type { Level, Outcome } from "../contract/terms.ts";
import type { SubjectHeaders } from "./subjects.ts";

/** What the transports tell the service about a request, over REST and RPC alike. */
export interface RequestContext {
  /** Identifier of the request, prefix `req_`. */
  requestId: string;
  caller: Caller;
  /** Aborts when the caller has closed the connection or stopped reading. */
  signal: Signal;
  /** `performance.now()` at the arrival of the request. */
  startedAt: number;
  /** For unary requests: the same key and request within 24 hours get the same answer, charged once. */
  idempotencyKey?: string;
  /** Whether the request came in the format of another API; see `ReadOptions`. */
  isForeign?: boolean;
  /** Whether the answer must say which stop sequence has ended it. */
  namesStop?: boolean;
  /** For whom the request is made, where its body does not say it. */
  subjects: SubjectHeaders;
  /** Notices of the transport, such as unknown fields. */
  notices: Notice[];
  /** The service adds to it while it handles the request. */
  readonly facts: Facts;
}

/**
 * What the log and the operator's metrics report about a request. Each member is set when it is known: the caller's by
 * the transport, the others by the steps. Never contains a prompt, an answer or a secret.
 */
export interface Facts {
  workspaceId?: string;
  keyId?: string;
  /** Prefix `gen_`; set with a lease. */
  generationId?: string;
  /** When the request was admitted, by `performance.now()`. */
  admittedAt?: number;
  /** Input tokens of the admitted request. */
  admittedTokens?: number;
  level?: Level;
  /** Names of the tags. */
  tags?: readonly string[];
  /** Why the web search failed, without the query. */
  searchFailure?: string;
  /** How the request was settled, and what follows from it. */
  outcome?: Outcome;
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
  credits?: number;
}

/**
 * One event of an answer: at the level `high` one `open`, then any number of `delta` and `trace`, then one `tool_call`
 * for each call, then exactly one `done`.
 */
export type GenerateEvent =
  | { type: "open" }
  | { type: "delta"; text: string }
  | { type: "trace"; step: TraceStep }
  | { type: "tool_call"; call: StreamGenerateResponse_ToolCall }
  | { type: "done"; done: StreamGenerateResponse_Done };

/**
 * Takes the next event of an answer.
 * @returns undefined, or a promise that resolves when the caller has taken the event and reads on
 * @throws CallerGone
 */
export type Take = (event: GenerateEvent) => Promise<void> | undefined;

/**
 * Replaces CutShort by the failure that the caller sees when no text was delivered. Returns any other error unchanged.
 */
export function visibleError(error: unknown): unknown {
  if (!(error instanceof CutShort)) return error;
  return error.why === "deadline" ? new Failure("timed_out") : new Failure("overloaded");
}
