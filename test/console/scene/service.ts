import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type GetServiceUsageResponseSchema,
  type LearnedAbilitySchema,
  ModelHealth,
  type ModelStateSchema,
  type ReplicaStateSchema,
  type TestModelResponseSchema,
  WorkspaceCondition,
  type WorkspaceStateSchema,
  type WorkspaceTotalsSchema,
} from "../../../gen/chorus/admin/v1/operations_pb.js";
import { LimitName, type WorkspaceSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { newWorkspace, workspace } from "./account.ts";
import { ago, DAY, HOUR, NOW, noise } from "./clock.ts";

/** Workspaces in every state. */
export const workspaces: MessageInitShape<typeof WorkspaceStateSchema>[] = [
  {
    workspace,
    condition: WorkspaceCondition.OPEN,
    requests: 18_895n,
    failedRequests: 119n,
    credits: "51.2055",
    balance: "2496.651817",
  },
  {
    workspace: { ...newWorkspace, id: "ws_2", name: "globex", tier: "2", tierOverridden: true, granted: "12.5" },
    condition: WorkspaceCondition.LIMIT_REACHED,
    reachedLimits: [LimitName.REQUESTS_PER_DAY],
    requests: 50_000n,
    failedRequests: 12n,
    credits: "135.5",
    balance: "12.5",
  },
  {
    workspace: { ...newWorkspace, id: "ws_3", name: "initech", granted: "0" },
    condition: WorkspaceCondition.NO_CREDIT,
    requests: 812n,
    credits: "2.2",
    balance: "0",
  },
  {
    workspace: { ...newWorkspace, id: "ws_4", name: "umbrella" },
    condition: WorkspaceCondition.UNUSED,
    credits: "0",
    balance: "100",
  },
];

/** Their sums. */
export const totals: MessageInitShape<typeof WorkspaceTotalsSchema> = {
  ...{ workspaces: 4n, balance: "2609.151817", requests: 69_707n, failedRequests: 131n, credits: "188.9055" },
};

const MODELS = [
  { name: "claude-sonnet-5", share: 0.7 },
  { name: "gpt-5-mini", share: 0.25 },
  { name: "gemini-3-pro", share: 0.05 },
];

/** Use by hour; of the period before it is a tenth less. */
export function usageOf({ from }: Record<string, unknown>): MessageInitShape<typeof GetServiceUsageResponseSchema> {
  const start = Math.floor(Date.parse(String(from)) / HOUR) * HOUR;
  const factor = start < NOW - 1.5 * DAY ? 0.9 : 1;
  const figuresAt = (hour: number) => {
    const requests = Math.round(factor * (1_800 + 1_100 * Math.sin(hour / 4) + 300 * noise(hour)));
    const calls = Math.round(requests * 1.9);
    const counts = { requests: BigInt(requests), failedRequests: BigInt(Math.round(requests / 130)) };
    const of = { calls: BigInt(calls), failedCalls: BigInt(Math.round(calls / 60)) };
    return { ...counts, ...of, credits: (requests * 0.0031).toFixed(4), costUsd: calls * 0.00019 };
  };
  const points = Array.from({ length: 25 }, (_, hour) => ({
    start: timestampFromMs(start + hour * HOUR),
    figures: figuresAt(hour),
    models: MODELS.map(({ name, share }) => {
      const { calls, failedCalls, costUsd } = figuresAt(hour);
      const part = (of: bigint) => BigInt(Math.round(Number(of) * share));
      return { name, calls: part(calls), failedCalls: part(failedCalls), costUsd: costUsd * share };
    }),
  }));
  const sum = (of: (figures: (typeof points)[number]["figures"]) => number) =>
    points.reduce((total, { figures }) => total + of(figures), 0);
  const whole = (of: (figures: (typeof points)[number]["figures"]) => bigint) => BigInt(sum((one) => Number(of(one))));
  return {
    startTime: timestampFromMs(start),
    endTime: timestampFromMs(start + 25 * HOUR),
    totals: {
      requests: whole((one) => one.requests),
      failedRequests: whole((one) => one.failedRequests),
      credits: sum((one) => Number(one.credits)).toFixed(4),
      calls: whole((one) => one.calls),
      failedCalls: whole((one) => one.failedCalls),
      costUsd: sum((one) => one.costUsd),
    },
    points,
    workspaces: [
      { name: "globex", requests: 50_000n, failedRequests: 12n, credits: "135.5" },
      { name: "acme", requests: 18_895n, failedRequests: 119n, credits: "51.2055" },
      { name: "initech", requests: 812n, credits: "2.2" },
    ],
    models: [
      { name: "claude-sonnet-5", calls: 21_804n, failedCalls: 1_451n, costUsd: 11.21 },
      { name: "gpt-5-mini", calls: 64_120n, failedCalls: 320n, costUsd: 4.02 },
      { name: "gemini-3-pro", calls: 820n, failedCalls: 4n, costUsd: 0.78 },
    ],
    usdPerCredit: 0.2,
  };
}

/** The workspace with a name; the one of the owner without it. */
export function workspaceOf(name: unknown): MessageInitShape<typeof WorkspaceSchema> {
  return workspaces.find((state) => state.workspace?.name === name)?.workspace ?? workspace;
}

const model = (name: string, vendor: string, tier: string, calls: bigint, shareOfCalls: number) => ({
  name,
  vendor,
  tier,
  health: ModelHealth.HEALTHY,
  calls,
  failedCalls: calls / 200n,
  shareOfCalls,
  costUsd: Number(calls) * 0.0011,
  firstTextP50Ms: 420,
  firstTextP95Ms: 1310,
  running: 3n,
  replicas: 2,
});

/** Models of every health. */
export const models: MessageInitShape<typeof ModelStateSchema>[] = [
  { ...model("gpt-5-mini", "openai", "fast", 4120n, 0.61), servedVersion: "gpt-5-mini-2025-08-07" },
  { ...model("claude-sonnet-5", "anthropic", "strong", 1804n, 0.27), health: ModelHealth.DEGRADED, failedCalls: 451n },
  {
    ...model("gemini-3-pro", "google", "strong", 820n, 0.12),
    health: ModelHealth.DOWN,
    failedCalls: 803n,
    openCircuits: 2,
    waiting: 4n,
    servedVersion: "gemini-3.1-pro",
    unexpectedVersion: true,
  },
  { name: "local-llama", vendor: "openai", tier: "fast", health: ModelHealth.UNUSED, replicas: 2 },
  {
    ...{ name: "claude-haiku-4-5", vendor: "anthropic", tier: "fast", health: ModelHealth.DISABLED, replicas: 2 },
    disabled: { at: ago(3 * HOUR), actorId: "tok_9a01", reason: "price has doubled" },
  },
];

/** A test of a model that its vendor refuses. */
export const tested: MessageInitShape<typeof TestModelResponseSchema> = {
  durationMs: 188,
  failure: {
    at: ago(0),
    status: 401,
    code: "invalid_api_key",
    message: "Incorrect API key provided",
    needsOperator: true,
    count: 1n,
    action: "Set a valid GEMINI_API_KEY, then start again.",
  },
};

const learnedModel = (name: string, accuracy: number, wins: bigint, losses: bigint) => ({
  name,
  accuracy,
  accuracyLow: accuracy - 0.06,
  accuracyHigh: accuracy + 0.05,
  wins,
  losses,
});

/** What is learned of one ability, and one with too few graded disagreements. */
export const learned: MessageInitShape<typeof LearnedAbilitySchema>[] = [
  {
    ability: "maths",
    graded: 120n,
    enough: true,
    models: [
      learnedModel("claude-sonnet-5", 0.82, 71n, 22n),
      { ...learnedModel("gemini-3-pro", 0.74, 30n, 28n), held: true },
      learnedModel("gpt-5-mini", 0.61, 19n, 70n),
    ],
  },
  { ability: "code", graded: 4n, models: [learnedModel("claude-sonnet-5", 0.7, 3n, 1n)] },
];

const replica = (id: string, host: string, age: number) => ({
  id,
  host,
  pid: 17,
  version: "0.1.0",
  startedAt: ago(age),
  reportedAt: ago(4000),
  running: 12n,
  memoryBytes: 412_000_000n,
  loopDelayMs: 1.4,
  journal: { waiting: 0n },
  grants: {
    workspaces: 41n,
    reservedCredits: "318.442",
    heldCredits: "154.2",
    concurrentRequests: 96n,
    oldestAt: ago(2 * HOUR),
  },
});

/** A replica without trouble and one with. */
export const replicas: MessageInitShape<typeof ReplicaStateSchema>[] = [
  replica("rep_1", "chorus-7d9f-abcde", 3 * DAY),
  {
    ...replica("rep_2", "chorus-7d9f-fghij", 5 * HOUR),
    loopDelayMs: 38.2,
    journal: { waiting: 14n, damaged: 1n },
    overload: [
      { cause: "event_loop", requests: 204n },
      { cause: "memory", requests: 0n },
    ],
    grants: { reservedCredits: "0", heldCredits: "0" },
  },
];

/** The use of a service that nobody has called. */
export function noUsage({ from }: Record<string, unknown>): MessageInitShape<typeof GetServiceUsageResponseSchema> {
  const start = Math.floor(Date.parse(String(from)) / HOUR) * HOUR;
  return { startTime: timestampFromMs(start), endTime: timestampFromMs(start + 25 * HOUR), totals: {} };
}
