import assert from "node:assert/strict";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import { makeFolder } from "../helpers/books.ts";
import { test } from "../helpers/fixtures.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { transports } from "../helpers/rpc.ts";
import { eventsOf, startOwnService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { type ScriptedVendor, startVendor } from "../helpers/vendors.ts";

const BODY = { prompt: "What is 17 * 23 + 4?", effort: "low" };

/** Files of the settings of a service, and functions that replace them. */
async function makeFiles(t: Lifetime, vendor: ScriptedVendor) {
  const folder = await makeFolder(t);
  const path = (name: string) => join(folder, name);
  // In one step, as tools that roll out files do it.
  const write = async (name: string, text: string) => {
    await writeFile(path(`.${name}`), text);
    await rename(path(`.${name}`), path(name));
  };
  const catalogue = (model: string, url = vendor.url, more = {}) => {
    const entry = { name: "m", vendor: "openai", model, tier: "fast", base_url: url, api_key_env: "MINE", ...more };
    return write("models.json", JSON.stringify({ models: [entry] }));
  };
  await catalogue("first");
  await write("key", "secret-1");
  await write("rates.json", '{"input":1000,"cached":1000,"output":1000}');
  await write("tiers.json", '[{"name":"free","purchased":0,"limits":{}}]');
  const env = {
    CHORUS_MODELS: path("models.json"),
    MINE_FILE: path("key"),
    CHORUS_RATES_FILE: path("rates.json"),
    CHORUS_TIERS: "",
    CHORUS_TIERS_FILE: path("tiers.json"),
    LOG_LEVEL: "info",
  };
  return { path, write, catalogue, env };
}

/** Asks for an answer. @returns the charge for each token of it, in micro-credits */
async function rateOf(service: TestService): Promise<number> {
  const { usage } = (await (await service.post("/v1/generate", BODY)).json()) as {
    usage: { input_tokens: number; output_tokens: number; credits: number };
  };
  return Math.round(usage.credits * 1e6) / (usage.input_tokens + usage.output_tokens);
}

const reloads = ({ output }: TestService) => output().match(/"reloaded the settings"/g)?.length ?? 0;

/** Entries of the audit that concern the service as a whole, oldest first. */
async function auditOf({ rpcUrl, operatorToken }: TestService): Promise<[action: string, details: object][]> {
  const client = createClient(ActivityService, transports(rpcUrl).gRPC);
  const headers = { authorization: `Bearer ${operatorToken}` };
  const { entries } = await client.listAudit({}, { headers });
  const ofService = entries.filter(({ workspaceId }) => workspaceId === "");
  return ofService.map(({ action, details }) => [action, JSON.parse(details)] as [string, object]).reverse();
}

async function lastRefusal(service: TestService): Promise<string> {
  const [action, details] = (await auditOf(service)).at(-1) ?? [];
  return action === "settings.refuse" ? (details as { reason: string }).reason : "";
}

test("reloads models, keys, rates and tiers under load, without a failed request", async ({ t }) => {
  const vendor = await startVendor("openai", { text: ["one", " two"], betweenMs: 5 });
  t.onTestFinished(() => vendor.close());
  const { write, catalogue, env } = await makeFiles(t, vendor);
  const service = await startOwnService(t, { env });

  const statuses = new Set<number>();
  let stop = false;
  const load = Array.from({ length: 8 }, async () => {
    while (!stop) {
      const response = await service.post("/v1/generate", BODY);
      statuses.add(response.status);
      await response.text();
    }
  });
  for (let i = 2; i <= 5; i++) {
    await catalogue(`model-${i}`);
    await write("key", `secret-${i}\n`);
    await write("rates.json", `{"input":${i},"cached":${i},"output":${i}}`);
    await until(() => {
      const call = vendor.calls.at(-1);
      return call?.json.model === `model-${i}` && call.headers.authorization === `Bearer secret-${i}`;
    });
    await until(async () => (await rateOf(service)) === i);
  }
  stop = true;
  await Promise.all(load);
  assert.deepEqual([...statuses], [200]);

  await write("tiers.json", '[{"name":"free","purchased":0,"limits":{"requests_per_day":1}}]');
  await until(async () => {
    const quotas = await (await service.get("/v1/quotas")).text();
    return JSON.parse(quotas).windows.day.requests.limit === 1;
  });
  const audit = await auditOf(service);
  assert.deepEqual(audit.at(-1), ["settings.reload", { changed: ["tiers"] }]);
  assert.ok(audit.every(([action]) => action === "settings.reload"));
  assert.doesNotMatch(service.output() + JSON.stringify(audit), /secret-\d/);
});

test("speaks the API that a reloaded catalogue names", async ({ t }) => {
  const vendor = await startVendor("responses");
  t.onTestFinished(() => vendor.close());
  const { catalogue, env } = await makeFiles(t, vendor);
  const service = await startOwnService(t, { env });
  assert.equal((await service.post("/v1/generate", BODY)).status, 502);
  assert.equal(vendor.calls.at(-1)?.path, "/v1/chat/completions");
  await catalogue("first", vendor.url, { api: "responses" });
  await until(async () => (await service.post("/v1/generate", BODY)).status === 200);
  assert.equal(vendor.calls.at(-1)?.path, "/v1/responses");
});

test("lets a running stream end with the models and rates with which it began", async ({ t }) => {
  const vendor = await startVendor("openai");
  const other = await startVendor("openai");
  t.onTestFinished(() => Promise.all([vendor.close(), other.close()]).then(() => undefined));
  const { write, catalogue, env } = await makeFiles(t, vendor);
  const service = await startOwnService(t, { env });
  const { promise: goOn, resolve: sendTheRest } = Promise.withResolvers<void>();
  vendor.always({ text: ["one", " two", " three"], goOn });
  const stream = eventsOf(await service.post("/v1/generate:stream", BODY));
  await stream.next();
  await catalogue("other", other.url);
  await write("rates.json", '{"input":1,"cached":1,"output":1}');
  await until(() => reloads(service) > 0);
  sendTheRest();
  let text = "one";
  let credits = 0;
  let tokens = 0;
  for await (const { event, data } of stream) {
    if (event === "delta") text += data.text;
    if (event !== "done") continue;
    const usage = data.usage as Record<string, number>;
    credits = usage.credits ?? 0;
    tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  }
  assert.equal(text, "one two three");
  assert.equal(Math.round(credits * 1e6), tokens * 1_000);
  assert.equal(other.calls.length, 0);
  assert.equal((await service.post("/v1/generate", BODY)).status, 200);
  assert.equal(other.calls.length, 1);
});

test("changes nothing for a file that is not valid, and names file and member in log and audit", async ({ t }) => {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const { path, write, catalogue, env } = await makeFiles(t, vendor);
  const service = await startOwnService(t, { env });
  const broken: [name: string, text: string, reason: RegExp][] = [
    ["models.json", '{"models":[{"name":"m","vendor":"acme"}]}', /models\.json .*models\[0\]\.vendor must be one of/],
    ["rates.json", '{"input":-1}', /^CHORUS_RATES .*"input" must be from 0 .*rates\.json \(CHORUS_RATES_FILE\)/],
    ["tiers.json", '[{"name":"free","purchased":1,"limits":{}}]', /^CHORUS_TIERS .*tiers\.json/],
    ["key", "", /^MINE_FILE names .*key, which is empty/],
  ];
  for (const [name, text, reason] of broken) {
    await write(name, text);
    // Valid, and not taken over either while the other file is not valid.
    if (name !== "rates.json") await write("rates.json", '{"input":5,"cached":5,"output":5}');
    await until(async () => reason.test(await lastRefusal(service)));
    const logged = new RegExp(reason.source.replace("^", "").replaceAll('"', '\\\\"'));
    await until(() => logged.test(service.output()));
    await service.post("/v1/generate", BODY);
    assert.equal(vendor.calls.at(-1)?.json.model, "first");
    await write("rates.json", '{"input":1000,"cached":1000,"output":1000}');
    await catalogue("first");
    await write("key", "secret-1");
    await write("tiers.json", '[{"name":"free","purchased":0,"limits":{}}]');
  }
  assert.equal(await rateOf(service), 1_000);
  await writeFile(path("models.json"), "{");
  service.process.kill("SIGHUP");
  await until(() => service.output().includes("not valid JSON"));
  assert.equal(await service.stop(), 0);
});

test("says that the files are valid again when the old content is back", async ({ t }) => {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const { write, env } = await makeFiles(t, vendor);
  const service = await startOwnService(t, { env });
  await write("rates.json", "{");
  await until(() => service.output().includes("refused to reload the settings"));
  await write("rates.json", '{"input":1000,"cached":1000,"output":1000}');
  await until(() => /"changed":\[\].*"reloaded the settings"/.test(service.output()));
  assert.equal(reloads(service), 1);
});

test("reloads all workers on SIGHUP, and records it once", async ({ t }) => {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const { catalogue, env } = await makeFiles(t, vendor);
  const service = await startOwnService(t, { env: { ...env, CHORUS_WORKERS: "2" } });
  await catalogue("second");
  service.process.kill("SIGHUP");
  const reloaded = () => [...service.output().matchAll(/"worker":(\d).*"reloaded the settings"/g)];
  await until(() => new Set(reloaded().map(([, worker]) => worker)).size === 2);
  for (let i = 0; i < 8; i++) await service.post("/v1/generate", BODY, { connection: "close" });
  assert.ok(vendor.calls.every(({ json }) => json.model === "second"));
  const audit = (await auditOf(service)).filter(([action]) => action === "settings.reload");
  assert.equal(audit.length, 1);
});
