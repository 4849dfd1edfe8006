import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { test as base } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";
import { createWorkspace } from "../helpers/workspaces.ts";

/** A service with one model that takes ten calls at a time, and two workspaces. */
const test = base.extend(
  "shared",
  { scope: "file" },
  fixture(async (t) => {
    const vendor = await startVendor("openai");
    t.onTestFinished(() => vendor.close());
    const folder = await mkdtemp(join(tmpdir(), "chorus-shares-"));
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "models.json");
    const model = { name: "m", vendor: "openai", model: "gpt-4o", tier: "fast", max_concurrency: 10 };
    await writeFile(path, JSON.stringify({ models: [model] }));
    const service = await startService(t, { env: { ...vendor.env, CHORUS_MODELS: path } });
    const neighbour = await createWorkspace(service, "neighbour");
    const figure = async (name: string) => {
      const text = await (await fetch(`${service.rpcUrl}/metrics`)).text();
      const line = text.split("\n").find((line) => line.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    };
    return { service, vendor, neighbour, figure };
  }),
);

describe("calls of one model", () => {
  test("are shared between workspaces, and what does not fit is refused at once", async ({ shared }) => {
    const { service, vendor, neighbour, figure } = shared;
    vendor.always(({ body }) => (body.includes("hang") ? { end: "silent" } : {}));
    const leaving = new AbortController();
    const post = (prompt: string, more: RequestInit = {}) =>
      fetch(`${service.url}/v1/generate`, {
        method: "POST",
        body: JSON.stringify({ prompt, effort: "low" }),
        ...more,
        headers: { "content-type": "application/json", "x-api-key": service.apiKey, ...more.headers },
      });
    const flood = Array.from({ length: 120 }, () => post("hang", { signal: leaving.signal }));
    const refused: Response[] = [];
    for (const each of flood) void each.then((response) => refused.push(response)).catch(() => {});
    // Eight calls run and a hundred wait.
    await until(() => refused.length >= 12);
    assert.equal(refused.length, 12);
    for (const response of refused) {
      assert.equal(response.status, 503);
      assert.equal(JSON.parse(await response.text()).code, "overloaded");
      assert.ok(Number(response.headers.get("retry-after")) >= 1);
    }
    // They are sent before the refusals, but may arrive after them.
    await until(() => vendor.calls.length >= 8);
    assert.equal(vendor.calls.length, 8);
    assert.equal((await post("hello", { headers: { "x-api-key": neighbour } })).status, 200);
    assert.equal(await figure('chorus_model_calls{model="m",state="running"}'), 8);
    assert.equal(await figure('chorus_model_calls{model="m",state="waiting"}'), 100);
    assert.equal(await figure('chorus_model_call_limit{model="m"}'), 10);
    assert.equal(await figure('chorus_model_calls_refused_total{model="m",cause="full"}'), 12);

    leaving.abort();
    await Promise.allSettled(flood);
    await until(async () => (await figure('chorus_model_calls{model="m",state="running"}')) === 0);
    assert.equal(await figure('chorus_model_calls{model="m",state="waiting"}'), 0);
  });
});
