import type { RequestListener } from "node:http";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import type { Services } from "../../service/services.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { Requirement } from "../call/methods.ts";
import type { Identity } from "../call/tracked-request.ts";
import { createRpcListener, type RpcOptions } from "../connect/handler.ts";
import { requireSameOrigin } from "./origin.ts";
import { OPERATOR_COOKIE, OWNER_COOKIE, sessionSecret } from "./session.ts";

interface Parts {
  readonly services: Services;
  readonly config: Pick<Config, "console" | "stream">;
  readonly bodies: RpcOptions["bodies"];
  readonly log: Log;
  readonly telemetry: Telemetry;
}

/**
 * Creates the listener for the pages of owners: Connect alone, authenticated by the session's cookie alone. A request
 * also needs an `Origin` of this address and the header `Connect-Protocol-Version`, which pages of other sites cannot
 * send. Requests from the playground count for the workspace, under the console's own key.
 */
export function createOwnerRpc(parts: Parts): RequestListener {
  return createListener(parts, async (cookies, requirement) => {
    const { caller, actor } = await parts.services.sessions.authenticate(sessionSecret(cookies, OWNER_COOKIE));
    // The console's key has every scope.
    if ("scope" in requirement) return { caller };
    if (requirement.role === "owner") return { actor };
    throw new Failure("missing_scope", { message: "Only an operator may do this; the console is for owners." });
  });
}

/** Creates the listener for the pages of operators, with the same protection. They have no key for requests. */
export function createOperatorRpc(parts: Parts): RequestListener {
  return createListener(parts, async (cookies, requirement) => {
    const { actor } = await parts.services.operatorSessions.authenticate(sessionSecret(cookies, OPERATOR_COOKIE));
    if ("role" in requirement) return { actor };
    throw new Failure("missing_scope", { message: "An operator has no key for requests. Sign in as an owner." });
  });
}

/** @param identify finds the session of the header `Cookie` */
function createListener(
  { services, config, bodies, log, telemetry }: Parts,
  identify: (cookies: string | undefined, requirement: Requirement) => Promise<Identity>,
): RequestListener {
  const options: RpcOptions = {
    protocols: { grpc: false, requireVersion: true },
    bodies,
    async authenticate({ header }, requirement) {
      requireSameOrigin(header, config.console.proxies);
      return identify(header("cookie"), requirement);
    },
  };
  return createRpcListener(options, services, config, log, telemetry);
}
