import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

const KEY = "sk-proj-wrong0123456789abcdef";
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
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === "GET") state.probes.push(request.url ?? "");
    response.writeHead(state.isMended ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(state.isMended ? COMPLETION : REFUSAL));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { state, env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: url } };
}

test("a wrong key is named at the start, in the log, by the models, by readiness and by the failure", async (t) => {
  const { state, env } = await startRefusing(t);
  const service = await startService(t, { env: { ...env, CHORUS_PROBES: "on" } });
  assert.ok(state.probes.length > 0 && state.probes.every((path) => /^\/v1\/models\/gpt/.test(path)));
  const said = service.output().replace(/\s+/g, " ");
  assert.match(said, /openai at http:\/\/127\.0\.0\.1:\d+ refuses OPENAI_API_KEY \(401 invalid_api_key\)/);
  assert.match(said, /Set a valid key, then start again\./);
  assert.match(said, /"status":401,"code":"invalid_api_key","message":"[^"]*Incorrect API key provided: …"/);
  assert.ok(!said.includes(KEY));

  const ready = await service.get("/readyz");
  assert.equal(ready.status, 503);
  assert.equal(((await ready.json()) as { reason?: string }).reason, "vendors_refuse");

  const refused = await service.post("/v1/generate", { prompt: "hello", effort: "low" });
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [502, null]);
  assert.match(((await refused.json()) as { message: string }).message, /operator/);

  const env2 = { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken };
  const models = async () => (await runCli(["models"], env2)).stdout;
  await until(async () => /down .*401 invalid_api_key, \d+ s ago/.test(await models()));
  const metrics = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  assert.match(metrics, /chorus_model_failing\{model="[^"]+",status="401",mended_by="operator"\} 1/);
});

test("a service that has answered stays ready, and says that the vendors refuse", async (t) => {
  const { state, env } = await startRefusing(t);
  state.isMended = true;
  const service = await startService(t, { env: { ...env, CHORUS_PROBES: "on" } });
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
