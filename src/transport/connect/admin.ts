import type { DescService, Message } from "@bufbuild/protobuf";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Admin } from "../../admin/admin.ts";
import type { Actor } from "../../admin/audit.ts";
import type { Services } from "../../service/services.ts";
import { actorOf } from "../call/tracked-request.ts";
import type { Call } from "./call.ts";
import { type Handlers, type Method, methodsOf } from "./method.ts";

/** The methods of the services of operators and owners, by their paths. */
export function adminMethods(services: Services): Array<[string, Method]> {
  return [
    ...withActor<typeof WorkspaceService>(WorkspaceService, services.workspaces),
    ...withActor<typeof CreditService>(CreditService, services.credits),
    ...withActor<typeof KeyService>(KeyService, services.keys),
    ...withActor<typeof UsageService>(UsageService, services.usage),
    ...withActor<typeof ActivityService>(ActivityService, services.activity),
    ...withActor<typeof OperationsService>(OperationsService, services.operations),
    ...withActor<typeof AlertService>(AlertService, services.alerts),
  ];
}

function withActor<S extends DescService>(service: S, admin: Admin<S>): Array<[string, Method]> {
  const functions = admin as Record<string, (request: Message, actor: Actor) => Promise<Message>>;
  const handlers = service.methods.map(({ localName }) => [
    localName,
    async (request: Message, { identity }: Call) => functions[localName]?.(request, actorOf(identity)),
  ]);
  return methodsOf(service, Object.fromEntries(handlers) as Handlers<S>);
}
