import assert from "node:assert/strict";
import { test } from "vitest";
import { Trace, totalsOf } from "../../src/engine/trace.ts";

test("times concurrent steps separately and lists them in the order of their start", () => {
  let now = 1_000;
  const trace = new Trace(() => now);
  assert.deepEqual(trace.add({ id: 7, kind: "draft", role: "fast" }), {
    id: 1,
    kind: "draft",
    role: "fast",
    startedMs: 0,
    durationMs: undefined,
    outcome: undefined,
    detail: undefined,
  });
  now += 5;
  trace.add({ id: 3, kind: "draft", role: "strong" });
  now += 10;
  trace.add({ id: 3, kind: "draft", role: "strong", outcome: "ok" });
  now += 20;
  const end = trace.add({ id: 7, kind: "draft", role: "fast", outcome: "dropped", detail: "too late" });
  assert.deepEqual([end.id, end.startedMs, end.durationMs, end.outcome, end.detail], [1, 0, 35, "dropped", "too late"]);
  assert.deepEqual(
    trace.steps.map(({ id, startedMs, durationMs }) => [id, startedMs, durationMs]),
    [
      [1, 0, 35],
      [2, 5, 10],
    ],
  );
});

test("does not change a step that it has returned", () => {
  const trace = new Trace();
  const begun = trace.add({ id: 1, kind: "answer", role: "fast" });
  trace.add({ id: 1, kind: "answer", role: "fast", outcome: "ok" });
  assert.equal(begun.outcome, undefined);
});

test("counts escalations, dropped members, repairs and searches", () => {
  const trace = new Trace();
  assert.deepEqual(totalsOf(trace.steps), { escalations: 0, droppedMembers: 0, repairs: 0, searches: 0 });
  assert.equal(trace.agreement, undefined);
  const step = (id: number, kind: Parameters<typeof trace.add>[0]["kind"], outcome: "ok" | "failed" | "dropped") => {
    trace.add({ id, kind, role: "fast" });
    trace.add({ id, kind, role: "fast", outcome, ...(kind === "vote" ? { agreement: id / 10 } : {}) });
  };
  step(0, "search", "failed");
  step(1, "draft", "ok");
  step(2, "draft", "failed");
  step(3, "draft", "dropped");
  step(4, "vote", "failed");
  step(5, "escalate", "failed");
  step(9, "judge", "ok");
  step(6, "reask", "ok");
  step(7, "repair", "ok");
  step(8, "vote", "ok");
  assert.deepEqual(totalsOf(trace.steps), { escalations: 2, droppedMembers: 2, repairs: 2, searches: 1 });
  assert.equal(trace.agreement, 0.8);
});
