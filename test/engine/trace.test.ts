import assert from "node:assert/strict";
import { test } from "vitest";
import { createTrace } from "../../src/engine/trace.ts";

test("steps that run side by side have their own times, in the order in which they began", () => {
  let now = 1_000;
  const trace = createTrace(() => now);
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

test("a step that was told stays as it was told", () => {
  const trace = createTrace();
  const begun = trace.add({ id: 1, kind: "answer", role: "fast" });
  trace.add({ id: 1, kind: "answer", role: "fast", outcome: "ok" });
  assert.equal(begun.outcome, undefined);
});

test("the sums count what happened", () => {
  const trace = createTrace();
  assert.deepEqual(trace.totals(), {
    agreement: undefined,
    escalations: 0,
    droppedMembers: 0,
    repairs: 0,
    searches: 0,
  });
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
  assert.deepEqual(trace.totals(), { agreement: 0.8, escalations: 2, droppedMembers: 2, repairs: 2, searches: 1 });
});
