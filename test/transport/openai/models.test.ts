import assert from "node:assert/strict";
import { test } from "../../helpers/fixtures.ts";

test("lists the models and returns one", async ({ service }) => {
  const list = (await (await service.get("/v1/models")).json()) as { object: string; data: { id: string }[] };
  assert.equal(list.object, "list");
  assert.deepEqual(
    list.data.map(({ id }) => id),
    ["chorus", "chorus-low", "chorus-medium", "chorus-high"],
  );
  for (const name of ["chorus-high", "chorus%2Dhigh", "%63horus-high"]) {
    const one = await service.get(`/v1/models/${name}`);
    assert.deepEqual(await one.json(), list.data[3], name);
  }
});

test("refuses in OpenAI's format on all paths of its API", async ({ service }) => {
  for (const [path, headers, status, type] of [
    ["/v1/models/gpt-4o", {}, 404, "invalid_request_error"],
    ["/v1/models/a%2Fb", {}, 404, "invalid_request_error"],
    ["/v1/models/a/b", {}, 404, "invalid_request_error"],
    ["/v1/models/%", {}, 404, "invalid_request_error"],
    ["/v1/models/", {}, 404, "invalid_request_error"],
    ["/v1/models/{model}", {}, 404, "invalid_request_error"],
    ["/v1/responses/gen_1", {}, 404, "invalid_request_error"],
    ["/v1/models/gpt-4o", { "x-api-key": "ck_unknown" }, 401, "authentication_error"],
    ["/v1/models", { "x-api-key": "ck_unknown" }, 401, "authentication_error"],
  ] as const) {
    const response = await service.get(path, headers);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    assert.deepEqual([response.status, error.type], [status, type], path);
    assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
    assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  }
});
