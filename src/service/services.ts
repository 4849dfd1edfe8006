import type { MetricsRequest, MetricsResponse, QuotasResponse } from "../../gen/chorus/v1/generation_pb.js";
import type { Activity } from "../admin/activity.ts";
import { type ActivityAdmin, createActivityAdmin } from "../admin/activity-service.ts";
import type { AlertRules } from "../admin/alerts.ts";
import { type AlertAdmin, createAlertAdmin } from "../admin/alerts-service.ts";
import type { Actor } from "../admin/audit.ts";
import type { Credit } from "../admin/credits.ts";
import { type CreditAdmin, createCreditAdmin } from "../admin/credits-service.ts";
import { type Keys, requireScope } from "../admin/keys/keys.ts";
import { createKeyAdmin, type KeyAdmin } from "../admin/keys/service.ts";
import { createOperationsAdmin, type Operations, type OperationsAdmin } from "../admin/operations.ts";
import { type Shares, shared } from "../admin/shares.ts";
import type { OperatorSessions } from "../admin/sign-in/operator-sessions.ts";
import { createOperatorSignIn, type OperatorSignIn } from "../admin/sign-in/operator-sign-in.ts";
import type { Sessions } from "../admin/sign-in/sessions.ts";
import { createSignIn, type SignIn } from "../admin/sign-in/sign-in.ts";
import type { Owners } from "../admin/sign-in/tokens.ts";
import { metrics } from "../admin/usage/metrics.ts";
import { quotas } from "../admin/usage/quotas.ts";
import { createUsageAdmin, type UsageAdmin } from "../admin/usage/service.ts";
import type { Usage } from "../admin/usage/usage.ts";
import { createWorkspaceAdmin, type WorkspaceAdmin } from "../admin/workspaces/service.ts";
import type { SignInLinks } from "../admin/workspaces/sign-in-link.ts";
import type { Workspaces } from "../admin/workspaces/workspaces.ts";
import type { Caller, Scope } from "../admission/authenticate.ts";
import { createGeneration, type Generation, type GenerationParts } from "./generate.ts";
import type { InFlight } from "./in-flight.ts";
import type { Shedder } from "./shedding.ts";

/** All use cases of the service, for every transport. Every method throws Failure. */
export interface Services {
  /** Authenticates an API key, checks its scope, and refuses the request while the workspace sends too many. */
  authorize(secret: string | string[] | undefined, scope: Scope): Promise<Caller>;
  /** Authenticates an operator or owner token and checks its rights. */
  authorizeActor(token: string | undefined, needs: "operator" | "owner"): Promise<Actor>;
  readonly generation: Generation;
  quotas(caller: Caller): Promise<QuotasResponse>;
  metrics(request: MetricsRequest, caller: Caller): Promise<MetricsResponse>;
  readonly workspaces: WorkspaceAdmin;
  readonly credits: CreditAdmin;
  readonly keys: KeyAdmin;
  readonly usage: UsageAdmin;
  readonly activity: ActivityAdmin;
  readonly operations: OperationsAdmin;
  readonly alerts: AlertAdmin;
  /** Sessions of the console. */
  readonly sessions: Pick<Sessions, "authenticate" | "close">;
  readonly signIn: SignIn;
  /** Sessions of the operator's side of the console. */
  readonly operatorSessions: Pick<OperatorSessions, "authenticate" | "close">;
  readonly operatorSignIn: OperatorSignIn;
  /** True from the end of the start until the service drains, except while the database is not reachable. */
  ready(): boolean;
  /** True from the beginning of a stop. */
  draining(): boolean;
}

export interface Parts {
  /** What requests are answered with from now on. */
  generation: () => GenerationParts;
  inFlight: InFlight;
  keys: Keys;
  owners: Owners;
  links: SignInLinks;
  workspaces: Workspaces;
  credit: Credit;
  usage: Usage;
  activity: Activity;
  operations: Operations;
  alerts: AlertRules;
  sessions: Sessions;
  operatorSessions: OperatorSessions;
  /** Whether the start has ended and the database is reachable. */
  isServing(): boolean;
  shedder: Shedder;
  shares: Shares;
  /** Posts the settlements that wait in the log of a workspace; undefined: of all. */
  postLog(workspaceId: string | undefined): Promise<void>;
}

export function createServices(parts: Parts): Services {
  const { keys, owners, links, workspaces, credit, usage, activity, alerts, sessions } = parts;
  const { shedder, shares, inFlight, postLog } = parts;
  // Figures include each answer that was delivered before they are read.
  const posted: <A extends Parameters<typeof shared>[1]>(admin: A) => A = (admin) => shared(shares, admin, postLog);
  return {
    async authorize(secret, scope) {
      const caller = await keys.authenticate(typeof secret === "string" ? secret : undefined);
      requireScope(caller, scope);
      shedder.admit(caller.workspaceId);
      return caller;
    },
    authorizeActor: (token, needs) => owners.authenticate(token, needs),
    generation: createGeneration(parts.generation),
    quotas: (caller) => shares.run(caller.workspaceId, () => quotas(usage, caller)),
    metrics: (request, caller) =>
      shares.run(caller.workspaceId, async () => {
        await postLog(caller.workspaceId);
        return metrics(usage, request, caller, new Date());
      }),
    workspaces: posted(createWorkspaceAdmin(workspaces, owners, links)),
    credits: posted(createCreditAdmin(credit)),
    keys: posted(createKeyAdmin(keys)),
    usage: posted(createUsageAdmin(usage, workspaces, () => parts.generation().rates)),
    activity: posted(createActivityAdmin(activity)),
    operations: posted(createOperationsAdmin(parts.operations)),
    alerts: shared(shares, createAlertAdmin(alerts)),
    sessions,
    signIn: createSignIn(owners, sessions, shares),
    operatorSessions: parts.operatorSessions,
    operatorSignIn: createOperatorSignIn(owners, parts.operatorSessions),
    ready: () => parts.isServing() && !inFlight.draining,
    draining: () => inFlight.draining,
  };
}
