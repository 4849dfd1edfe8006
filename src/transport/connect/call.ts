import type { IncomingMessage } from "node:http";
import type { Signal } from "../../concurrency/abort.ts";
import { Failure } from "../../contract/failure.ts";
import type { RequestContext } from "../../service/request-context.ts";
import { callerOf, contextOf, type Identity, type TrackedRequest } from "../call/tracked-request.ts";
import { type UnknownMembers, unknownNotices } from "../call/unknown-members.ts";

/** A call as the internal listener or the console follows it to its end. */
export interface Call extends TrackedRequest {
  identity: Identity;
  /** Members of the request in JSON that its message does not have. */
  unknown: UnknownMembers;
  /** Aborts when the connection closes, or when the caller's deadline passes with the Failure `timed_out`. */
  readonly signal: Signal;
  /** Returns the value of the request header with a lower-case name. */
  header(name: string): string | undefined;
}

/** Creates the state of a call that has just arrived. */
export function createCall({ headers }: IncomingMessage, requestId: string, signal: Signal): Call {
  return {
    transport: "rpc",
    method: "none",
    requestId,
    startedAt: performance.now(),
    facts: {},
    identity: {},
    unknown: { unknown: [], more: 0 },
    signal,
    header: (name) => headers[name]?.toString(),
  };
}

/** @throws Failure unauthenticated */
export function callContext(call: Call): RequestContext {
  const notices = unknownNotices(call.unknown);
  return contextOf(call, callerOf(call.identity), call.signal, call.header("idempotency-key"), notices);
}

/** Whether the call has ended because the caller's deadline has passed. */
export function isLate({ reason }: Pick<Signal, "reason">): boolean {
  return reason instanceof Failure;
}
