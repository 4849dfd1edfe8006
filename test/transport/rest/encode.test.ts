import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import {
  Effort,
  EffortSchema,
  FinishReason,
  GenerateResponseSchema,
  MetricsInterval,
  MetricsResponseSchema,
  QuotasResponseSchema,
  StepKind,
  StepOutcome,
  StepRole,
  StreamGenerateResponse_DoneSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { encode } from "../../../src/transport/rest/encode.ts";

const USAGE = { inputTokens: 12, outputTokens: 3, cachedTokens: 0, credits: 0.0024 };

test("encodes all members of a response in the specified order", () => {
  const message = create(GenerateResponseSchema, {
    id: "gen_1",
    requestId: "req_1",
    answer: 'He said "hi"\n',
    structured: '{"2":1,"1":123456789012345678901234567890}',
    usage: USAGE,
    latencyMs: 17,
    finishReason: FinishReason.LENGTH,
    notices: [
      { code: "a", message: "b" },
      { code: "c", message: "d", field: "e" },
    ],
    intelligenceTrace: {
      intelligenceLevel: Effort.HIGH,
      reasons: ["it is hard"],
      models: 2,
      agreement: 0.5,
      internalInputTokens: 2n ** 60n,
      steps: [
        { id: 1, kind: StepKind.ANSWER, role: StepRole.FAST, startedMs: 0 },
        {
          id: 2,
          kind: StepKind.REASK,
          role: StepRole.STRONG,
          startedMs: 5,
          durationMs: 0,
          outcome: StepOutcome.OK,
          detail: "a",
        },
      ],
    },
  });
  assert.equal(
    encode(GenerateResponseSchema, message),
    '{"id":"gen_1","request_id":"req_1","answer":"He said \\"hi\\"\\n",' +
      '"structured":{"2":1,"1":123456789012345678901234567890},"structured_error":null,' +
      '"usage":{"input_tokens":12,"output_tokens":3,"cached_tokens":0,"credits":0.0024},' +
      '"latency_ms":17,"finish_reason":"length",' +
      '"notices":[{"code":"a","message":"b"},{"code":"c","message":"d","field":"e"}],' +
      '"intelligence_trace":{"intelligence_level":"high","reasons":["it is hard"],' +
      '"models":2,"agreement":0.5,"escalations":0,' +
      '"dropped_members":0,"repairs":0,"searches":0,' +
      '"internal_input_tokens":1152921504606846976,"internal_output_tokens":0,' +
      '"steps":[{"id":1,"kind":"answer","role":"fast","started_ms":0},' +
      '{"id":2,"kind":"reask","role":"strong","started_ms":5,"duration_ms":0,"outcome":"ok","detail":"a"}]}}',
  );
});

test("omits structured from a text answer and sets structured_error to null", () => {
  const message = create(GenerateResponseSchema, { id: "gen_1", usage: USAGE, finishReason: FinishReason.STOP });
  assert.deepEqual(Object.keys(JSON.parse(encode(GenerateResponseSchema, message))), [
    "id",
    "request_id",
    "answer",
    "structured_error",
    "usage",
    "latency_ms",
    "finish_reason",
    "notices",
  ]);
});

test("done has both members of structured output or neither", () => {
  const done = (more: object) =>
    JSON.parse(
      encode(StreamGenerateResponse_DoneSchema, create(StreamGenerateResponse_DoneSchema, { usage: USAGE, ...more })),
    );
  const always = ["id", "request_id", "usage", "finish_reason", "notices"];
  assert.deepEqual(Object.keys(done({})), always);
  const good = done({ structured: '{"a":1}' });
  assert.deepEqual(Object.keys(good), [...always, "structured", "structured_error"]);
  assert.deepEqual([good.structured, good.structured_error], [{ a: 1 }, null]);
  const bad = done({ structured: "null", structuredError: "why" });
  assert.deepEqual([bad.structured, bad.structured_error], [null, "why"]);
});

test("encodes counts with all digits, times as RFC 3339 and a missing limit as null", () => {
  const at = timestampFromDate(new Date("2026-01-31T12:00:00.5Z"));
  const quota = { used: 9_007_199_254_740_993n };
  const window = {
    resetsAt: at,
    requests: quota,
    inputTokens: { limit: 5n, used: 6n, remaining: 0n },
    outputTokens: quota,
  };
  const text = encode(
    QuotasResponseSchema,
    create(QuotasResponseSchema, {
      workspace: "default",
      tier: "free",
      asOf: at,
      windows: { minute: window },
      concurrentRequests: {},
    }),
  );
  const used = '{"limit":null,"used":9007199254740993,"remaining":null}';
  assert.equal(
    text,
    '{"workspace":"default","tier":"free","as_of":"2026-01-31T12:00:00.500Z",' +
      '"windows":{"minute":{"resets_at":"2026-01-31T12:00:00.500Z",' +
      `"requests":${used},"input_tokens":{"limit":5,"used":6,"remaining":0},"output_tokens":${used}}},` +
      '"concurrent_requests":{"limit":null,"used":0,"remaining":null},"credit":null,"spend_limits":[],"caps":[]}',
  );
  const metrics = create(MetricsResponseSchema, {
    startTime: at,
    endTime: at,
    interval: MetricsInterval.MONTH,
    totals: {},
  });
  assert.match(encode(MetricsResponseSchema, metrics), /^{"from":"2026[^"]*","to":"2026[^"]*","interval":"month"/);
});

test("returns the word of an enum value", () => {
  assert.equal(wordOf(EffortSchema, Effort.LOW), "low");
  assert.equal(wordOf(EffortSchema, 99), "");
});
