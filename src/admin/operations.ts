import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type DisabledModelSchema,
  type GrantsStateSchema,
  ModelHealth,
  type ModelStateSchema,
  type OperationsService,
  type ReplicaStateSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import type { Rates } from "../admission/price.ts";
import type { Pool } from "../store/pool.ts";
import type { ModelReport } from "../telemetry/report.ts";
import { listLearned, resetLearned } from "./learned.ts";
import { disableModel, enableModel, failureMessage, type ModelsInUse, readDisabled, testModel } from "./models.ts";
import { type Replica, readReplicas } from "./replicas.ts";
import { getServiceUsage } from "./service-usage.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText } from "./shared/amount.ts";
import { listWorkspaceStates } from "./workspace-states.ts";

type OperationsAdmin = Admin<typeof OperationsService>;

/** Share of failed calls from which a model counts as degraded, and the fewest calls for that if some were answered. */
const DEGRADED = { share: 0.2, calls: 5 };

interface Prices {
  /** What a credit is sold for, in USD; undefined: it is not known. */
  readonly usdPerCredit?: number | undefined;
  /** Prices of tokens in force. */
  rates(): Rates;
}

/** Shows operators the use of the service, and the state of models, replicas and workspaces. */
export function createOperationsAdmin(
  pool: Pool,
  models: ModelsInUse,
  { usdPerCredit, rates }: Prices,
): OperationsAdmin {
  return {
    getServiceUsage: getServiceUsage(pool, usdPerCredit),
    async listModels() {
      const reports = (await readReplicas(pool)).flatMap(({ report }) => report.models);
      const disabled = await readDisabled(pool);
      const all = sum(reports.map(({ calls }) => calls));
      // A Map keeps the order of the catalogue.
      const byName = Map.groupBy(reports, ({ model }) => model);
      return {
        models: Array.from(byName, ([name, of]) => modelMessage(of, all, disabled.get(name))),
      };
    },
    disableModel: disableModel(pool, models),
    enableModel: enableModel(pool, models),
    testModel: testModel(pool, models),
    listLearned: listLearned(pool, models),
    resetLearned: resetLearned(pool, models),
    listReplicas: listReplicas(pool),
    listWorkspaceStates: listWorkspaceStates(pool, rates),
  };
}

/** @param reports those of all replicas that have the model */
function modelMessage(
  reports: readonly ModelReport[],
  allCalls: number,
  disabled: MessageInitShape<typeof DisabledModelSchema> | undefined,
): MessageInitShape<typeof ModelStateSchema> {
  const of = (figure: (report: ModelReport) => number) => sum(reports.map(figure));
  const calls = of((report) => report.calls);
  const served = reports.find(({ isUnexpected }) => isUnexpected) ?? reports.find(({ version }) => version);
  const failures = reports.flatMap(({ failure }) => failure ?? []);
  const refusals = failures.filter(({ needsOperator }) => needsOperator).length;
  const last = failures.toSorted((a, b) => b.at - a.at)[0];
  const openCircuits = reports.filter(({ isOpen }) => isOpen).length;
  const failedCalls = of((report) => report.failed);
  const [p50, p95] = [median(reports.map(({ p50Ms }) => p50Ms)), median(reports.map(({ p95Ms }) => p95Ms))];
  return {
    name: reports[0]?.model ?? "",
    tier: reports[0]?.tier ?? "",
    vendor: reports[0]?.vendor ?? "",
    api: reports.find(({ api }) => api)?.api ?? "",
    health: disabled
      ? ModelHealth.DISABLED
      : healthOf({ replicas: reports.length, out: Math.max(openCircuits, refusals), calls, failedCalls }),
    ...(disabled ? { disabled } : {}),
    calls: BigInt(calls),
    failedCalls: BigInt(failedCalls),
    refusedCalls: BigInt(of((report) => report.refused)),
    shareOfCalls: allCalls === 0 ? 0 : calls / allCalls,
    costUsd: of((report) => report.usd),
    ...(p50 === undefined ? {} : { firstTextP50Ms: Math.round(p50) }),
    ...(p95 === undefined ? {} : { firstTextP95Ms: Math.round(p95) }),
    running: BigInt(of((report) => report.running)),
    waiting: BigInt(of((report) => report.waiting)),
    openCircuits,
    replicas: reports.length,
    servedVersion: served?.version ?? "",
    unexpectedVersion: served?.isUnexpected ?? false,
    ...(last ? { lastFailure: failureMessage(last, sum(failures.map(({ count }) => count))) } : {}),
  };
}

/** @param of.out replicas that do not call the model, or get refusals that only the operator can mend */
function healthOf(of: Record<"replicas" | "out" | "calls" | "failedCalls", number>): ModelHealth {
  if (of.out === of.replicas) return ModelHealth.DOWN;
  const { calls, failedCalls } = of;
  const isFailing = calls >= DEGRADED.calls && failedCalls >= DEGRADED.share * calls;
  if (of.out > 0 || isFailing || (calls > 0 && failedCalls === calls)) return ModelHealth.DEGRADED;
  return calls === 0 ? ModelHealth.UNUSED : ModelHealth.HEALTHY;
}

/** Sums of the grants of a replica (docs/decisions/grants.md). Credit is in millionths. */
interface GrantsRow {
  replica: string;
  workspaces: bigint;
  reserved: bigint;
  /** The part of `reserved` that running requests hold. */
  held: bigint;
  /** Requests that may run at a time. */
  concurrent: bigint;
  /** When the oldest grant was opened. */
  oldestAt: Date;
}

function listReplicas(pool: Pool): OperationsAdmin["listReplicas"] {
  return async () => {
    const replicas = await readReplicas(pool);
    const rows = await pool.query<GrantsRow>(
      `select replica, count(*) as workspaces, sum(credit_micro)::bigint as reserved, sum(held_micro)::bigint as held,
         sum(running)::bigint as concurrent, min(opened_at) as "oldestAt"
       from grants where replica = any ($1) group by replica`,
      [replicas.map(({ id }) => id)],
    );
    const grants = new Map(rows.map((row) => [row.replica, row]));
    return {
      replicas: replicas.map((replica) => replicaMessage(replica, grants.get(replica.id))),
    };
  };
}

function replicaMessage(
  { id, at, report }: Replica,
  grants: GrantsRow | undefined,
): MessageInitShape<typeof ReplicaStateSchema> {
  const { host, pid, version, startedAt, running, memoryBytes, loopDelayMs, journal, shed } = report;
  return {
    id,
    host,
    pid,
    version,
    startedAt: timestampFromDate(new Date(startedAt)),
    reportedAt: timestampFromDate(at),
    running: BigInt(running),
    memoryBytes: BigInt(memoryBytes),
    loopDelayMs,
    journal: {
      waiting: BigInt(journal.waiting),
      damaged: BigInt(journal.damaged),
      refused: BigInt(journal.refused),
      failures: BigInt(journal.failures),
    },
    overload: Object.entries(shed).map(([cause, requests]) => ({ cause, requests: BigInt(requests) })),
    grants: grantsMessage(grants),
  };
}

function grantsMessage(grants?: GrantsRow): MessageInitShape<typeof GrantsStateSchema> {
  if (!grants) return { reservedCredits: "0", heldCredits: "0" };
  return {
    workspaces: grants.workspaces,
    reservedCredits: amountText(grants.reserved),
    heldCredits: amountText(grants.held),
    concurrentRequests: grants.concurrent,
    oldestAt: timestampFromDate(grants.oldestAt),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Median of the replicas' figures; undefined without one. */
function median(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return known[Math.floor((known.length - 1) / 2)];
}
