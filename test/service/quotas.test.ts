import assert from "node:assert/strict";
import { test } from "node:test";
import { testDatabase } from "../helpers/database.ts";
import { startService } from "../helpers/service.ts";
import { startVendor } from "../helpers/vendors.ts";

const NO_LIMIT = { limit: null, remaining: null };

test("quotas", async (t) => {
  const vendor = await startVendor("openai", { text: "one two three" });
  t.after(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: vendor.env });
  const quotas = async () => {
    const response = await service.get("/v1/quotas");
    assert.equal(response.status, 200);
    return JSON.parse(await response.text());
  };

  await t.test("have the members of the contract, with null where there is no limit", async () => {
    const before = Date.now();
    const got = await quotas();
    assert.deepEqual(Object.keys(got), [
      "workspace",
      "tier",
      "as_of",
      "windows",
      "concurrent_requests",
      "credit",
      "spend_limits",
    ]);
    assert.deepEqual([got.workspace, got.tier, got.credit, got.spend_limits], ["default", "free", null, []]);
    const asOf = Date.parse(got.as_of);
    assert.ok(asOf >= before && asOf <= Date.now());
    assert.deepEqual(Object.keys(got.windows), ["minute", "day", "month"]);
    const now = new Date(asOf);
    const ends = {
      minute: (Math.floor(asOf / 60_000) + 1) * 60_000,
      day: Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1),
      month: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1),
    };
    for (const name of ["minute", "day", "month"] as const) {
      const { resets_at, ...window } = got.windows[name];
      assert.equal(resets_at, new Date(ends[name]).toISOString());
      const unused = { ...NO_LIMIT, used: 0 };
      assert.deepEqual(window, { requests: unused, input_tokens: unused, output_tokens: unused });
      assert.deepEqual(Object.keys(window), ["requests", "input_tokens", "output_tokens"]);
      assert.deepEqual(Object.keys(window.requests), ["limit", "used", "remaining"]);
    }
    assert.deepEqual(got.concurrent_requests, { ...NO_LIMIT, used: 0 });
  });

  await t.test("count what was used by every key of the workspace, and what runs now", async () => {
    await service.post("/v1/generate", { prompt: "a b" }).then((response) => response.text());
    await service.post("/v1/generate:stream", { prompt: "c" }).then((response) => response.text());
    const release = Promise.withResolvers<void>();
    vendor.always(async () => {
      await release.promise;
      return {};
    });
    const running = service.post("/v1/generate", { prompt: "d" });
    while (vendor.calls.length < 3) await new Promise(setImmediate);
    const { windows, concurrent_requests } = await quotas();
    assert.deepEqual(concurrent_requests, { ...NO_LIMIT, used: 1 });
    for (const window of [windows.day, windows.month]) {
      assert.equal(window.requests.used, 2);
      assert.equal(window.input_tokens.used, 3);
      assert.equal(window.output_tokens.used, 6);
    }
    release.resolve();
    assert.equal((await running).status, 200);
    assert.equal((await quotas()).concurrent_requests.used, 0);
  });

  await t.test("leave out earlier windows and other workspaces, and take no notice of parameters", async () => {
    await pool.query("update generations set created_at = created_at - interval '40 days'");
    await pool.query("insert into workspaces (id, name) values ('ws_other', 'other')");
    await pool.query(
      `insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens,
         output_tokens, cached_tokens, credits_micro, outcome, latency_ms)
       values ('ws_other', now(), 'gen_x', 'req_x', 'key_x', false, 'text', 'auto', 'low', 5, 5, 0, 0, 'ok', 1)`,
    );
    const response = await service.get("/v1/quotas?window=minute&x");
    const { windows } = JSON.parse(await response.text());
    for (const window of Object.values<Record<string, { used: number }>>(windows))
      assert.equal(window.requests?.used, 0);
  });
});
