import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import type { Actor } from "../../admin/audit.ts";
import type { Caller } from "../../admission/authenticate.ts";
import type { Signal } from "../../concurrency/abort.ts";
import { Failure } from "../../contract/failure.ts";
import type { Facts, RequestContext } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import type { RequestEnd } from "../../telemetry/telemetry.ts";
import type { BodySender } from "./body-budget.ts";
import type { Requirement } from "./methods.ts";

/** A request as a listener follows it to its end. */
export interface TrackedRequest {
  readonly transport: RequestEnd["transport"];
  method: RequestEnd["method"];
  readonly requestId: string;
  /** `performance.now()` at arrival. */
  readonly startedAt: number;
  readonly facts: Facts;
}

/** Who sends a request: a caller with an API key, or an owner or operator with a token. */
export interface Identity {
  readonly caller?: Caller;
  readonly actor?: Actor;
}

/**
 * Authenticates a request: an API key by `X-API-Key`, or without it by `Authorization: Bearer`, as foreign clients send
 * it; a token of an owner or operator by `Authorization: Bearer`.
 * @param header returns the value of the header with a lower-case name
 * @throws Failure unauthenticated, missing_scope or overloaded
 */
export async function authenticate(
  services: Pick<Services, "authorize" | "authorizeActor">,
  requirement: Requirement,
  header: (name: string) => string | undefined,
): Promise<Identity> {
  const bearer = () => /^bearer (.+)$/i.exec(header("authorization") ?? "")?.[1];
  if ("scope" in requirement)
    return { caller: await services.authorize(header("x-api-key") || bearer(), requirement.scope) };
  return { actor: await services.authorizeActor(bearer(), requirement.role) };
}

/** Notes the caller's workspace and key among the facts of the request. */
export function noteCaller({ facts }: TrackedRequest, { caller }: Identity): void {
  if (!caller) return;
  facts.workspaceId = caller.workspaceId;
  facts.keyId = caller.keyId;
}

/** Whose share of the memory for bodies a request uses. */
export function senderOf({ caller, actor }: Identity): BodySender {
  return caller ?? { admin: actor?.id ?? "" };
}

/** @throws Failure unauthenticated when no caller has been authenticated */
export function callerOf({ caller }: Identity): Caller {
  if (!caller) throw new Failure("unauthenticated");
  return caller;
}

/** @throws Failure unauthenticated when no owner or operator has been authenticated */
export function actorOf({ actor }: Identity): Actor {
  if (!actor) throw new Failure("unauthenticated");
  return actor;
}

/** Combines what a listener knows of a caller's request into the input of the service. */
export function contextOf(
  { requestId, startedAt, facts }: TrackedRequest,
  caller: Caller,
  signal: Signal,
  idempotencyKey: string | undefined,
  notices: Notice[] = [],
): RequestContext {
  const key = idempotencyKey === undefined ? {} : { idempotencyKey };
  return { requestId, caller, signal, startedAt, facts, notices, ...key };
}
