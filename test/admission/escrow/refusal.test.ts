import assert from "node:assert/strict";
import { test } from "vitest";
import { type Refusal, refusalFailure } from "../../../src/admission/escrow/refusal.ts";
import { FAILURES } from "../../../src/contract/failure.ts";

/** Refusals of the database, and what the caller is told to do. */
const ADVICE: readonly [name: string, refusal: Refusal, message: RegExp][] = [
  [
    "credit that running requests hold",
    { refusal: "insufficient_credit", limit: "held_credit" },
    /^Running requests hold the rest of the credit\. Send the request again/,
  ],
  [
    "too little credit",
    { refusal: "insufficient_credit" },
    /^The credit balance is lower than .* of this request\. Add credit or lower max_tokens/,
  ],
  [
    "too little of a cap on credit",
    { refusal: "insufficient_credit", limit: "user:credits_per_day" },
    /^What the cap user:credits_per_day leaves is lower .*Lower max_tokens, or have it raised/,
  ],
  [
    "too little of a limit on credit",
    { refusal: "insufficient_credit", limit: "credits_per_day", never: true },
    /^What the workspace's limit credits_per_day leaves is lower/,
  ],
  [
    "a limit that is reached",
    { refusal: "rate_limited", limit: "requests_per_minute", retry_ms: 1_000 },
    /^The workspace's limit requests_per_minute is reached\. Wait/,
  ],
  [
    "a cap that is reached",
    { refusal: "rate_limited", limit: "key:requests_per_minute", never: false },
    /^The cap key:requests_per_minute is reached\. Wait/,
  ],
  [
    "a request that is larger than a limit",
    { refusal: "rate_limited", limit: "input_tokens_per_minute", never: true },
    /^The workspace's limit input_tokens_per_minute does not allow this request, even after a wait. Send a smaller one/,
  ],
  [
    "a request that can cost more than a cap",
    { refusal: "rate_limited", limit: "tag.team:credits_per_week", never: true },
    /^The cap tag.team:credits_per_week does not allow this request, even after a wait. Lower max_tokens, or have it/,
  ],
  [
    "a request that is larger than a spend limit",
    { refusal: "spend_limit_reached", never: true },
    /^This request can cost more than the account owner's spend limit .*Lower max_tokens/,
  ],
];

for (const [name, refusal, message] of ADVICE) {
  test(`tells the caller of ${name}`, () => {
    const failure = refusalFailure(refusal);
    assert.match(failure.message, message);
    assert.deepEqual([failure.kind, failure.limit], [refusal.refusal, refusal.limit]);
  });
}

for (const refusal of [{ refusal: "spend_limit_reached" }, { refusal: "unauthenticated", never: true }] as const) {
  test(`says of ${refusal.refusal} what the table of failures says`, () => {
    assert.equal(refusalFailure(refusal).message, FAILURES[refusal.refusal].message);
  });
}

test("states the wait that helps, or the one of the table", () => {
  assert.equal(refusalFailure({ refusal: "rate_limited", limit: "x", retry_ms: 0 }).retryAfterMs, 0);
  assert.equal(refusalFailure({ refusal: "insufficient_credit" }).retryAfterMs, undefined);
  const { retryAfterMs } = refusalFailure({ refusal: "idempotency_key_in_use" });
  assert.equal(retryAfterMs, refusalFailure({ refusal: "idempotency_key_in_use", never: true }).row.retryAfterMs);
});
