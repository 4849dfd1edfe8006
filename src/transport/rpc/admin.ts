import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Actor } from "../../accounts/audit.ts";
import { Failure } from "../../failure.ts";
import type { Admin } from "../../service/admin.ts";
import type { Services } from "../../service/services.ts";

/** The services of operators and owners, which take a token in place of an API key. */
export const ADMIN_SERVICES = [WorkspaceService, CreditService, KeyService, UsageService, ActivityService] as const;

/** What an owner may do, in the own workspace. Everything else needs an operator. */
const OWNER_METHODS: ReadonlySet<DescMethod> = new Set<DescMethod>([
  WorkspaceService.method.getWorkspace,
  WorkspaceService.method.getNextTier,
  CreditService.method.listLedger,
  CreditService.method.setSpendLimit,
  CreditService.method.clearSpendLimit,
  KeyService.method.createKey,
  KeyService.method.updateKey,
  KeyService.method.listKeys,
  KeyService.method.revokeKey,
  ...UsageService.methods,
  ...ActivityService.methods,
]);

/** Where a call carries whoever makes it. */
export const ACTOR = createContextKey<Actor | undefined>(undefined);

/** Who may make a call of an admin service: at least an owner, or only an operator. */
export function actorNeeded(method: DescMethod): "operator" | "owner" {
  return OWNER_METHODS.has(method) ? "owner" : "operator";
}

/** Finds out who makes a call of an admin service, by its token; of calls of other services it knows nothing. */
export async function actorByToken(
  services: Pick<Services, "authorizeActor">,
  { service, method, requestHeader }: HandlerContext,
): Promise<Actor | undefined> {
  if (!ADMIN_SERVICES.some(({ typeName }) => typeName === service.typeName)) return undefined;
  const token = /^bearer (.+)$/i.exec(requestHeader.get("authorization") ?? "")?.[1];
  return services.authorizeActor(token, actorNeeded(method));
}

/**
 * Serves the admin services.
 * @param guarded runs a call and turns what it throws into what the caller reads
 */
export function addAdmin(
  router: ConnectRouter,
  services: Services,
  guarded: <T>(context: HandlerContext, run: () => Promise<T>) => Promise<T>,
): void {
  function withActor<A extends object>(admin: A): { [M in keyof A]: Handler<A[M]> } {
    const handlers = Object.entries(admin).map(([name, run]) => [
      name,
      (request: never, context: HandlerContext) => guarded(context, async () => run(request, actorOf(context))),
    ]);
    return Object.fromEntries(handlers);
  }
  router.service(WorkspaceService, withActor<Admin<typeof WorkspaceService>>(services.workspaces));
  router.service(CreditService, withActor<Admin<typeof CreditService>>(services.credits));
  router.service(KeyService, withActor<Admin<typeof KeyService>>(services.keys));
  router.service(UsageService, withActor<Admin<typeof UsageService>>(services.usage));
  router.service(ActivityService, withActor<Admin<typeof ActivityService>>(services.activity));
}

/** A method of an admin service, with the actor taken out of the call. */
type Handler<F> = F extends (request: infer Request, actor: Actor) => infer Response
  ? (request: Request, context: HandlerContext) => Response
  : never;

function actorOf({ values }: HandlerContext): Actor {
  const actor = values.get(ACTOR);
  if (!actor) throw new Failure("unauthenticated");
  return actor;
}
