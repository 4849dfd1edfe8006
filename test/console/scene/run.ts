import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CallOutcome,
  Outcome,
  type RunCallSchema,
  type RunSchema,
  RunTextState,
} from "../../../gen/chorus/admin/v1/activity_pb.js";
import {
  Effort,
  FinishReason,
  Role,
  type RunTextSchema,
  StepKind,
  StepOutcome,
  StepRole,
} from "../../../gen/chorus/v1/generation_pb.js";
import { STEPS } from "./answer.ts";
import { ago } from "./clock.ts";
import { generations } from "./records.ts";

const row = generations[8];

type Call = Omit<MessageInitShape<typeof RunCallSchema>, "$typeName">;

const call = (step: number, startedMs: number, durationMs: number, model: string, vendor: string, more: Call = {}) => ({
  ...{ step, startedMs, durationMs, model, vendor, role: model.endsWith("mini") ? StepRole.FAST : StepRole.STRONG },
  ...{ outcome: CallOutcome.OK, inputTokens: 118n, outputTokens: 245n, costUsd: "0.0021" },
  ...more,
});

const FAILED = { outcome: CallOutcome.FAILED, outputTokens: 0n, status: 401, code: "invalid_api_key" };
const LEFT = { outcome: CallOutcome.LEFT, outputTokens: 88n, isEstimated: true };

const CALLS = [
  call(1, 12, 180, "gpt-strong", "openai", { ...FAILED, costUsd: "0" }),
  call(2, 12, 1810, "claude-strong", "anthropic"),
  call(1, 196, 1956, "gemini-strong", "google"),
  call(3, 12, 2600, "gpt-mini", "openai", LEFT),
  call(4, 2160, 640, "claude-strong", "anthropic"),
  call(5, 2805, 1290, "claude-strong", "anthropic"),
];

/** A request that several models have answered, as an operator or an owner sees it. */
export function runOf(isOperator: boolean): MessageInitShape<typeof RunSchema> {
  return {
    generation: { ...row, user: "u-4711", tags: { team: "maps" }, level: Effort.HIGH, latencyMs: 4102 },
    intelligenceTrace: {
      intelligenceLevel: Effort.HIGH,
      reasons: ["several constraints", "an open question"],
      models: 4,
      agreement: 0.67,
      droppedMembers: 1,
      internalInputTokens: 412n,
      internalOutputTokens: 980n,
      steps: STEPS,
    },
    notices: [{ code: "late_drafts_left_out", message: "A draft came too late to count." }],
    text: RunTextState.KEPT,
    ...(isOperator ? { costUsd: "0.0105" } : {}),
    calls: CALLS.map(({ model, vendor, costUsd, ...rest }) => {
      const { status, code, ...seen } = rest as typeof rest & { status?: number; code?: string };
      if (!isOperator) return seen;
      return { ...seen, model, vendor, costUsd, ...(status ? { status } : {}), ...(code ? { code } : {}) };
    }),
  };
}

/** What the request said. */
export const textOfRun: MessageInitShape<typeof RunTextSchema> = {
  messages: [
    { role: Role.SYSTEM, text: "You plan trips. Answer with a table." },
    { role: Role.USER, text: "Three days in Lisbon with two children who love trains. No more than 400 euros." },
  ],
  files: [{ name: "timetable.pdf", mediaType: "application/pdf", size: 48_211n }],
  drafts: [
    { step: 1, text: "Day 1: Tram 28 from Martim Moniz to Campo de Ourique, 3 euros each.\n\nDay 2: Sintra by train." },
    { step: 2, text: "Day 1: Carris museum, then the Bica funicular.\n\nDay 2: Cascais by train along the coast." },
  ],
  answer: "Day 1: Carris museum and tram 28.\nDay 2: Sintra by train.\nDay 3: Cascais along the coast.\n\n372 euros.",
  keptUntil: timestampFromDate(new Date("2026-12-01T09:24:41Z")),
};

/** The same request 2.4 s after its start: two drafts are there, one is written, and the judge works. */
export function runningRun(isOperator: boolean): MessageInitShape<typeof RunSchema> {
  const { generation, calls = [] } = runOf(isOperator);
  const running = { durationMs: undefined, outcome: undefined, detail: undefined };
  return {
    running: true,
    generation: { ...generation, ...nothingYet, latencyMs: 2400 },
    intelligenceTrace: {
      intelligenceLevel: Effort.HIGH,
      reasons: ["several constraints", "an open question"],
      models: 3,
      steps: STEPS.slice(0, 4).map((step, at) => (at < 2 ? step : { ...step, ...running })),
    },
    calls: calls.slice(0, 3),
  };
}

const nothingYet = {
  ...{ outcome: Outcome.UNSPECIFIED, finishReason: FinishReason.UNSPECIFIED, failureCode: "" },
  ...{ outputTokens: 0n, cachedTokens: 0n, credits: "0" },
};

/** Requests of a workspace that run. */
export const running = generations.slice(7, 10).map((row, i) => ({
  ...row,
  ...nothingYet,
  id: `gen_running${i}`,
  at: ago(1_000 + i * 1_400),
  latencyMs: 1_000 + i * 1_400,
}));

/** One call of one model. */
export const plainRun: MessageInitShape<typeof RunSchema> = {
  generation: row,
  intelligenceTrace: {
    intelligenceLevel: Effort.LOW,
    models: 1,
    steps: [
      {
        ...{ id: 1, kind: StepKind.ANSWER, role: StepRole.FAST, startedMs: 3 },
        ...{ durationMs: 640, outcome: StepOutcome.OK },
      },
    ],
  },
};
