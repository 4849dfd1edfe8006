import type { Actor } from "../../admin/shared/audit.ts";
import type { Caller } from "../../admission/authenticate.ts";
import type { Call } from "./call.ts";
import type { Identity } from "./identity.ts";
import type { Requirement } from "./methods.ts";
import type { Services } from "./services.ts";

/** Finds out who sends a call, without a promise if nothing has to be waited for. @throws Failure */
export type Authenticate = (call: Call, requirement: Requirement) => Identity | Promise<Identity>;

/**
 * Creates the function that reads keys and tokens: an API key by `X-API-Key`, or without it by `Authorization: Bearer`,
 * as foreign clients send it; a token of an owner or operator by `Authorization: Bearer`.
 * @returns a function that throws Failure unauthenticated, missing_scope or overloaded
 */
export function createAuthenticate(services: Pick<Services, "authorize" | "authorizeActor">): Authenticate {
  return (call, requirement) => {
    if (!("scope" in requirement)) return services.authorizeActor(bearerOf(call), requirement.role).then(ofActor);
    const caller = services.authorize(call.header("x-api-key") || bearerOf(call), requirement.scope);
    return caller instanceof Promise ? caller.then(ofCaller) : ofCaller(caller);
  };
}

function ofCaller(caller: Caller): Identity {
  return { caller };
}

function ofActor(actor: Actor): Identity {
  return { actor };
}

function bearerOf(call: Call): string | undefined {
  return /^bearer +(.+)$/i.exec(call.header("authorization") ?? "")?.[1];
}
