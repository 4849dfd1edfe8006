import {
  create,
  type DescMessage,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../gen/chorus/admin/v1/alerts_pb.js";
import { CapService } from "../../gen/chorus/admin/v1/caps_pb.js";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { MemberService } from "../../gen/chorus/admin/v1/members_pb.js";
import { OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { type AdminParts, createAdminServices } from "../../src/admin/services.ts";
import type { Admin } from "../../src/admin/shared/admin.ts";
import type { Actor } from "../../src/admin/shared/audit.ts";
import { createAuthenticator } from "../../src/admission/authenticate.ts";
import type { Pool } from "../../src/store/pool.ts";
import { OPERATOR } from "./actors.ts";

type Calls<S extends DescService> = {
  [M in keyof S["method"]]: S["method"][M] extends {
    input: infer I extends DescMessage;
    output: infer O extends DescMessage;
  }
    ? (request: MessageInitShape<I>, actor?: Actor) => Promise<MessageShape<O>>
    : never;
};

/** The same methods for requests in short form. Without an actor, an operator calls. */
function calls<S extends DescService>(service: S, admin: Admin<S>): Calls<S> {
  const functions = admin as Record<string, (request: unknown, actor: Actor) => unknown>;
  const methods = service.methods.map(({ localName, input, output }) => [
    localName,
    async (request: MessageInitShape<DescMessage>, actor: Actor = OPERATOR) =>
      create(output, (await functions[localName]?.(create(input, request), actor)) as Record<string, unknown>),
  ]);
  return Object.fromEntries(methods) as Calls<S>;
}

/**
 * The back office of a replica, without a transport, and its look-up of API keys.
 * @param options.clock milliseconds since 1970; without it, the clocks of the process and the database
 */
export function adminOf(
  pool: Pool,
  options: Partial<Pick<AdminParts, "clock" | "notifications" | "oidc" | "rates" | "runs">> = {},
) {
  const { clock, notifications } = options;
  const authenticator = createAuthenticator(pool, clock ?? Date.now, notifications);
  const services = createAdminServices({
    pool,
    rates: () => ({ input: 1, cached: 1, output: 1 }),
    ...options,
    keyCache: authenticator,
    telemetry: { requestShed: () => undefined },
    models: { all: () => [], disabledChanged: async () => {}, test: async () => undefined, learning: undefined },
    checkUrl: () => undefined,
    report: async () => undefined,
    // `testDatabase` posts what waits in the log.
    postLog: async () => undefined,
  });
  return {
    ...services,
    authenticate: async (secret: string | undefined) => authenticator.authenticate(secret),
    workspaces: calls(WorkspaceService, services.workspaces),
    credits: calls(CreditService, services.credits),
    keys: calls(KeyService, services.keys),
    caps: calls(CapService, services.caps),
    usage: calls(UsageService, services.usage),
    activity: calls(ActivityService, services.activity),
    alerts: calls(AlertService, services.alerts),
    members: calls(MemberService, services.members),
    operations: calls(OperationsService, services.operations),
  };
}

export type BackOffice = ReturnType<typeof adminOf>;
