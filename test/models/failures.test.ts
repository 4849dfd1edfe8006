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
  const clock = { now: 1_000 };
  const failures = new Failures(
    (_, failure, count) => reports.push([failure, count]),
    () => clock.now,
  );
  const fail = (init: Partial<ConstructorParameters<typeof ModelError>[1]>) =>
    failures.note(ENTRY, { outcome: "failed", failure: new ModelError("x", { retryable: false, ...init }) });
  return { reports, clock, failures, fail };
}

test("keeps the last failure until a call succeeds", () => {
  const { failures, fail } = open();
  fail({ status: 500, code: "server_error", cause: "the prompt was: secret" });
  assert.deepEqual(failures.last(ENTRY), { at: 1_000, status: 500, needsOperator: false });
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

test("reports a model once in ten seconds, with the number of its failures", () => {
  const { reports, clock, fail } = open();
  for (let i = 0; i < 50; i++) fail({ status: 500 });
  clock.now += 10_000;
  fail({ code: "ECONNREFUSED" });
  assert.deepEqual(
    reports.map(([{ status, code }, count]) => [status, code, count]),
    [
      [500, undefined, 1],
      [undefined, "ECONNREFUSED", 50],
    ],
  );
});

test("removes keys from what a vendor says, and keeps the name of the model", () => {
  const { failures, fail } = open();
  const message = (cause: string) => {
    fail({ status: 401, code: "invalid_api_key", cause });
    return failures.last(ENTRY)?.message;
  };
  assert.equal(
    message("Incorrect API key provided:\n sk-proj-abcdefghijklmnop1234, or sk-ab***34."),
    "Incorrect API key provided: … or …",
  );
  assert.equal(message("No model claude-3-5-sonnet-20241022."), "No model claude-3-5-sonnet-20241022.");
  assert.equal(message("word ".repeat(100))?.length, 200);
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
