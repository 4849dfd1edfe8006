import { CallOutcomeSchema } from "../../gen/chorus/admin/v1/activity_pb.js";
import { StepKindSchema, StepOutcomeSchema, StepRoleSchema } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf, wordOf } from "../contract/json-names.ts";
import type { TimedStep, Trace } from "../engine/trace.ts";
import type { CallReport } from "../models/port/model.ts";

/**
 * How an answer was made, for the column `record` of `runs`: what the row of `generations` does not say. It has no text
 * of a prompt, a draft or an answer. Enums are numbers of the contract, times are milliseconds since the start of the
 * trace, and -1 stands for no value.
 */
export interface RunRecord {
  /** Why the level was chosen. */
  r?: readonly string[];
  /** The answer's share of the votes, in thousandths. */
  a?: number;
  /** Number of models that were called. */
  m: number;
  s: readonly StoredStep[];
  c: readonly StoredCall[];
  /** Calls that are left out, because the record would be too large. */
  o?: number;
  /** Codes of notices, with their field. */
  n?: readonly (readonly [code: string, field?: string])[];
}

type StoredStep = [kind: number, role: number, startedMs: number, durationMs: number, outcome: number, detail?: string];

type StoredCall = [
  ...place: [step: number, model: string, vendor: string, role: number],
  ...time: [startedMs: number, durationMs: number, outcome: number, isEstimated: 0 | 1],
  ...tokens: [input: number, cached: number, output: number, thinking: number],
  /** In millionths of a dollar. */
  usd: number,
  ...more: [status?: number, code?: string, version?: string],
];

/** What a request leaves of itself. */
export interface RunFacts {
  readonly trace: Trace;
  readonly reasons: readonly string[];
  readonly calls: readonly CallReport[];
  /** Number of all calls; `calls` may have fewer. */
  readonly count: number;
  readonly notices: readonly { readonly code: string; readonly field?: string | undefined }[];
}

/** A call of a model, as a run keeps it. */
export interface RunCall extends Omit<CallReport, "startedAt" | "tier"> {
  role: string;
  startedMs: number;
}

/** What is known of how an answer was made. */
export interface Run extends Omit<RunFacts, "trace" | "calls"> {
  readonly steps: readonly TimedStep[];
  readonly agreement: number | undefined;
  readonly models: number;
  readonly calls: readonly RunCall[];
}

/** Most characters of a record. With its row and index, a run then takes less than 1 KB. */
const MAX_LENGTH = 800;
/** Most notices of a record. */
const MAX_NOTICES = 8;
/** Most characters of a name of a model or version. */
const MAX_NAME = 64;
/** Fields of the contract; others are names that the caller has chosen. */
const FIELD = /^[a-z_]{1,32}(?:\[\d+\])?(?:\.[a-z_]{1,32})*$/;

/** The record of a run as JSON text, of which the least important is left out where it would be too long. */
export function recordText(facts: RunFacts): string {
  const record = recordOf(facts);
  let text = JSON.stringify(record);
  for (const shorten of [withoutDetails, withoutReasons]) {
    if (text.length <= MAX_LENGTH) return text;
    shorten(record);
    text = JSON.stringify(record);
  }
  const all = record.c;
  for (let kept = all.length - 1; text.length > MAX_LENGTH && kept >= 0; kept--) {
    record.c = all.slice(0, kept);
    record.o = facts.count - kept;
    text = JSON.stringify(record);
  }
  return text.length <= MAX_LENGTH ? text : JSON.stringify({ ...record, s: record.s.slice(0, MAX_STEPS), n: [] });
}

/** Steps that fit into any record. */
const MAX_STEPS = 20;

function withoutDetails(record: RunRecord): void {
  record.s = record.s.map(([kind, role, started, duration, outcome]) => [kind, role, started, duration, outcome]);
}

function withoutReasons(record: RunRecord): void {
  delete record.r;
}

function recordOf({ trace, reasons, calls, count, notices }: RunFacts): RunRecord {
  const { agreement } = trace;
  return {
    ...(reasons.length > 0 ? { r: reasons } : {}),
    ...(agreement === undefined ? {} : { a: Math.round(agreement * 1_000) }),
    m: new Set(calls.map(({ model }) => model)).size,
    s: trace.steps.map(storedStep),
    c: calls.map((call) => storedCall(call, trace)),
    ...(count > calls.length ? { o: count - calls.length } : {}),
    ...(notices.length > 0 ? { n: notices.slice(0, MAX_NOTICES).map(storedNotice) } : {}),
  };
}

function storedStep({ kind, role, startedMs, durationMs, outcome, detail }: TimedStep): StoredStep {
  const stored: StoredStep = [
    numberOf(StepKindSchema, kind),
    numberOf(StepRoleSchema, role),
    startedMs,
    durationMs ?? -1,
    outcome === undefined ? 0 : numberOf(StepOutcomeSchema, outcome),
  ];
  if (detail !== undefined) stored.push(detail);
  return stored;
}

function storedCall(call: CallReport, trace: Trace): StoredCall {
  const { model, vendor, tier, startedAt, durationMs, outcome, source, usd, status, code, version } = call;
  const place = call.step === undefined ? undefined : trace.numberOf(call.step);
  const stored: StoredCall = [
    ...([place ?? 0, model.slice(0, MAX_NAME), vendor, numberOf(StepRoleSchema, tier)] as const),
    ...([Math.round(startedAt - trace.startedAt), Math.round(durationMs)] as const),
    ...([numberOf(CallOutcomeSchema, outcome), source === "estimated" ? 1 : 0] as const),
    ...([call.inputTokens, call.cachedTokens, call.outputTokens, call.thinkingTokens] as const),
    usd === undefined ? -1 : Math.round(usd * 1e6),
  ];
  const other = version === model ? undefined : version?.slice(0, MAX_NAME);
  if (status !== undefined || code !== undefined || other) stored.push(status ?? -1, code ?? "", other ?? "");
  return stored;
}

function storedNotice({ code, field }: RunFacts["notices"][number]): [string, string?] {
  return field !== undefined && FIELD.test(field) ? [code, field] : [code];
}

/** Reads a record of this version or an earlier one. */
export function readRecord({ r = [], a, m, s, c, o = 0, n = [] }: RunRecord): Run {
  return {
    reasons: r,
    agreement: a === undefined ? undefined : a / 1_000,
    models: m,
    steps: s.map(readStep),
    calls: c.map(readCall),
    count: c.length + o,
    notices: n.map(([code, field]) => ({ code, field })),
  };
}

function readStep([kind, role, startedMs, durationMs, outcome, detail]: StoredStep, at: number): TimedStep {
  return {
    id: at + 1,
    kind: wordOf(StepKindSchema, kind),
    role: wordOf(StepRoleSchema, role),
    startedMs,
    durationMs: durationMs < 0 ? undefined : durationMs,
    outcome: outcome === 0 ? undefined : wordOf(StepOutcomeSchema, outcome),
    detail,
  };
}

function readCall(stored: StoredCall): RunCall {
  const [step, model, vendor, role, startedMs, durationMs, outcome, isEstimated, ...rest] = stored;
  const [inputTokens, cachedTokens, outputTokens, thinkingTokens, usd, status = -1, code = "", version = ""] = rest;
  return {
    ...{ step, model, vendor, startedMs, durationMs, inputTokens, cachedTokens, outputTokens, thinkingTokens },
    role: wordOf(StepRoleSchema, role),
    outcome: wordOf(CallOutcomeSchema, outcome) as RunCall["outcome"],
    source: isEstimated ? "estimated" : "reported",
    usd: usd < 0 ? undefined : usd / 1e6,
    ...(status < 0 ? {} : { status }),
    ...(code === "" ? {} : { code }),
    ...(version === "" ? {} : { version }),
  };
}
