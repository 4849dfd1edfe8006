import assert from "node:assert/strict";
import { test } from "../../helpers/fixtures.ts";

test("answers paths of OpenAI's API that do not exist in its format", async ({ service }) => {
  for (const [path, headers] of [
    ["/v1/responses", {}],
    ["/v1/responses", { "x-api-key": "ck_unknown" }],
    ["/v1/chat/completions/gen_1", {}],
    ["/v1/embeddings?a=b", {}],
  ] as const) {
    const response = await service.post(path, {}, headers);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    assert.deepEqual([response.status, error.type, error.code], [404, "invalid_request_error", "not_found"], path);
    assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
    assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  }
});
