import assert from "node:assert/strict";
import { test } from "vitest";
import { cutOff, ModelError, toModelError, unreadable } from "../../../src/models/port/model-error.ts";

const withStatus = (status: number | undefined) => new ModelError("m", { retryable: true, status });

test("keeps a ModelError as it is", () => {
  const error = withStatus(500);
  assert.equal(toModelError(error), error);
});

test("makes a retryable error of anything else, whose message holds nothing of it", () => {
  for (const cause of [new Error("secret words"), "secret words", { secret: "words" }, null, undefined]) {
    const error = toModelError(cause);
    assert.deepEqual([error.retryable, error.status, error.kind, error.cause], [true, undefined, undefined, cause]);
    assert.equal(error.message, "The call failed.");
    assert.ok(!JSON.stringify(error).includes("secret"));
  }
});

test("retries a completion that was cut off or cannot be read", () => {
  const cause = new Error("secret words");
  for (const error of [cutOff(cause), unreadable(cause)]) {
    assert.deepEqual([error.retryable, error.status, error.blamesModel, error.cause], [true, undefined, true, cause]);
    assert.ok(!error.message.includes("secret"));
  }
});

test("does not blame the model for a request that is at fault", () => {
  for (const status of [400, 403, 404, 413, 422, 451]) assert.equal(withStatus(status).blamesModel, false);
  for (const status of [401, 402, 429, 500, undefined]) assert.equal(withStatus(status).blamesModel, true);
  for (const kind of ["refused", "too_long"] as const) {
    assert.equal(new ModelError("m", { retryable: false, status: 500, kind }).blamesModel, false);
  }
  assert.equal(toModelError(new Error("net")).blamesModel, true);
});
