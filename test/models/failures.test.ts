import assert from "node:assert/strict";
import { test } from "vitest";
import { Failures } from "../../src/models/failures.ts";
import type { CallFailure, ModelEntry } from "../../src/models/port/entry.ts";
import { ModelError } from "../../src/models/port/model-error.ts";

const ENTRY: ModelEntry = {
  name: "main",
  vendor: "openai",
  model: "claude-3-5-sonnet-20241022",
  tier: "fast",
  images: false,
  jsonSchema: true,
};

function open() {
  const reports: [CallFailure, number][] = [];
  const turns: boolean[] = [];
  const clock = { now: 1_000 };
  const failures = new Failures(
    (_, failure, count) => reports.push([failure, count]),
    (_, isRefused) => turns.push(isRefused),
    () => clock.now,
  );
  const fail = (init: Partial<ConstructorParameters<typeof ModelError>[1]>) =>
    failures.note(ENTRY, { outcome: "failed", failure: new ModelError("x", { retryable: false, ...init }) });
  return { reports, turns, clock, failures, fail };
}

test("keeps the last failure until a call succeeds", () => {
  const { failures, fail } = open();
  fail({ status: 500, code: "server_error", cause: "the prompt was: secret" });
  fail({ status: 500, code: "server_error", cause: "the prompt was: secret" });
  assert.deepEqual(failures.last(ENTRY), { at: 1_000, count: 2, status: 500, needsOperator: false });
  failures.note(ENTRY, { outcome: "ok" });
  assert.equal(failures.last(ENTRY), undefined);
});

test("says nothing of failures that the request or its caller has caused", () => {
  const { reports, failures, fail } = open();
  fail({ status: 400, kind: "too_long" });
  fail({ kind: "refused" });
  failures.note(ENTRY, { outcome: "left", failure: new ModelError("x", { retryable: false, status: 500 }) });
  assert.deepEqual([failures.last(ENTRY), reports], [undefined, []]);
});

test("reports each status and code of a model once in ten seconds, with the number of such failures", () => {
  const { reports, clock, fail } = open();
  for (let i = 0; i < 50; i++) fail({ status: 500 });
  fail({ status: 401, code: "invalid_api_key" });
  clock.now += 10_000;
  fail({ code: "ECONNREFUSED" });
  fail({ status: 500 });
  assert.deepEqual(
    reports.map(([{ status, code }, count]) => [status, code, count]),
    [
      [500, undefined, 1],
      [401, "invalid_api_key", 1],
      [undefined, "ECONNREFUSED", 1],
      [500, undefined, 50],
    ],
  );
});

test("reports a bounded number of kinds, whatever codes a vendor sends", () => {
  const { reports, fail } = open();
  for (let i = 0; i < 1_000; i++) fail({ status: 401, code: `code_${i}` });
  assert.equal(reports.length, 9);
});

test("tells when a vendor begins and ceases to refuse a model", () => {
  const { turns, failures, fail } = open();
  fail({ status: 500 });
  assert.deepEqual(turns, []);
  fail({ status: 401 });
  fail({ status: 404 });
  assert.deepEqual(turns, [true]);
  fail({ status: 500 });
  fail({ status: 403 });
  assert.deepEqual(turns, [true, false, true]);
  failures.note(ENTRY, { outcome: "ok" });
  failures.note(ENTRY, { outcome: "ok" });
  assert.deepEqual(turns, [true, false, true, false]);
});

test("keeps only known words of what a vendor says, so that no part of a key is among them", () => {
  const { failures, fail } = open();
  const message = (cause: string) => {
    fail({ status: 401, code: "invalid_api_key", cause });
    return failures.last(ENTRY)?.message;
  };
  assert.equal(message("Incorrect API key provided: hunter2. See https://x.example."), "Incorrect API key provided");
  assert.equal(message("authentication_error invalid x-api-key"), "invalid x-api-key");
  assert.equal(message("my prompt is a secret"), undefined);
  assert.equal(
    message("You exceeded your current quota, hunter2, please check your plan and billing details."),
    "exceeded your current quota; check your plan and billing details",
  );
  const openrouter =
    "402 undefined This request requires more credits, or fewer max_tokens. You requested up to 9 tokens";
  assert.equal(message(openrouter), "requires more credits, or fewer max_tokens");
  assert.ok((message("Invalid API key, Unauthorized, ".repeat(100))?.length ?? 0) <= 200);
});

test("says what to do", () => {
  const { failures, fail } = open();
  const action = (status: number) => {
    fail({ status });
    return failures.last({ ...ENTRY })?.action;
  };
  assert.match(action(401) ?? "", /api_key_env/);
  assert.match(action(404) ?? "", /"claude-3-5-sonnet-20241022"/);
  assert.match(action(402) ?? "", /credit/);
  assert.match(action(308) ?? "", /address/);
  assert.equal(action(500), undefined);
});

test("takes no code that has the key, or is a part of it", () => {
  const entry = { ...ENTRY, apiKey: "hunter2-0123456789" };
  const { failures } = open();
  for (const code of ["hunter2-0123456789", "bad_key:hunter2-0123456789", "6789"]) {
    failures.note(entry, { outcome: "failed", failure: new ModelError("x", { retryable: false, status: 401, code }) });
    assert.equal(failures.last(entry)?.code, undefined);
  }
});

test("takes no code that is not a short word", () => {
  const { failures, fail } = open();
  for (const code of ["a b", "x".repeat(65), "", 7, { a: 1 }, "<script>"]) {
    fail({ status: 401, code });
    assert.equal(failures.last(ENTRY)?.code, undefined);
  }
});

test("lets a probe mend only what a probe can find", () => {
  const { failures, fail } = open();
  fail({ status: 403 });
  failures.noteProbe(ENTRY, undefined);
  assert.equal(failures.last(ENTRY)?.status, 403, "completions may be refused although the key is taken");
  fail({ status: 401 });
  failures.noteProbe(ENTRY, undefined);
  assert.equal(failures.last(ENTRY), undefined);
  failures.noteProbe(ENTRY, new ModelError("x", { retryable: false, status: 403 }));
  assert.equal(failures.mayBeMended(ENTRY), true);
  failures.noteProbe(ENTRY, undefined);
  assert.equal(failures.last(ENTRY), undefined);
});
