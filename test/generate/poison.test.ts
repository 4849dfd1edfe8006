import assert from "node:assert/strict";
import { describe } from "vitest";
import { test as base } from "../helpers/fixtures.ts";
import type { Reply } from "../helpers/vendors.ts";
import { createWorkspace } from "../helpers/workspaces.ts";

const test = base.extend("neighbour", { scope: "file" }, ({ serviceOfFile }) =>
  createWorkspace(serviceOfFile, "neighbour"),
);

/** Requests for which a vendor fails. Retries of 5xx wait as short as possible. */
const POISON: Record<string, Reply> = {
  "status 500": { status: 500, headers: { "retry-after-ms": "1" } },
  "status 403": { status: 403 },
  "status 404": { status: 404 },
  "a body that cannot be read": { raw: "no json" },
};

describe("a request for which every vendor fails", () => {
  test.for(Object.entries(POISON))(
    "does not affect another workspace: %s",
    async ([, failure], { service, vendor, neighbour }) => {
      vendor.always(({ body }) => (body.includes("poison") ? failure : {}));
      const ask = async (prompt: string, headers = {}) =>
        (await service.post("/v1/generate", { prompt, effort: "low" }, headers)).status;
      const good = () => ask("Hello", { "x-api-key": neighbour });
      assert.equal(await good(), 200);
      const statuses: number[] = [];
      for (let i = 0; i < 3; i++) {
        const poisoned = await Promise.all(Array.from({ length: 6 }, () => ask("poison")));
        assert.deepEqual(new Set(poisoned), new Set([502]));
        statuses.push(await good());
      }
      assert.deepEqual(statuses, [200, 200, 200]);
    },
  );
});
