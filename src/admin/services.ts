import type { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import type { AlertService } from "../../gen/chorus/admin/v1/alerts_pb.js";
import type { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import type { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import type { OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import type { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import type { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import type {
  MetricsRequest,
  MetricsResponse,
  QuotasResponse,
  RecordOutcomeRequest,
  RecordOutcomeResponse,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Authenticator, Caller } from "../admission/authenticate.ts";
import type { Rates } from "../admission/price.ts";
import { createShares } from "../overload/shares.ts";
import type { Notifications } from "../store/notifications.ts";
import { forCallers, type Pool } from "../store/pool.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createActivityAdmin } from "./activity.ts";
import { createAlertAdmin } from "./alerts.ts";
import { createCreditAdmin } from "./credits.ts";
import { createKeyAdmin } from "./keys/service.ts";
import { createOperationsAdmin } from "./operations.ts";
import { recordOutcome } from "./outcomes.ts";
import type { Admin } from "./shared/admin.ts";
import { shared } from "./shared/run-as.ts";
import { createOperatorSessions } from "./sign-in/operator-sessions.ts";
import { createOwnerSessions, type OwnerSession } from "./sign-in/owner-sessions.ts";
import type { Session, Sessions } from "./sign-in/sessions.ts";
import { createOperatorSignIn, createOwnerSignIn, type SignIn } from "./sign-in/sign-in.ts";
import { createTokens, type Tokens } from "./sign-in/tokens.ts";
import { readMetrics } from "./usage/metrics.ts";
import { createQuotas } from "./usage/quotas.ts";
import { createUsageAdmin } from "./usage/service.ts";
import { createWorkspaceAdmin } from "./workspaces/service.ts";

/** The use cases of the back office. Every method throws Failure, `overloaded` when the database is unavailable. */
export interface AdminServices {
  /** Authenticates an operator or owner token and checks its rights. */
  readonly authorizeActor: Tokens["authenticate"];
  recordOutcome(request: RecordOutcomeRequest, caller: Caller): Promise<RecordOutcomeResponse>;
  quotas(caller: Caller): Promise<QuotasResponse>;
  metrics(request: MetricsRequest, caller: Caller): Promise<MetricsResponse>;
  readonly workspaces: Admin<typeof WorkspaceService>;
  readonly credits: Admin<typeof CreditService>;
  readonly keys: Admin<typeof KeyService>;
  readonly usage: Admin<typeof UsageService>;
  readonly activity: Admin<typeof ActivityService>;
  readonly operations: Admin<typeof OperationsService>;
  readonly alerts: Admin<typeof AlertService>;
  /** Sessions of the console. */
  readonly sessions: Pick<Sessions<OwnerSession>, "authenticate" | "close">;
  readonly signIn: SignIn<OwnerSession>;
  /** Sessions of the operator's side of the console. */
  readonly operatorSessions: Pick<Sessions<Session>, "authenticate" | "close">;
  readonly operatorSignIn: SignIn<Session>;
}

export interface AdminParts {
  /** Connections for administration. */
  readonly pool: Pool;
  /** Report changes of tokens; without them, a token in use is looked up every quarter of a second. */
  readonly notifications?: Notifications;
  /** Forgets changed keys. */
  readonly keyCache: Pick<Authenticator, "forget">;
  readonly telemetry: Pick<Telemetry, "requestShed">;
  /** Prices in force. */
  rates(): Rates;
  /** Throws Failure `invalid_request` with the field, for an address that a webhook may not have. */
  checkUrl(field: string, url: string): void;
  /** Tells the database what a workspace's requests on this replica use; see `Admission.report`. */
  report(workspaceId: string): Promise<void>;
  /** Posts the settlements that wait in the log of a workspace; undefined: of all. */
  postLog(workspaceId: string | undefined): Promise<void>;
  /** Returns milliseconds since 1970, for tests. */
  readonly clock?: () => number;
}

export function createAdminServices(parts: AdminParts): AdminServices {
  const { notifications, keyCache, telemetry, rates, checkUrl, report, postLog } = parts;
  const pool = forCallers(parts.pool);
  const clock = parts.clock ?? Date.now;
  const shares = createShares(telemetry);
  const tokens = createTokens(pool, clock, notifications);
  const sessions = createOwnerSessions(pool, clock);
  const operatorSessions = createOperatorSessions(pool, clock);
  const quotas = createQuotas(pool, report, parts.clock);
  // Figures include each answer that was delivered before they are read.
  const posted: <A extends Parameters<typeof shared>[1]>(admin: A) => A = (admin) => shared(shares, admin, postLog);
  return {
    authorizeActor: tokens.authenticate,
    recordOutcome: (request, { workspaceId }) =>
      shares.run(workspaceId, () => recordOutcome(pool, request, { workspaceId, post: postLog, clock: parts.clock })),
    quotas: (caller) => shares.run(caller.workspaceId, () => quotas(caller)),
    metrics: (request, { workspaceId }) =>
      shares.run(workspaceId, async () => {
        await postLog(workspaceId);
        return readMetrics(pool, request, { workspaceId, keyId: "" });
      }),
    workspaces: posted(createWorkspaceAdmin(pool, tokens, clock)),
    credits: posted(createCreditAdmin(pool)),
    keys: posted(createKeyAdmin(pool, keyCache, clock)),
    usage: posted(createUsageAdmin(pool, quotas, rates)),
    activity: posted(createActivityAdmin(pool)),
    operations: posted(createOperationsAdmin(pool)),
    alerts: shared(shares, createAlertAdmin(pool, checkUrl)),
    sessions,
    signIn: createOwnerSignIn(tokens, sessions, shares),
    operatorSessions,
    operatorSignIn: createOperatorSignIn(tokens, operatorSessions),
  };
}
