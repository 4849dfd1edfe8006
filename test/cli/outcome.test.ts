import assert from "node:assert/strict";
import { makeFolder } from "../helpers/books.ts";
import { runCli } from "../helpers/cli.ts";
import { test } from "../helpers/fixtures.ts";

test("chorus outcome records how good an answer was", async ({ service, vendor, t }) => {
  const env = { DATA_DIR: service.dataDir, XDG_CONFIG_HOME: await makeFolder(t) };
  vendor.reply({ text: "The answer is 42." });
  const asked = await runCli(["--json", "ask", "What is 6 * 7?", "--effort", "low"], env);
  const { id } = JSON.parse(asked.stdout);
  for (const [options, score] of [
    [["--expected", "42"], 1],
    [["--wrong"], 0],
    [["--score", "0.25"], 0.25],
    [["--correct", "--expected", "43"], 1],
  ] as const) {
    const { code, stdout, stderr } = await runCli(["outcome", id, ...options], env);
    assert.deepEqual([code, stdout, stderr], [0, `recorded the score ${score} for ${id}\n`, ""]);
  }
  const json = JSON.parse((await runCli(["--json", "outcome", id, "--correct"], env)).stdout);
  assert.deepEqual(Object.keys(json), ["generation_id", "score", "recorded_at"]);

  for (const [args, message] of [
    [[id], /Give one of --score, --correct, --wrong and --expected/],
    [[id, "--score", "2"], /--score must be a number from 0 to 1/],
    [[id, "--score", ""], /--score must be a number from 0 to 1/],
    [[id, "--correct", "--wrong"], /cannot be used with/],
    [["gen_0", "--correct"], /no answer with this identifier from the last seven days/],
  ] as const) {
    const { code, stdout, stderr } = await runCli(["outcome", ...args], env);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, message);
  }
});
