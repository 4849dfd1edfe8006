import assert from "node:assert/strict";
import { APICallError, InvalidPromptError, InvalidResponseDataError } from "@ai-sdk/provider";
import { test } from "vitest";
import { toModelError } from "../../src/models/model-error.ts";

function apiError(statusCode: number | undefined, more: Partial<ConstructorParameters<typeof APICallError>[0]> = {}) {
  return new APICallError({
    message: "secret words of the vendor",
    url: "http://vendor",
    requestBodyValues: { prompt: "secret prompt" },
    ...(statusCode === undefined ? {} : { statusCode }),
    ...more,
  });
}

test("which statuses may be tried again", () => {
  for (const status of [408, 409, 429, 500, 502, 503, 529])
    assert.equal(toModelError(apiError(status)).retryable, true, `${status}`);
  for (const status of [302, 400, 401, 403, 404, 413, 422])
    assert.equal(toModelError(apiError(status)).retryable, false, `${status}`);
});

test("x-should-retry has the last word, but a used-up quota never comes back", () => {
  assert.equal(toModelError(apiError(400, { responseHeaders: { "x-should-retry": "true" } })).retryable, true);
  assert.equal(toModelError(apiError(500, { responseHeaders: { "x-should-retry": "false" } })).retryable, false);
  const responseBody = '{"error":{"code":"insufficient_quota"}}';
  assert.equal(toModelError(apiError(429, { responseBody })).retryable, false);
});

test("the wait that the vendor asks for", () => {
  const wait = (responseHeaders: Record<string, string>, responseBody?: string) =>
    toModelError(apiError(429, { responseHeaders, ...(responseBody === undefined ? {} : { responseBody }) }))
      .retryAfterMs;
  assert.equal(wait({ "retry-after": "3" }), 3_000);
  assert.equal(wait({ "retry-after": "0.5" }), 500);
  assert.equal(wait({ "retry-after-ms": "120", "retry-after": "3" }), 120);
  assert.equal(wait({}), undefined);
  assert.equal(wait({ "retry-after": "soon" }), undefined);
  const date = wait({ "retry-after": new Date(Date.now() + 10_000).toUTCString() });
  assert.ok(date !== undefined && date > 8_000 && date <= 10_000, String(date));
  const info = {
    error: { code: 429, details: [null, { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.5s" }] },
  };
  assert.equal(wait({}, JSON.stringify(info)), 34_500);
  assert.equal(wait({}, '{"error":null}'), undefined);
  assert.equal(wait({}, "null"), undefined);
  assert.equal(wait({}, "<html>"), undefined);
});

test("errors without a status", () => {
  assert.equal(toModelError(apiError(undefined)).retryable, true);
  assert.equal(toModelError(apiError(200)).retryable, true, "not JSON, or cut off");
  assert.equal(toModelError(new Error("ECONNRESET")).retryable, true);
  assert.equal(toModelError(new InvalidResponseDataError({ data: 1 })).retryable, true);
  assert.equal(toModelError(new InvalidPromptError({ prompt: 1, message: "no" })).retryable, false);
});

test("an error frame of a stream", () => {
  const error = toModelError({ message: "m", statusCode: 400, isRetryable: false });
  assert.equal(error.retryable, false);
  assert.equal(error.status, 400);
  assert.equal(toModelError({ message: "m", type: "server_error" }).retryable, true);
  assert.equal(toModelError("odd").retryable, true);
});

test("the message holds nothing of the vendor's, the cause all of it", () => {
  const cause = apiError(500);
  const error = toModelError(cause);
  assert.equal(error.message, "The vendor answered with status 500.");
  assert.equal(error.cause, cause);
  assert.ok(!JSON.stringify(error).includes("secret"));
  assert.equal(toModelError(error), error);
});

test("a request at fault does not blame the model", () => {
  for (const status of [400, 413, 422]) assert.equal(toModelError(apiError(status)).blamesModel, false);
  for (const status of [401, 404, 429, 500]) assert.equal(toModelError(apiError(status)).blamesModel, true);
  assert.equal(toModelError(new Error("net")).blamesModel, true);
});
