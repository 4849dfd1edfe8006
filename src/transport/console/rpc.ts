import type { RequestListener } from "node:http";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../failure.ts";
import type { Log } from "../../log.ts";
import type { Services } from "../../service/services.ts";
import type { Telemetry } from "../../telemetry.ts";
import type { BodyBudget } from "../rest/body.ts";
import { actorNeeded } from "../rpc/admin.ts";
import { openDoor } from "../rpc/server.ts";
import { requireSameOrigin } from "./origin.ts";
import { sessionSecret } from "./routes.ts";

/**
 * The services of owners and callers for the pages of the console: Connect alone, let in by the session's cookie alone. Besides the cookie a call
 * needs an `Origin` of this address and the header `Connect-Protocol-Version`, neither of which another site's page can send.
 * Requests from the playground are those of the workspace, under the console's own key.
 */
export function createConsoleRpc(
  services: Services,
  config: Pick<Config, "console" | "stream">,
  budget: BodyBudget,
  log: Log,
  telemetry: Telemetry,
): RequestListener {
  return openDoor(
    {
      protocols: { grpc: false, grpcWeb: false, requireConnectProtocolHeader: true },
      budget,
      async admit({ service, method, requestHeader }) {
        requireSameOrigin((name) => requestHeader.get(name) ?? undefined, config.console.proxies);
        const { caller, actor } = await services.sessions.authenticate(
          sessionSecret(requestHeader.get("cookie") ?? undefined),
        );
        if (service.typeName === GenerationService.typeName) return { caller };
        if (actorNeeded(method) === "owner") return { actor };
        throw new Failure("missing_scope", { message: "Only an operator may do this; the console is for owners." });
      },
    },
    services,
    config,
    log,
    telemetry,
  );
}
