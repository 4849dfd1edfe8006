import assert from "node:assert/strict";
import { runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";

const test = base.extend("env", { scope: "file" }, OFFLINE);

test("lists requests and shows how one was answered", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  const cli = async (...args: string[]) => (await runCli(args, env)).stdout;
  const response = await service.post("/v1/generate", { prompt: "What is 17 * 23 + 4?" });
  const { id, request_id } = JSON.parse(await response.text());
  const list = await cli("runs", "list", "default");
  assert.match(list, /^AT \(UTC\) +REQUEST +LEVEL +END +IN +OUT +CREDITS +TIME$/m);
  assert.match(list, new RegExp(`^[-0-9]+ [:0-9]+  ${id} +low +ok +\\d+ +\\d+ +[.\\d]+ +\\d+ ms$`, "m"));
  const { generations } = JSON.parse(await cli("runs", "list", "default", "--json"));
  assert.deepEqual([generations[0].id, generations[0].level], [id, "low"]);

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

  const unknown = await runCli(["runs", "show", "gen_0", "default"], env);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /no request with this identifier/);
});
