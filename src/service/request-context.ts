import type { Notice, StreamGenerateResponse_Done, TraceStep } from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../accounts/keys.ts";
import type { RequestEnd } from "../telemetry.ts";
import type { Level } from "../terms.ts";

/** What surrounds a request, whichever way it came in. */
export interface RequestContext {
  /** Identifier of the request, prefix `req_`. */
  requestId: string;
  caller: Caller;
  /** Aborts when the caller has gone. */
  signal: AbortSignal;
  /** `performance.now()` at the arrival of the request. */
  startedAt: number;
  /** Of a unary call: with the same key and request within 24 hours the caller gets the same answer, charged once. */
  idempotencyKey?: string;
  /** Notices that came up before the request reached the service. */
  notices: Notice[];
  /** The service adds to it what becomes known. */
  readonly facts: Facts;
}

/** What becomes known of a request on its way, for the log and the figures of the operator: no prompt, no answer, no secret. */
export interface Facts extends Omit<Partial<RequestEnd>, "transport" | "method" | "seconds"> {
  workspaceId?: string;
  keyId?: string;
  /** `gen_…` */
  generationId?: string;
  level?: Level;
  /** Why the web could not be searched; nothing of the query. */
  searchFailure?: string;
}

/** One event of an answer: one `open` where it may take long, any number of `delta` and `trace`, then exactly one `done`. */
export type GenerateEvent =
  | { type: "open" }
  | { type: "delta"; text: string }
  | { type: "trace"; step: TraceStep }
  | { type: "done"; done: StreamGenerateResponse_Done };

/** The caller closed the connection or stopped reading. Nobody is left to be told. */
export class CallerGone extends Error {
  override name = "CallerGone";
}

/** The service ends the work on its side; the caller keeps what was delivered, uncharged. */
export class CutShort extends Error {
  override name = "CutShort";
  readonly why: "deadline" | "drain";

  constructor(why: "deadline" | "drain") {
    super(why);
    this.why = why;
  }
}
