import assert from "node:assert/strict";
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { describe } from "vitest";
import { Scope } from "../../gen/chorus/admin/v1/keys_pb.js";
import { adminOf } from "../helpers/admin.ts";
import { test as base } from "../helpers/fixtures.ts";
import { setLimits } from "../helpers/limits.ts";
import { anthropicClient } from "./anthropic-clients.ts";

const test = base.extend(
  "connect",
  ({ service }) =>
    (apiKey = service.apiKey) =>
      anthropicClient({ baseURL: service.url, apiKey, retries: 0, fetch }),
);

const HELLO = { model: "chorus", max_tokens: 100, messages: [{ role: "user" as const, content: "Hello" }] };

describe("@anthropic-ai/sdk", () => {
  test("counts tokens, lists the models and shows the identifier of the request", async ({ connect }) => {
    const client = connect();
    const { max_tokens: _, ...uncounted } = HELLO;
    assert.equal((await client.messages.countTokens(uncounted)).input_tokens, 1);
    const models: string[] = [];
    for await (const { id } of client.models.list()) models.push(id);
    assert.deepEqual(models, ["chorus", "chorus-low", "chorus-medium", "chorus-high"]);
    assert.equal((await client.models.retrieve("chorus-high")).display_name, "Chorus high");
    assert.match((await client.messages.create(HELLO))._request_id ?? "", /^req_/);
  });

  test("makes of each failure the error that its documentation names", async ({
    connect,
    vendor,
    database: { pool },
  }) => {
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: "sdk-poor" });
    const poor = await keys.createKey({ workspace: "sdk-poor" });
    const metrics = await keys.createKey({ workspace: "sdk-poor", scopes: [Scope.METRICS] });
    const create = (key?: string, more = {}) => connect(key).messages.create({ ...HELLO, ...more });
    const busy = async () => {
      await setLimits(pool, "default", [{ name: "requests_per_minute", to: 0n }]);
      try {
        return await create();
      } finally {
        await setLimits(pool, "default", [{ name: "requests_per_minute", to: "default" }]);
      }
    };
    const upstream = (status: number) => {
      vendor.reset();
      vendor.always({ status });
      return create();
    };
    const cases: [() => Promise<unknown>, status: number, type: string, error: new (...parameters: never) => Error][] =
      [
        [() => create(undefined, { temperature: 3 }), 400, "invalid_request_error", Anthropic.BadRequestError],
        [() => create("ck_unknown"), 401, "authentication_error", Anthropic.AuthenticationError],
        [() => create(poor.secret), 402, "billing_error", APIError],
        [() => create(metrics.secret), 403, "permission_error", Anthropic.PermissionDeniedError],
        [() => connect().models.retrieve("gpt-4o"), 404, "not_found_error", Anthropic.NotFoundError],
        [() => create(undefined, { stop_sequences: Array(100_001).fill("a") }), 413, "request_too_large", APIError],
        [busy, 429, "rate_limit_error", Anthropic.RateLimitError],
        [() => upstream(500), 502, "api_error", Anthropic.InternalServerError],
        [() => upstream(429), 529, "overloaded_error", Anthropic.InternalServerError],
      ];
    for (const [call, status, type, expected] of cases) {
      const error = await call().then(
        () => assert.fail(`${status}`),
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof expected && error instanceof APIError, `${status}: ${error}`);
      const body = error.error as { error: { type: string } };
      assert.deepEqual([error.status, body.error.type], [status, type], error.message);
      assert.match(error.requestID ?? "", /^req_/);
    }
  });
});
