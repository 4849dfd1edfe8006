import assert from "node:assert/strict";
import { test } from "vitest";
import type * as pb from "../../gen/chorus/v1/generation_pb.js";
import openapi from "../../gen/openapi/openapi.json" with { type: "json" };
import type * as client from "../../src/client/client.ts";
import { SERVICE_CODES } from "../../src/client/failure.ts";

type Snake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : "";

/** Fields whose public name `json_name` sets. */
interface JsonNames {
  start_time: "from";
  end_time: "to";
  continue_last_message: "continue";
}

type Public<Name extends string> = Name extends keyof JsonNames ? JsonNames[Name] : Name;

/** The member names of a message in the public JSON. */
type Names<Message> = Public<Snake<Exclude<keyof Message & string, `$${string}`>>>;

/** Names in only one of the two sets. */
type Differing<A, B> = Exclude<A, B> | Exclude<B, A>;

type Event = pb.StreamGenerateResponse_Delta;

/** Each member must be `never`: it lists the names that differ from the contract. `npm run types` checks it. */
interface Differences {
  request: Differing<keyof client.GenerateRequest, Names<pb.GenerateRequest>>;
  message: Differing<keyof client.Message, Names<pb.Message>>;
  attachment: Differing<keyof client.Attachment, Names<pb.Attachment>>;
  generation: Differing<keyof client.Generation, Names<pb.GenerateResponse>>;
  done: Differing<keyof client.Done, Names<pb.StreamGenerateResponse_Done>>;
  delta: Differing<Exclude<keyof Extract<client.StreamEvent, { type: "delta" }>, "type">, Names<Event>>;
  usage: Differing<keyof client.Usage, Names<pb.Usage>>;
  notice: Differing<keyof client.Notice, Names<pb.Notice>>;
  step: Differing<keyof client.TraceStep, Names<pb.TraceStep>>;
  trace: Differing<keyof client.IntelligenceTrace, Names<pb.IntelligenceTrace>>;
  outcome: Differing<keyof client.Outcome, Exclude<Names<pb.RecordOutcomeRequest>, "id">>;
  recordedOutcome: Differing<keyof client.RecordedOutcome, Names<pb.RecordOutcomeResponse>>;
  run: Differing<keyof client.GenerationRun, Names<pb.GetGenerationResponse>>;
  runText: Differing<keyof client.RunText, Names<pb.RunText>>;
  runTextMessage: Differing<keyof client.RunTextMessage, Names<pb.RunTextMessage>>;
  runTextFile: Differing<keyof client.RunText["files"][number], Names<pb.RunTextFile>>;
  runTextDraft: Differing<keyof client.RunText["drafts"][number], Names<pb.RunTextDraft>>;
  quotas: Differing<keyof client.Quotas, Names<pb.QuotasResponse>>;
  capQuota: Differing<keyof client.CapQuota, Names<pb.CapQuota>>;
  capFigure: Differing<client.CapFigure, Words<typeof pb.CapFigure>>;
  capPeriod: Differing<client.CapPeriod, Words<typeof pb.CapPeriod>>;
  quota: Differing<keyof client.Quota, Names<pb.Quota>>;
  window: Differing<keyof client.QuotaWindow, Names<pb.QuotaWindow>>;
  spendLimit: Differing<keyof client.Quotas["spend_limits"][number], Names<pb.SpendLimit>>;
  credit: Differing<keyof NonNullable<client.Quotas["credit"]>, Names<pb.CreditQuota>>;
  metricsRequest: Differing<keyof client.MetricsRequest, Exclude<Names<pb.MetricsRequest>, "group_tag">>;
  metrics: Differing<keyof client.Metrics, Names<pb.MetricsResponse>>;
  totals: Differing<keyof client.MetricsTotals, Names<pb.MetricsTotals>>;
  point: Differing<keyof client.Metrics["series"][number], Names<pb.MetricsPoint>>;
  effort: Differing<client.Effort, Words<typeof pb.Effort>>;
  shape: Differing<client.OutputShape, Words<typeof pb.OutputShape>>;
  role: Differing<client.Message["role"], Words<typeof pb.Role>>;
  finish: Differing<client.FinishReason, Words<typeof pb.FinishReason>>;
  stepKind: Differing<client.StepKind, Words<typeof pb.StepKind>>;
  stepRole: Differing<client.StepRole, Words<typeof pb.StepRole>>;
  stepOutcome: Differing<client.StepOutcome, Words<typeof pb.StepOutcome>>;
  spendPeriod: Differing<client.SpendPeriod, Words<typeof pb.SpendPeriod>>;
  interval: Differing<client.MetricsInterval, Words<typeof pb.MetricsInterval>>;
}

/** The members of answers with words. Each type must accept any string, because later versions may send other words. */
interface Sent {
  finish: client.Generation["finish_reason"];
  level: client.IntelligenceTrace["intelligence_level"];
  kind: client.TraceStep["kind"];
  role: client.TraceStep["role"];
  outcome: NonNullable<client.TraceStep["outcome"]>;
  notice: client.Notice["code"];
  period: client.Quotas["spend_limits"][number]["period"];
  interval: client.Metrics["interval"];
}

type Closed = { [Name in keyof Sent]: string extends Sent[Name] ? never : Name }[keyof Sent];

type Words<Enum> = Lowercase<Exclude<keyof Enum & string, "UNSPECIFIED">>;

type Wrong = { [Name in keyof Differences]: Differences[Name] extends never ? never : Name }[keyof Differences];

test("the client's types use the names of the contract", () => {
  const wrong: Wrong[] = [];
  const none: never[] = wrong;
  assert.deepEqual(none, []);
});

test("the client's types accept words that the service adds to answers", () => {
  const closed: Closed[] = [];
  const none: never[] = closed;
  assert.deepEqual(none, []);
});

test("the client declares every failure code of the reference", () => {
  assert.deepEqual([...SERVICE_CODES].sort(), [...openapi.components.schemas.FailureCode.enum].sort());
});
