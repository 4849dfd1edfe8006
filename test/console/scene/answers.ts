import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type MessageInitShape,
  toJson,
} from "@bufbuild/protobuf";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { CapService } from "../../../gen/chorus/admin/v1/caps_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { MemberService } from "../../../gen/chorus/admin/v1/members_pb.js";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import * as account from "./account.ts";
import * as alerts from "./alerts.ts";
import { answer, failure } from "./answer.ts";
import * as people from "./people.ts";
import * as records from "./records.ts";
import * as run from "./run.ts";
import * as service from "./service.ts";
import * as subjects from "./subjects.ts";
import * as traffic from "./traffic.ts";

type Request = Record<string, unknown>;

/** What a call gets: a response, the messages of a stream, or an error, each as JSON; undefined: no answer. */
type Answer = { unary: object } | { stream: string[] } | { failure: object } | undefined;

/** Answers by the path of a method, such as `chorus.admin.v1.KeyService/ListKeys`. */
export type Answers = ReadonlyMap<string, (request: Request) => Answer>;

/** The answers of a workspace that is in use. */
export const USED: Answers = new Map([
  unary(WorkspaceService.method.getWorkspace, (request) => ({ workspace: service.workspaceOf(request.workspace) })),
  unary(WorkspaceService.method.getNextTier, () => account.nextTier),
  unary(UsageService.method.getQuotas, () => account.quotas),
  unary(UsageService.method.getUsage, subjects.usageOf),
  unary(UsageService.method.getPerformance, traffic.performance),
  unary(UsageService.method.listTopKeys, () => traffic.topKeys),
  unary(UsageService.method.listTopSubjects, () => subjects.top),
  unary(UsageService.method.listTagNames, () => ({ names: ["project", "team"] })),
  unary(CapService.method.listCaps, () => ({ caps: subjects.caps })),
  unary(KeyService.method.listKeys, () => ({ keys: records.keys })),
  unary(KeyService.method.createKey, () => records.newKey),
  unary(MemberService.method.listMembers, () => people.members),
  unary(ActivityService.method.listGenerations, () => ({ generations: records.generations, nextPageToken: "more" })),
  unary(ActivityService.method.listRunning, () => ({})),
  unary(ActivityService.method.getRun, ({ workspace = "" }) => run.runOf(workspace !== "")),
  unary(ActivityService.method.getRunText, () => run.textOfRun),
  unary(ActivityService.method.deleteRunText, () => ({ deleted: 1n })),
  unary(WorkspaceService.method.setRunText, ({ days = 0 }) => ({ workspace: { runTextDays: Number(days) } })),
  unary(ActivityService.method.listAudit, () => ({ entries: records.audit })),
  unary(AlertService.method.getAlerts, () => ({ alerts: alerts.alerts })),
  unary(AlertService.method.setAlerts, () => alerts.set),
  unary(AlertService.method.listAlertDeliveries, () => ({ deliveries: alerts.deliveries, nextPageToken: "more" })),
  unary(CreditService.method.listLedger, () => ({ entries: account.ledger, nextPageToken: "more" })),
  unary(OperationsService.method.listWorkspaceStates, () => ({
    workspaces: service.workspaces,
    totals: service.totals,
  })),
  unary(OperationsService.method.getServiceUsage, service.usageOf),
  unary(OperationsService.method.listModels, () => ({ models: service.models })),
  unary(OperationsService.method.testModel, () => service.tested),
  unary(OperationsService.method.listLearned, () => ({ on: true, abilities: service.learned })),
  unary(OperationsService.method.listReplicas, () => ({ replicas: service.replicas })),
  unary(GenerationService.method.recordOutcome, ({ id, correct }) => ({
    generationId: String(id),
    score: Number(correct ?? false),
  })),
  [pathOf(GenerationService.method.streamGenerate), () => ({ stream: answer })],
]);

/** The answers of a workspace whose requests run now. */
export const RUNNING: Answers = new Map([
  ...USED,
  unary(ActivityService.method.listRunning, () => ({ generations: run.running })),
  unary(ActivityService.method.getRun, ({ workspace = "" }) => run.runningRun(workspace !== "")),
]);

/** The answers of a workspace that was just created. */
export const NEW: Answers = new Map([
  ...USED,
  unary(WorkspaceService.method.getWorkspace, () => ({ workspace: account.newWorkspace })),
  unary(UsageService.method.getQuotas, () => account.newQuotas),
  unary(UsageService.method.getUsage, () => ({ usage: { totals: {} } })),
  unary(UsageService.method.getPerformance, () => ({ total: {} })),
  unary(UsageService.method.listTopKeys, () => ({})),
  unary(UsageService.method.listTopSubjects, () => ({})),
  unary(UsageService.method.listTagNames, () => ({})),
  unary(CapService.method.listCaps, () => ({})),
  unary(OperationsService.method.getServiceUsage, service.noUsage),
  unary(OperationsService.method.listModels, () => ({ models: service.models.slice(0, 1) })),
  unary(OperationsService.method.listReplicas, () => ({ replicas: service.replicas.slice(0, 1) })),
  unary(KeyService.method.listKeys, () => ({})),
  unary(ActivityService.method.listGenerations, () => ({})),
  unary(ActivityService.method.listAudit, () => ({})),
  unary(AlertService.method.getAlerts, () => ({})),
  unary(AlertService.method.listAlertDeliveries, () => ({})),
  unary(CreditService.method.listLedger, () => ({})),
]);

/** No call is answered, so pages show that they load. */
export const SILENT: Answers = new Map([...USED.keys()].map((path) => [path, () => undefined]));

/** Every call fails. */
export const FAILING: Answers = new Map([...USED.keys()].map((path) => [path, () => ({ failure })]));

function unary<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  response: (request: Request) => MessageInitShape<O>,
): [string, (request: Request) => Answer] {
  const { output } = method;
  return [pathOf(method), (request) => ({ unary: Object(toJson(output, create(output, response(request)))) })];
}

function pathOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}
