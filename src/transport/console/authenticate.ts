import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import type { Authenticate } from "../call/authenticate.ts";
import type { Call } from "../call/call.ts";
import type { Services } from "../call/services.ts";
import { requireSameOrigin } from "./origin.ts";
import { OPERATOR_COOKIE, OWNER_COOKIE, sessionSecret } from "./session.ts";

type Settings = Config["console"];

/**
 * Creates the function that authenticates calls of the pages of owners, by the session's cookie alone. A request also
 * needs an `Origin` of this address, and Connect's version header, which pages of other sites cannot send. Requests
 * from the playground count for the workspace, under the console's own key.
 */
export function authenticateOwner({ sessions }: Pick<Services, "sessions">, { proxies }: Settings): Authenticate {
  return async (call, requirement) => {
    requireOwnPage(call, proxies);
    const { caller, actor } = await sessions.authenticate(sessionSecret(call.header("cookie"), OWNER_COOKIE));
    // The console's key has every scope.
    if ("scope" in requirement) return { caller };
    if (requirement.role === "owner") return { actor };
    throw new Failure("missing_scope", { message: "Only an operator may do this; the console is for owners." });
  };
}

/** The same for the pages of operators. They have no key for requests. */
export function authenticateOperator(
  { operatorSessions }: Pick<Services, "operatorSessions">,
  { proxies }: Settings,
): Authenticate {
  return async (call, requirement) => {
    requireOwnPage(call, proxies);
    const { actor } = await operatorSessions.authenticate(sessionSecret(call.header("cookie"), OPERATOR_COOKIE));
    if ("role" in requirement) return { actor };
    throw new Failure("missing_scope", { message: "An operator has no key for requests. Sign in as an owner." });
  };
}

function requireOwnPage(call: Call, proxies: number): void {
  requireSameOrigin((name) => call.header(name), proxies);
}
