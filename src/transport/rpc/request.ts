import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { ReadRequest } from "../../service/read-request.ts";
import type { RequestContext } from "../../service/request-context.ts";
import { callerOf, contextOf, type Identity, type TrackedRequest } from "../tracked-request.ts";

/** An RPC request as the internal listener or the console follows it to its end. */
export interface RpcRequest extends TrackedRequest {
  identity: Identity;
  /** The length of the body that the request states, if any. */
  readonly contentLength?: string | undefined;
  /** The request, where a thread reads it because its body is large. */
  received?: Promise<ReadRequest>;
}

/** Creates the state of a request that has just arrived. */
export function newRpcRequest(requestId: string, contentLength?: string): RpcRequest {
  return {
    contentLength,
    transport: "rpc",
    method: "none",
    requestId,
    startedAt: performance.now(),
    facts: {},
    identity: {},
  };
}

/** Key of the request in the context that Connect passes to handlers. */
export const REQUEST = createContextKey<RpcRequest>(newRpcRequest(""));

/** @throws Failure unauthenticated */
export function requestContext({ values, signal, requestHeader }: HandlerContext): RequestContext {
  const request = values.get(REQUEST);
  const idempotencyKey = requestHeader.get("idempotency-key") ?? undefined;
  return contextOf(request, callerOf(request.identity), signal, idempotencyKey);
}
