import type {
  GetGenerationRequest,
  MetricsRequest,
  QuotasRequest,
  RecordOutcomeRequest,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Authenticator, Caller } from "../admission/authenticate.ts";
import type { Rates } from "../admission/price.ts";
import type { OidcConfig } from "../config/oidc.ts";
import type { Clock } from "../contract/clock.ts";
import { Failure } from "../contract/failure.ts";
import { checkUser, MEMBER_TAG } from "../contract/subjects.ts";
import { createShares } from "../overload/shares.ts";
import { TextKeys } from "../runs/text-keys.ts";
import type { Notifications } from "../store/notifications.ts";
import { forCallers, type Pool } from "../store/pool.ts";
import type { Log } from "../telemetry/log.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { afterOthers, createActivityAdmin } from "./activity.ts";
import { createAlertAdmin } from "./alerts.ts";
import { createCapAdmin } from "./caps.ts";
import { createCreditAdmin } from "./credits.ts";
import { createKeyAdmin } from "./keys/service.ts";
import type { ModelsInUse } from "./models.ts";
import { createOperationsAdmin } from "./operations.ts";
import { recordOutcome } from "./outcomes.ts";
import { createPeople } from "./people/people.ts";
import { createMemberAdmin } from "./people/service.ts";
import { findWithRun, getGeneration, type Runs } from "./runs.ts";
import { runAs, shared } from "./shared/run-as.ts";
import { createOperatorSessions } from "./sign-in/operator-sessions.ts";
import { createOwnerSessions } from "./sign-in/owner-sessions.ts";
import { createOperatorSignIn, createOwnerSignIn } from "./sign-in/sign-in.ts";
import { createTokens } from "./sign-in/tokens.ts";
import { readMetrics } from "./usage/metrics.ts";
import { createQuotas } from "./usage/quotas.ts";
import { createUsageAdmin } from "./usage/service.ts";
import { createWorkspaceAdmin } from "./workspaces/service.ts";

/** The use cases of the back office. Every method throws Failure, `overloaded` when the database is unavailable. */
export type AdminServices = ReturnType<typeof createAdminServices>;

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
  readonly models: ModelsInUse;
  /** What a credit is sold for, in USD; undefined: it is not known. */
  readonly usdPerCredit?: number | undefined;
  /** Tells the database what a workspace's requests on this replica use; see `Admission.report`. */
  report(workspaceId: string): Promise<void>;
  /** Posts the settlements that wait in the log of a workspace; undefined: of all. */
  postLog(workspaceId: string | undefined): Promise<void>;
  /** Undefined: none are kept. */
  readonly runs?: Runs | undefined;
  readonly clock?: Clock;
  /** The provider through which people sign in, and the log for its failures; undefined: there is none. */
  readonly oidc?: { readonly config: OidcConfig; readonly log: Log } | undefined;
}

const NO_RUNS: Runs = {
  flush: async () => undefined,
  hasOthers: async () => false,
  running: { list: async () => [], find: async () => undefined },
  textKeys: new TextKeys([]),
};

export function createAdminServices(parts: AdminParts) {
  const { notifications, keyCache, telemetry, rates, checkUrl, report, postLog } = parts;
  const pool = forCallers(parts.pool);
  const clock = parts.clock ?? Date.now;
  const shares = createShares(telemetry);
  const tokens = createTokens(pool, clock, notifications);
  const sessions = createOwnerSessions(pool, clock);
  const operatorSessions = createOperatorSessions(pool, clock);
  const quotas = createQuotas(pool, report, parts.clock);
  const runParts = { pool, runs: parts.runs ?? NO_RUNS, post: postLog };
  // Figures include each answer that was delivered before they are read.
  const posted: <A extends Parameters<typeof shared>[1]>(admin: A) => A = (admin) => shared(shares, admin, postLog);
  return {
    /** Authenticates an operator or owner token and checks its rights. */
    authorizeActor: tokens.authenticate,
    recordOutcome: (request: RecordOutcomeRequest, { workspaceId }: Caller) =>
      shares.run(workspaceId, () => recordOutcome(pool, request, { workspaceId, post: postLog, clock: parts.clock })),
    async getGeneration(request: GetGenerationRequest, caller: Caller) {
      const run = <T>(work: () => Promise<T>) => shares.run(caller.workspaceId, work);
      const find = async () => {
        await postLog(caller.workspaceId);
        return getGeneration(runParts, request, caller);
      };
      return findWithRun(
        () => run(find),
        ({ intelligenceTrace, createdAt: began, latencyMs }) => ({ intelligenceTrace, began, latencyMs }),
        () => run(runParts.runs.hasOthers),
      );
    },
    quotas: (caller: Caller, { user }: Pick<QuotasRequest, "user"> = { user: "" }) =>
      shares.run(caller.workspaceId, () => {
        if (user !== "") checkQuotaUser(user, caller);
        const tags = Object.entries(caller.fixedTags ?? {}).map(([name, value]) => `tag:${name}=${value}`);
        return quotas(caller, [`key:${caller.keyId}`, ...tags, ...(user === "" ? [] : [`user:${user}`])]);
      }),
    metrics: (request: MetricsRequest, { workspaceId }: Caller) =>
      shares.run(workspaceId, async () => {
        await postLog(workspaceId);
        return readMetrics(pool, request, { workspaceId, keyId: "" });
      }),
    workspaces: posted(createWorkspaceAdmin(pool, tokens, clock, runParts.runs.textKeys.areSet)),
    credits: posted(createCreditAdmin(pool)),
    caps: posted(createCapAdmin(pool, parts.clock)),
    keys: posted(createKeyAdmin(pool, keyCache, clock)),
    usage: posted(createUsageAdmin(pool, quotas, rates)),
    activity: afterOthers(posted(createActivityAdmin(runParts)), (actor) =>
      runAs(shares, actor, runParts.runs.hasOthers),
    ),
    operations: posted(createOperationsAdmin(pool, parts.models, parts)),
    alerts: shared(shares, createAlertAdmin(pool, checkUrl)),
    members: shared(shares, createMemberAdmin({ pool, cache: keyCache, hasProvider: parts.oidc !== undefined, clock })),
    /** Signs people in; undefined: no provider is configured. */
    people: parts.oidc && createPeople({ pool, clock, shares, ...parts.oidc }),
    /** Sessions of the console. */
    sessions,
    signIn: createOwnerSignIn(tokens, sessions, shares),
    /** Sessions of the operator's side of the console. */
    operatorSessions,
    operatorSignIn: createOperatorSignIn(tokens, operatorSessions),
  };
}

/** @throws Failure `invalid_request`, or `missing_scope` for a developer, who sees no quotas of others */
function checkQuotaUser(user: string, { fixedTags }: Caller): void {
  checkUser("user", user);
  if (fixedTags?.[MEMBER_TAG] === undefined) return;
  const message = "The quotas of a user need the role owner, billing or viewer in the workspace. Leave user out.";
  throw new Failure("missing_scope", { message });
}
