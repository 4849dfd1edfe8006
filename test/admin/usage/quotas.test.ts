import assert from "node:assert/strict";
import { test } from "vitest";
import { QuotasResponseSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { quotas } from "../../../src/admin/usage/quotas.ts";
import type { Quotas, Usage, Window } from "../../../src/admin/usage/usage.ts";
import { encode } from "../../../src/transport/rest/encode.ts";

const CALLER = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: ["metrics"] as const };

function usageOf(found: Quotas): Pick<Usage, "quotas"> {
  return { quotas: async () => found };
}

test("gives null for limits that do not exist, and nothing below zero as remaining", async () => {
  const resetsAt = new Date("2026-11-20T12:35:00Z");
  const window = (limit: number | null): Window => ({
    resetsAt,
    requests: { limit, used: 3 },
    inputTokens: { limit: null, used: 10 },
    outputTokens: { limit: 0, used: 0 },
  });
  const found: Quotas = {
    tier: "2",
    asOf: new Date("2026-11-20T12:34:56.789Z"),
    windows: { minute: window(5), day: window(2), month: window(null) },
    concurrentRequests: { limit: 8, used: 1 },
    credit: { balance: 1.5, held: 0.25, available: 1.25 },
    spendLimits: [
      { period: "day", limit: 0.3, used: 0.1, resetsAt },
      { period: "week", limit: 1, used: 2, resetsAt },
    ],
  };
  const json = JSON.parse(encode(QuotasResponseSchema, await quotas(usageOf(found), CALLER)));
  const resets_at = "2026-11-20T12:35:00.000Z";
  const windowJson = (limit: number | null, remaining: number | null) => ({
    resets_at,
    requests: { limit, used: 3, remaining },
    input_tokens: { limit: null, used: 10, remaining: null },
    output_tokens: { limit: 0, used: 0, remaining: 0 },
  });
  assert.deepEqual(json, {
    workspace: "one",
    tier: "2",
    as_of: "2026-11-20T12:34:56.789Z",
    windows: { minute: windowJson(5, 2), day: windowJson(2, 0), month: windowJson(null, null) },
    concurrent_requests: { limit: 8, used: 1, remaining: 7 },
    credit: { balance: 1.5, held: 0.25, available: 1.25 },
    spend_limits: [
      { period: "day", limit: 0.3, used: 0.1, remaining: 0.2, resets_at },
      { period: "week", limit: 1, used: 2, remaining: 0, resets_at },
    ],
  });
});
