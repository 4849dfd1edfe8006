import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { ActivityService, Outcome } from "../../gen/chorus/admin/v1/activity_pb.js";
import { StepKind } from "../../gen/chorus/v1/generation_pb.js";
import { newGenerationId } from "../../src/contract/generation-id.ts";
import { TextKeys } from "../../src/runs/text-keys.ts";
import { adminOf } from "../helpers/admin.ts";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { test as base } from "../helpers/fixtures.ts";
import { rpcFailure, transportWith } from "../helpers/rpc.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

const activityOf = ({ rpcUrl }: Pick<TestService, "rpcUrl">, token: string) =>
  createClient(ActivityService, transportWith(rpcUrl, token));

/** A request whose answer begins and does not end before the caller leaves. */
const test = base.extend("hanging", async ({ service, vendor }, { onCleanup }) => {
  vendor.reply({ text: ["First", " words", " of many"], end: "hang", after: 2 });
  const leaving = new AbortController();
  const answer = await fetch(`${service.url}/v1/generate:stream`, {
    method: "POST",
    headers: { "x-api-key": service.apiKey, "content-type": "application/json", "x-chorus-user": "u-1" },
    body: JSON.stringify({ prompt: "Write a poem about rain.", effort: "low" }),
    signal: leaving.signal,
  });
  assert.equal(answer.status, 200);
  await answer.body?.getReader().read();
  onCleanup(() => leaving.abort());
  return { leave: () => leaving.abort() };
});

test("shows a request while it runs and when it has ended, by any replica", async ({ service, t, vendor, hanging }) => {
  const other = await startService(t, { databaseUrl: service.databaseUrl, env: vendor.env });
  for (const replica of [service, other]) {
    const activity = activityOf(replica, service.operatorToken);
    // A replica asks others when it knows of them.
    await until(async () => (await activity.listRunning({ workspace: "default" })).generations.length === 1);
    const [listed] = (await activity.listRunning({ workspace: "default" })).generations;
    assert.ok(listed);
    assert.deepEqual([listed.outcome, listed.user, listed.streamed, listed.credits], [0, "u-1", true, "0"]);
    const run = await activity.getRun({ workspace: "default", id: listed.id });
    assert.equal(run.running, true);
    assert.deepEqual([run.generation?.id, run.generation?.keyName], [listed.id, listed.keyName]);
    assert.ok((run.generation?.latencyMs ?? 0) >= listed.latencyMs);
    const byRequest = await activity.getRun({ workspace: "default", id: listed.requestId });
    assert.deepEqual([byRequest.running, byRequest.generation?.id], [true, listed.id]);
    const [step] = run.intelligenceTrace?.steps ?? [];
    assert.deepEqual([step?.kind, step?.durationMs, step?.outcome], [StepKind.ANSWER, undefined, undefined]);
  }
  const activity = activityOf(other, service.operatorToken);
  const { generations } = await activity.listRunning({ workspace: "default" });
  const id = generations[0]?.id ?? "";
  const shown = await runCli(["runs", "show", id, "default"], { DATA_DIR: service.dataDir });
  assert.match(shown.stdout, new RegExp(`^${id}: runs at level low for \\S+ ms$`, "m"));
  assert.match(shown.stdout, /^ +1 +answer +fast +\d+ ms +- +-/m);
  const list = await runCli(["runs", "list", "default", "--running"], { DATA_DIR: service.dataDir });
  assert.match(list.stdout, new RegExp(`${id} +low +\\d+ +\\S+ ms`));

  hanging.leave();
  await until(async () => !(await activity.getRun({ workspace: "default", id })).running);
  const ended = await activity.getRun({ workspace: "default", id });
  assert.deepEqual([ended.generation?.outcome, ended.running], [Outcome.CALLER_GONE, false]);
  assert.deepEqual((await activity.listRunning({ workspace: "default" })).generations, []);
});

test("shows no request of another workspace", async ({ service, hanging: _ }) => {
  const activity = activityOf(service, service.operatorToken);
  const [listed] = (await activity.listRunning({ workspace: "default" })).generations;
  assert.ok(listed);
  await runCli(["workspaces", "create", "other"], { DATA_DIR: service.dataDir });
  assert.deepEqual((await activity.listRunning({ workspace: "other" })).generations, []);
  for (const id of [listed.id, listed.requestId]) {
    const failure = await rpcFailure(activity.getRun({ workspace: "other", id }));
    assert.deepEqual([failure.code, failure.detail?.field], ["NotFound", "id"]);
  }
});

test("shows a developer the running requests of own keys only", async ({ t }) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one')");
  await pool.query("insert into people values ('per_1', 'i', 's', 'Ann', 'a@example.com', now())");
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, person_id)
     values ('ws_1', 'key_own', 'a', 'ck_a', 'mine', '{}', 'per_1'),
       ('ws_1', 'key_other', 'b', 'ck_b', '', '{}', null)`,
  );
  const request = { requestId: "req_1", streamed: true, shape: "text", effort: "auto", level: "low" } as const;
  const all = ["key_own", "key_other"].map((keyId) => {
    return { ...request, id: newGenerationId(), keyId, inputTokens: 1, latencyMs: 1 };
  });
  const running = { list: async () => all, find: async (_: string, id: string) => all.find((one) => one.id === id) };
  const { activity } = adminOf(pool, {
    runs: { flush: async () => undefined, hasOthers: async () => false, running, textKeys: new TextKeys([]) },
  });
  const developer = { kind: "member", id: "per_1", workspaceId: "ws_1", role: "developer" } as const;
  const { generations } = await activity.listRunning({}, developer);
  assert.deepEqual(
    generations.map(({ keyId, keyName }) => [keyId, keyName]),
    [["key_own", "mine"]],
  );
  const [own = assert.fail(), other = assert.fail()] = all;
  assert.equal((await activity.getRun({ id: own.id }, developer)).running, true);
  await assert.rejects(activity.getRun({ id: other.id }, developer), { kind: "unknown_entity" });
});
