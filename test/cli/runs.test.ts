import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import { until } from "../helpers/until.ts";

const KEY = randomBytes(32).toString("base64");
const test = base.extend("env", { scope: "file" }, { ...OFFLINE, CHORUS_RUN_TEXT_KEY: KEY });

test("lists requests and shows how one was answered", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  const cli = async (...args: string[]) => (await runCli(args, env)).stdout;
  const response = await service.post("/v1/generate", { prompt: "What is 17 * 23 + 4?" });
  const { id, request_id, usage } = JSON.parse(await response.text());
  const list = await cli("runs", "list", "default");
  assert.match(list, /^AT \(UTC\) +REQUEST +LEVEL +END +IN +OUT +CREDITS +TIME$/m);
  assert.match(list, new RegExp(`^[-0-9]+ [:0-9]+  ${id} +low +ok +\\d+ +\\d+ +[.\\d]+ +\\d+ ms$`, "m"));
  const { generations } = JSON.parse(await cli("runs", "list", "default", "--json"));
  assert.deepEqual([generations[0].id, generations[0].level], [id, "low"]);
  // A number, as in the answer: a program compares it with others.
  assert.equal(generations[0].input_tokens, usage.input_tokens);

  const shown = await cli("runs", "show", id, "default");
  assert.match(shown, new RegExp(`^${id}: ok at level low in \\d+ ms$`, "m"));
  assert.match(shown, new RegExp(`, ${request_id}$`, "m"));
  assert.match(shown, /^\d+ input tokens, \d+ output tokens, [.\d]+ credits/m);
  assert.match(shown, /^level low: .+$/m);
  assert.match(shown, /^notice offline_models: No vendor is configured\./m);
  assert.match(shown, /^ +1 +answer +fast +\d+ ms +\d+ ms +ok/m);
  assert.match(shown, /^ +1 +offline-fast \(offline\) +\d+ ms +\d+ ms +ok +\d+ +\d+/m);
  const run = JSON.parse(await cli("runs", "show", id, "default", "--json"));
  assert.deepEqual([run.generation.id, run.calls[0].model, run.calls[0].outcome], [id, "offline-fast", "ok"]);

  // Owners choose the names of keys.
  const key = await cli("keys", "create", "--workspace", "default", "--name", "a\u202eb", "--json");
  const other = await service.post("/v1/generate", { prompt: "Hello" }, { "x-api-key": JSON.parse(key).secret });
  assert.match(await cli("runs", "show", JSON.parse(await other.text()).id, "default"), /UTC, key a\\u202eb, req_/);

  const unknown = await runCli(["runs", "show", "gen_0", "default"], env);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /no request with this identifier/);
});

test("keeps, shows and deletes the text of requests as an owner", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  const operator = await runCli(["runs", "keep-text", "3", "default"], env);
  assert.match(operator.stderr, /Operators cannot begin to keep the text of requests\./);
  const { token } = JSON.parse((await runCli(["owners", "create", "default", "--json"], env)).stdout);
  const cli = (...args: string[]) => runCli(args, { CHORUS_RPC_URL: service.rpcUrl, OWNER_TOKEN: token });
  assert.match((await cli("runs", "keep-text", "soon")).stderr, /from 1 to 30, or off, but are "soon"/);
  assert.equal((await cli("runs", "keep-text", "3")).stdout, "default keeps the text of requests for 3 days.\n");
  assert.match((await cli("workspaces", "show", "default")).stdout, /^text of requests +kept for 3 days$/m);

  const prompt = "What is 17 * 23 + 4?\u001b[31m";
  const ask = async () => JSON.parse(await (await service.post("/v1/generate", { prompt })).text());
  let shown = await cli("runs", "show", (await ask()).id, "--text");
  // A replica learns of the change within a second.
  await until(async () => {
    shown = await cli("runs", "show", (await ask()).id, "--text");
    return shown.code === 0;
  });
  assert.match(shown.stdout, /^--- user ---\nWhat is 17 \* 23 \+ 4\?\\u001b\[31m\n\n--- answer ---\n.*offline model/);
  assert.match(shown.stdout, /^Kept until [-0-9]+ [:0-9]+ UTC\. The audit log says that you have read it\.$/m);
  const { id } = await ask();
  const text = JSON.parse((await cli("runs", "show", id, "--text", "--json")).stdout);
  assert.deepEqual([text.messages, text.is_cut], [[{ role: "user", text: prompt, tool: "" }], false]);
  assert.match((await runCli(["runs", "show", id, "default", "--text"], env)).stderr, /Operators cannot read/);
  assert.match((await cli("audit")).stdout, new RegExp(`run_text\\.read.*${id}`));

  const { key } = JSON.parse((await cli("keys", "create", "--forbid-text", "--json")).stdout);
  assert.equal(key.forbids_text, true);
  const updated = JSON.parse((await cli("keys", "update", key.id, "--allow-text", "--json")).stdout);
  assert.equal(updated.key.forbids_text, false);
  assert.match((await cli("keys", "update", key.id, "--allow-text", "--forbid-text")).stderr, /exclude each other/);

  assert.equal((await cli("runs", "delete-text", id)).stdout, "Deleted the text of 1 request.\n");
  assert.match((await cli("runs", "show", id, "--text")).stderr, /No text of this request is kept/);
  assert.match((await cli("runs", "delete-text", "all")).stdout, /^Deleted the text of \d+ requests?\.$/m);
  const off = "default keeps no text of requests. What was kept is deleted.\n";
  assert.equal((await runCli(["runs", "keep-text", "off", "default"], env)).stdout, off);
});
