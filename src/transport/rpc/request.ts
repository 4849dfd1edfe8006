import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { RequestContext } from "../../service/request-context.ts";
import { callerOf, contextOf, type Identity, type TrackedRequest } from "../tracked-request.ts";

/** An RPC request as the internal listener or the console follows it to its end. */
interface RpcRequest extends TrackedRequest {
  identity: Identity;
}

/** Creates the state of a request that has just arrived. */
export function newRpcRequest(requestId: string): RpcRequest {
  return { transport: "rpc", method: "none", requestId, startedAt: performance.now(), facts: {}, identity: {} };
}

/** Key of the request in the context that Connect passes to handlers. */
export const REQUEST = createContextKey<RpcRequest>(newRpcRequest(""));

/** @throws Failure unauthenticated */
export function requestContext({ values, signal, requestHeader }: HandlerContext): RequestContext {
  const request = values.get(REQUEST);
  const idempotencyKey = requestHeader.get("idempotency-key") ?? undefined;
  return contextOf(request, callerOf(request.identity), signal, idempotencyKey);
}
