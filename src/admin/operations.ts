import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type GrantsStateSchema,
  ListModelsResponseSchema,
  ListReplicasResponseSchema,
  ListWorkspaceStatesResponseSchema,
  ModelHealth,
  type ModelStateSchema,
  type OperationsService,
  type ReplicaStateSchema,
  WorkspaceCondition,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { LimitNameSchema } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { numberOf } from "../json-names.ts";
import type { ModelReport } from "../telemetry/report.ts";
import { amountText } from "./amount.ts";
import type { Replica, ReplicaGrants } from "./replicas.ts";
import type { Admin } from "./service.ts";
import { workspaceMessage } from "./workspaces/service.ts";
import type { WorkspaceState } from "./workspaces/states.ts";

export type OperationsAdmin = Admin<typeof OperationsService>;

/** What the store knows of replicas and workspaces. */
export interface Operations {
  replicas(): Promise<Replica[]>;
  /** Sums of the grants, by replica. */
  grants(replicas: readonly string[]): Promise<ReadonlyMap<string, ReplicaGrants>>;
  workspaces(page: {
    pageSize: number;
    pageToken: string;
  }): Promise<{ states: WorkspaceState[]; nextPageToken: string | undefined }>;
}

/** Share of failed calls from which a model counts as degraded, and the fewest calls for that. */
const DEGRADED = { share: 0.2, calls: 5 };

/** Shows operators the state of models, replicas and workspaces. */
export function createOperationsAdmin(operations: Operations): OperationsAdmin {
  return {
    async listModels() {
      const reports = (await operations.replicas()).flatMap(({ report }) => report.models);
      const all = sum(reports.map(({ calls }) => calls));
      // A Map keeps the order of the catalogue.
      const byName = Map.groupBy(reports, ({ model }) => model);
      return create(ListModelsResponseSchema, { models: [...byName.values()].map((of) => modelMessage(of, all)) });
    },
    async listReplicas() {
      const replicas = await operations.replicas();
      const grants = await operations.grants(replicas.map(({ id }) => id));
      return create(ListReplicasResponseSchema, {
        replicas: replicas.map((replica) => replicaMessage(replica, grants.get(replica.id))),
      });
    },
    async listWorkspaceStates({ pageSize, pageToken }) {
      const { states, nextPageToken = "" } = await operations.workspaces({ pageSize, pageToken });
      return create(ListWorkspaceStatesResponseSchema, {
        workspaces: states.map((state) => ({
          workspace: workspaceMessage(state.workspace),
          condition: conditionOf(state),
          reachedLimits: state.reached.map((name) => numberOf(LimitNameSchema, name)),
          requests: state.requests,
          failedRequests: state.failed,
          credits: amountText(state.charged),
        })),
        nextPageToken,
      });
    },
  };
}

/** @param reports those of all replicas that have the model */
function modelMessage(reports: readonly ModelReport[], allCalls: number): MessageInitShape<typeof ModelStateSchema> {
  const of = (figure: (report: ModelReport) => number) => sum(reports.map(figure));
  const calls = of((report) => report.calls);
  const openCircuits = reports.filter(({ isOpen }) => isOpen).length;
  const failedCalls = of((report) => report.failed);
  const [p50, p95] = [median(reports.map(({ p50Ms }) => p50Ms)), median(reports.map(({ p95Ms }) => p95Ms))];
  return {
    name: reports[0]?.model ?? "",
    tier: reports[0]?.tier ?? "",
    vendor: reports[0]?.vendor ?? "",
    health: healthOf({ replicas: reports.length, openCircuits, calls, failedCalls }),
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
  };
}

function healthOf(of: { replicas: number; openCircuits: number; calls: number; failedCalls: number }): ModelHealth {
  if (of.openCircuits === of.replicas) return ModelHealth.DOWN;
  const isFailing = of.calls >= DEGRADED.calls && of.failedCalls >= DEGRADED.share * of.calls;
  if (of.openCircuits > 0 || isFailing) return ModelHealth.DEGRADED;
  return of.calls === 0 ? ModelHealth.UNUSED : ModelHealth.HEALTHY;
}

function replicaMessage(
  { id, at, report }: Replica,
  grants: ReplicaGrants | undefined,
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

function grantsMessage(grants?: ReplicaGrants): MessageInitShape<typeof GrantsStateSchema> {
  if (!grants) return { reservedCredits: "0", heldCredits: "0" };
  return {
    workspaces: grants.workspaces,
    reservedCredits: amountText(grants.reserved),
    heldCredits: amountText(grants.held),
    concurrentRequests: grants.concurrent,
    oldestAt: timestampFromDate(grants.oldestAt),
  };
}

function conditionOf({ workspace, requests, failed, reached }: WorkspaceState): WorkspaceCondition {
  const { granted, purchased, held } = workspace;
  if (granted + purchased - held <= 0n) return WorkspaceCondition.NO_CREDIT;
  if (reached.length > 0) return WorkspaceCondition.LIMIT_REACHED;
  return requests + failed === 0n ? WorkspaceCondition.UNUSED : WorkspaceCondition.OPEN;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Median of the replicas' figures; undefined without one. */
function median(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return known[Math.floor((known.length - 1) / 2)];
}
