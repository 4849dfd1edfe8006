import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Actor } from "../../accounts/audit.ts";
import type { Admin } from "../../service/admin.ts";
import type { Services } from "../../service/services.ts";
import { actorOf } from "../tracked-request.ts";
import type { Reporting } from "./reporting.ts";
import { REQUEST } from "./request.ts";

/** Adds the services of operators and owners. */
export function addAdmin(router: ConnectRouter, services: Services, { unary }: Reporting): void {
  function withActor<A extends object>(admin: A): { [M in keyof A]: Handler<A[M]> } {
    const handlers = Object.entries(admin).map(([name, run]) => [
      name,
      (request: never, context: HandlerContext) =>
        unary(context, async () => run(request, actorOf(context.values.get(REQUEST).identity))),
    ]);
    return Object.fromEntries(handlers);
  }
  router.service(WorkspaceService, withActor<Admin<typeof WorkspaceService>>(services.workspaces));
  router.service(CreditService, withActor<Admin<typeof CreditService>>(services.credits));
  router.service(KeyService, withActor<Admin<typeof KeyService>>(services.keys));
  router.service(UsageService, withActor<Admin<typeof UsageService>>(services.usage));
  router.service(ActivityService, withActor<Admin<typeof ActivityService>>(services.activity));
}

/** A method of an admin service that takes the actor from Connect's context. */
type Handler<F> = F extends (request: infer Request, actor: Actor) => infer Response
  ? (request: Request, context: HandlerContext) => Response
  : never;
