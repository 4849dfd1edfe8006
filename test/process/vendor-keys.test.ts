import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "vitest";
import { makeFolder } from "../helpers/books.ts";
import { runCli } from "../helpers/cli.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

/** OpenAI quotes a short key whole. */
const KEY = "hunter2";
const REFUSAL = {
  error: { message: `Incorrect API key provided: ${KEY}.`, type: "invalid_request_error", code: "invalid_api_key" },
};
const COMPLETION = {
  object: "chat.completion",
  model: "gpt",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
};

/** A server with OpenAI's format that refuses the key until it is mended. */
async function startRefusing(t: Lifetime) {
  const state = { isMended: false, probes: [] as string[] };
  const url = await listen(t, (request, response) => {
    request.resume();
    if (request.method === "GET") state.probes.push(request.url ?? "");
    response.writeHead(state.isMended ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(state.isMended ? COMPLETION : REFUSAL));
  });
  return { state, env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1` } };
}

/** @returns the address of a server without a path */
async function listen(t: Lifetime, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a wrong key is named at the start, in the log, by the models, by readiness and by the failure", async (t) => {
  const { state, env } = await startRefusing(t);
  const service = await startOwnService(t, { env: { ...env, CHORUS_PROBES: "on" } });
  assert.ok(state.probes.length > 0 && state.probes.every((path) => /^\/v1\/models\/gpt/.test(path)));
  const said = service.output().replace(/\s+/g, " ");
  assert.match(said, /Chorus has started, but no model can answer yet\./);
  assert.match(said, /openai at http:\/\/127\.0\.0\.1:\d+ refuses OPENAI_API_KEY \(401 invalid_api_key\)/);
  assert.match(said, /so openai-fast, openai-strong cannot answer\. Set a valid OPENAI_API_KEY, then start again\./);
  assert.match(
    said,
    /"status":401,"code":"invalid_api_key","message":"Incorrect API key provided",[^}]*"action":"Set a/,
  );
  assert.ok(!said.includes(KEY));

  const ready = await service.get("/readyz");
  assert.equal(ready.status, 503);
  assert.equal(((await ready.json()) as { reason?: string }).reason, "vendors_refuse");

  const refused = await service.post("/v1/generate", { prompt: "hello", effort: "low" });
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [502, null]);
  assert.match(((await refused.json()) as { message: string }).message, /operator/);

  const env2 = { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken };
  const models = async () => (await runCli(["models"], env2)).stdout;
  await until(async () => /down .*401 invalid_api_key, \d+ s ago, \d+ times/.test(await models()));
  const advice = "waiting does not help. The vendor says: Incorrect API key provided. Set a valid OPENAI_API_KEY";
  assert.ok((await models()).includes(`openai-fast, openai-strong: ${advice}`));
  const metrics = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  assert.match(metrics, /chorus_model_failing\{model="[^"]+",status="401",mended_by="operator"\} 1/);
});

test("a service that has answered stays ready, and says that the vendors refuse", async (t) => {
  const { state, env } = await startRefusing(t);
  state.isMended = true;
  const service = await startOwnService(t, { env: { ...env, CHORUS_PROBES: "on" } });
  assert.ok(!/refuses/.test(service.output()));
  const post = () => service.post("/v1/generate", { prompt: "hello", effort: "high" });
  assert.equal((await post()).status, 200);
  state.isMended = false;
  await until(async () => {
    await (await post()).body?.cancel();
    return (await (await service.get("/readyz")).text()).includes("vendors_refuse");
  });
  assert.equal((await service.get("/readyz")).status, 200);
});

test("a vendor that does not answer the probe delays nothing", async (t) => {
  const url = await listen(t, () => undefined);
  const service = await startOwnService(t, {
    env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1`, CHORUS_PROBES: "on" },
  });
  assert.match(service.output(), /^Chorus is ready\./);
  assert.equal((await service.get("/readyz")).status, 200);
});

test("a replica whose models only a call brings back stays ready", async (t) => {
  const state = { isMended: false };
  // An unpaid account may still look models up.
  const url = await listen(t, (request, response) => {
    request.resume();
    const isFine = state.isMended || request.method === "GET";
    response.writeHead(isFine ? 200 : 402, { "content-type": "application/json" });
    response.end(JSON.stringify(isFine ? COMPLETION : { error: { message: "Insufficient Balance" } }));
  });
  const service = await startOwnService(t, {
    env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1`, CHORUS_PROBES: "on" },
  });
  const post = () => service.post("/v1/generate", { prompt: "hello", effort: "high" });
  assert.equal((await post()).status, 502);
  const ready = await service.get("/readyz");
  assert.deepEqual([ready.status, ((await ready.json()) as { reason?: string }).reason], [200, "vendors_refuse"]);
  state.isMended = true;
  assert.equal((await post()).status, 200);
  assert.deepEqual(await (await service.get("/readyz")).json(), { status: "ok" });
});

test("a reload probes the vendors, and the log says what it finds", async (t) => {
  const { state, env } = await startRefusing(t);
  state.isMended = true;
  const folder = await makeFolder(t);
  const file = join(folder, "key");
  await writeFile(file, "right");
  const { OPENAI_API_KEY: _, ...rest } = env;
  const more = { OPENAI_API_KEY_FILE: file, CHORUS_PROBES: "on", LOG_LEVEL: "info" };
  const service = await startOwnService(t, { env: { ...rest, ...more } });
  assert.doesNotMatch(service.output(), /refuses/);
  state.isMended = false;
  await writeFile(file, KEY);
  await until(() => /"model":"openai-fast".*"status":401.*a vendor refuses calls of a model/.test(service.output()));
  // OPENAI_API_KEY beside the file would be refused, and the file needs no start.
  assert.ok(service.output().includes(`"action":"Write a valid key to ${file} (OPENAI_API_KEY_FILE)."`));
  state.isMended = true;
  await writeFile(file, "right again");
  await until(async () => (await (await service.get("/readyz")).text()) === '{"status":"ok"}');
});

/** Requests for the description of a model, and how each vendor refuses a wrong key. */
const WIRES = [
  {
    ...{ vendor: "openai", status: 401, says: "401 invalid_api_key", message: "Incorrect API key provided" },
    body: REFUSAL,
  },
  {
    ...{ vendor: "anthropic", status: 401, says: "401 authentication_error", message: "invalid x-api-key" },
    body: { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } },
  },
  {
    ...{ vendor: "google", status: 400, says: "401 API_KEY_INVALID", message: "API key not valid" },
    body: {
      error: {
        ...{ code: 400, status: "INVALID_ARGUMENT", message: `API key not valid: ${KEY}. Pass a valid API key.` },
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }],
      },
    },
  },
  {
    // xAI.
    ...{ vendor: "openai-compatible", status: 400, says: "401", message: "Incorrect API key provided" },
    body: { code: "Client specified an invalid argument", error: `Incorrect API key provided: ${KEY}.` },
  },
];

test.for(["on", "off"])("a wrong key of each vendor is named, with probes %s", async (probes, { onTestFinished }) => {
  const base = await listen({ onTestFinished }, (request, response) => {
    const wire = WIRES.find(({ vendor }) => request.url?.startsWith(`/${vendor}/`));
    request.resume();
    response.writeHead(wire?.status ?? 500, { "content-type": "application/json" });
    response.end(JSON.stringify(wire?.body));
  });
  const models = WIRES.map(({ vendor }) => ({
    ...{ name: `my-${vendor}`, vendor, model: "some-model", tier: "fast", api_key_env: "SOME_KEY" },
    base_url: `${base}/${vendor}/v1`,
  }));
  const dataDir = await makeFolder({ onTestFinished });
  const file = join(dataDir, "models.json");
  await writeFile(file, JSON.stringify({ models }));
  const env = { CHORUS_MODELS: file, SOME_KEY: KEY, CHORUS_PROBES: probes };
  const service = await startOwnService({ onTestFinished }, { dataDir, env });

  const refused = await service.post("/v1/generate", { prompt: "hello", effort: "high" });
  assert.equal(refused.status, 502);
  assert.match(((await refused.json()) as { message: string }).message, /operator must/);
  const target = { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken };
  await until(async () => {
    const { stdout } = await runCli(["models"], target);
    return WIRES.every(({ vendor, says, message }) =>
      new RegExp(`^my-${vendor} .* down .* ${says}, \\d+ s ago[^]*my-${vendor}[^\n]*: waiting[^]*${message}`, "m").test(
        stdout,
      ),
    );
  });
  assert.ok(!service.output().includes(KEY));
});
