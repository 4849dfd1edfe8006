import type { RequestListener } from "node:http";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../failure.ts";
import type { Log } from "../../log.ts";
import type { Services } from "../../service/services.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { createRpcListener, type RpcOptions } from "../rpc/handler.ts";
import { requireSameOrigin } from "./origin.ts";
import { sessionSecret } from "./session.ts";

/**
 * Creates the listener for the console's pages: Connect alone, authenticated by the session's cookie alone. A request
 * also needs an `Origin` of this address and the header `Connect-Protocol-Version`, which pages of other sites cannot
 * send. Requests from the playground count for the workspace, under the console's own key.
 */
export function createConsoleRpc(
  services: Services,
  config: Pick<Config, "console" | "stream">,
  bodies: RpcOptions["bodies"],
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  const options: RpcOptions = {
    protocols: { grpc: false, requireVersion: true },
    bodies,
    async authenticate({ header }, requirement) {
      requireSameOrigin(header, config.console.proxies);
      const { caller, actor } = await services.sessions.authenticate(sessionSecret(header("cookie")));
      // The console's key has every scope.
      if ("scope" in requirement) return { caller };
      if (requirement.role === "owner") return { actor };
      throw new Failure("missing_scope", { message: "Only an operator may do this; the console is for owners." });
    },
  };
  return createRpcListener(options, services, config, log, telemetry);
}
