import assert from "node:assert/strict";
import { test } from "vitest";
import { createTelemetry } from "../../src/telemetry/create.ts";
import { Reporter } from "../../src/telemetry/report.ts";

const MINUTE = 60_000;
const CALL = {
  model: "m",
  tier: "fast",
  source: "reported",
  inputTokens: 1,
  cachedTokens: 0,
  outputTokens: 1,
  thinkingTokens: 0,
} as const;

function open() {
  const telemetry = createTelemetry();
  const state = { tier: "fast", vendor: "openai", running: 2, waiting: 1, limit: 8, failedShare: 0.25 } as const;
  telemetry.watchModels(() => [
    { ...state, model: "m", isOpen: true, isDisabled: false, firstTextMs: { p50: 200, p95: 900 } },
    { ...state, model: "unused", isOpen: false, isDisabled: false },
  ]);
  const reporter = new Reporter();
  return { telemetry, report: async (now: number) => reporter.report(await telemetry.snapshot(), now, []) };
}

test("reports models, journal and overload", async () => {
  const { telemetry, report } = open();
  telemetry.watchProcess();
  telemetry.modelCall({ ...CALL, outcome: "ok", usd: 0.5 });
  telemetry.modelCall({ ...CALL, outcome: "timed_out", usd: undefined });
  telemetry.modelCallRefused("m", "full");
  telemetry.watchJournal(
    () => 3,
    () => ({ damaged: 1, refused: 2 }),
  );
  telemetry.journalFailed(4);
  telemetry.requestShed("event_loop");
  telemetry.requestShed("event_loop");
  telemetry.leaseTaken();
  const { models, journal, shed, running, startedAt, memoryBytes, loopDelayMs } = await report(0);
  const state = { tier: "fast", vendor: "openai", failedShare: 0.25, running: 2, waiting: 1 };
  assert.deepEqual(models, [
    { ...state, model: "m", isOpen: true, calls: 2, failed: 1, refused: 1, usd: 0.5, p50Ms: 200, p95Ms: 900 },
    { ...state, model: "unused", isOpen: false, calls: 0, failed: 0, refused: 0, usd: 0 },
  ]);
  assert.deepEqual(journal, { waiting: 3, damaged: 1, refused: 2, failures: 4 });
  assert.deepEqual([shed, running], [{ event_loop: 2 }, 1]);
  assert.ok(Math.abs(Date.now() - startedAt) < 3_600_000 && memoryBytes > 1_000_000 && loopDelayMs >= 0);
});

test("counts calls of the last 15 minutes", async () => {
  const { telemetry, report } = open();
  const calls = async (minute: number) => (await report(minute * MINUTE)).models[0]?.calls;
  telemetry.modelCall({ ...CALL, outcome: "ok", usd: 0 });
  assert.equal(await calls(0), 1, "since the start");
  telemetry.modelCall({ ...CALL, outcome: "ok", usd: 0 });
  for (let minute = 1; minute < 15; minute++) assert.equal(await calls(minute), 2);
  // The samples are a minute apart, so a count is up to a minute too old.
  assert.equal(await calls(15), 1);
  assert.equal(await calls(16), 0);
  telemetry.modelCall({ ...CALL, outcome: "ok", usd: 0 });
  assert.equal(await calls(40), 1);
});
