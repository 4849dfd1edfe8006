import assert from "node:assert/strict";
import { test } from "vitest";
import { Trace } from "../../src/engine/trace.ts";
import type { CallReport } from "../../src/models/port/model.ts";
import { type RunFacts, readRecord, recordText } from "../../src/runs/record.ts";

const CALL: CallReport = {
  ...{ model: "quick", vendor: "openai", tier: "fast", step: 2, startedAt: 1_005, durationMs: 40.4 },
  ...{ outcome: "ok", source: "reported", usd: 0.000_123 },
  ...{ inputTokens: 20, cachedTokens: 5, outputTokens: 9, thinkingTokens: 1 },
};
const DETAIL = "a strong model answers, because the drafts do not decide; the order is learned from outcomes";

/** The run of a vote with a number of members, each of which was called once. */
function voteOf(members: number): RunFacts {
  let now = 1_000;
  const trace = new Trace(() => now);
  for (let id = 1; id <= members; id++) trace.add({ id, kind: "draft", role: "fast" });
  now += 812;
  for (let id = 1; id <= members; id++) trace.add({ id, kind: "draft", role: "fast", outcome: "ok" });
  trace.add({ id: 90, kind: "vote", role: "service" });
  trace.add({ id: 90, kind: "vote", role: "service", outcome: "failed", detail: DETAIL, agreement: 2 / 3 });
  trace.add({ id: 91, kind: "judge", role: "strong" });
  const calls = Array.from({ length: members }, (_, at) => ({ ...CALL, model: `m${at}`, step: at + 1 }));
  const reasons = ["a question with one right answer", "more difficult: it asks for several steps of reasoning"];
  return { trace, reasons, calls, count: calls.length, notices: [{ code: "offline_models" }] };
}

test("keeps steps, calls, agreement, reasons and notices", () => {
  const facts = voteOf(2);
  const failed = { ...CALL, step: 91, tier: "strong", outcome: "failed", source: "estimated", usd: undefined } as const;
  const calls = [...facts.calls, { ...failed, status: 401, code: "invalid_api_key", version: "quick-2026" }];
  const run = readRecord(JSON.parse(recordText({ ...facts, calls, count: 4 })));
  assert.deepEqual(run.steps, facts.trace.steps);
  assert.equal(run.agreement, 0.667);
  assert.deepEqual([run.models, run.count, run.reasons.length], [3, 4, 2]);
  assert.deepEqual(run.notices, [{ code: "offline_models", field: undefined }]);
  const { startedAt: _, tier: role, ...first } = CALL;
  assert.deepEqual(run.calls[0], { ...first, model: "m0", step: 1, role, startedMs: 5, durationMs: 40 });
  assert.deepEqual(run.calls[2], {
    ...{ step: 4, model: "quick", vendor: "openai", role: "strong", startedMs: 5, durationMs: 40 },
    ...{ inputTokens: 20, cachedTokens: 5, outputTokens: 9, thinkingTokens: 1, usd: undefined },
    ...{ outcome: "failed", source: "estimated", status: 401, code: "invalid_api_key", version: "quick-2026" },
  });
});

test("keeps no field that a caller has named", () => {
  const notices = ["messages[3].content", "my secret", "x".repeat(40)].map((field) => ({
    code: "unknown_field",
    field,
  }));
  const run = readRecord(JSON.parse(recordText({ ...voteOf(1), notices })));
  assert.deepEqual(
    run.notices.map(({ field }) => field),
    ["messages[3].content", undefined, undefined],
  );
});

test("has at most 800 characters, and leaves out the least important", () => {
  const length = (members: number) => recordText(voteOf(members)).length;
  assert.ok(length(1) < 400, `${length(1)}`);
  assert.ok(length(5) < 700, `${length(5)}`);
  for (let members = 6; members < 60; members++) {
    const text = recordText(voteOf(members));
    assert.ok(text.length <= 800, `${members} members: ${text.length}`);
    const run = readRecord(JSON.parse(text));
    assert.equal(run.count, members);
    assert.equal(run.models, members);
  }
});
