import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { test } from "node:test";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { CHILD_ENV } from "../helpers/environment.ts";
import { startService } from "../helpers/service.ts";
import { startVendor } from "../helpers/vendors.ts";

test("ask prints the answer as it comes", async (t) => {
  const vendor = await startVendor("openai");
  t.after(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: vendor.env });
  const beside = { DATA_DIR: service.dataDir };

  await t.test("for an operator without a key, with one that does not outlive the question", async () => {
    vendor.reply({ text: ["One, ", "\u001b[31mtwo."] });
    const { code, stdout, stderr } = await runCli(["ask", "count", "to", "two"], beside);
    assert.deepEqual([code, stdout, stderr], [0, "One, \\u001b[31mtwo.\n", ""]);
    assert.match(vendor.calls.at(-1)?.body ?? "", /count to two/);
    const keys = await pool.query("select scopes, revoked_at from api_keys where name = 'chorus ask'");
    assert.equal(keys.length, 1);
    assert.ok(keys[0]?.revoked_at);
  });

  await t.test("with a key, piece by piece", async () => {
    vendor.reply({ text: ["first ", "second"], end: "hang", after: 1 });
    const child = spawn(process.execPath, [resolve(import.meta.dirname, "../../src/cli/main.ts"), "ask", "hello"], {
      env: { ...CHILD_ENV, ...beside, CHORUS_API_KEY: service.apiKey },
    });
    const [piece] = await once(child.stdout, "data");
    assert.equal(String(piece), "first ");
    const call = vendor.calls.at(-1);
    child.kill("SIGINT");
    await once(child, "exit");
    assert.equal(await call?.ended, "aborted");
  });

  await t.test("whole, as one JSON document", async () => {
    const { code, stdout } = await runCli(["ask", "--json", "hello"], { ...beside, CHORUS_API_KEY: service.apiKey });
    assert.equal(code, 0);
    const { id, answer, finish_reason, usage } = JSON.parse(stdout);
    assert.match(id, /^gen_/);
    assert.deepEqual([answer, finish_reason, usage.output_tokens > 0], ["Hello from openai.", "stop", true]);
  });

  await t.test("a failure goes to standard error, with exit code 1", async () => {
    vendor.always({ status: 400 });
    const cases: [args: string[], env: Record<string, string>, message: RegExp][] = [
      [["ask"], beside, /prompt/],
      [["ask", "hello"], { ...beside, CHORUS_API_KEY: "nope" }, /does not accept the secret of CHORUS_API_KEY/],
      [["ask", "hello", "--workspace", "nope"], beside, /no workspace "nope"/],
      [["ask", "hello"], { ...beside, CHORUS_API_KEY: service.apiKey }, /No model could answer/],
      [["ask", "--json", "hello"], { ...beside, CHORUS_API_KEY: service.apiKey }, /No model could answer/],
      [["ask", "hello"], { CHORUS_API_KEY: "a", CHORUS_RPC_URL: "http://127.0.0.1:1" }, /There is no service at/],
    ];
    await Promise.all(
      cases.map(async ([args, env, message]) => {
        const { code, stdout, stderr } = await runCli(args, env);
        assert.deepEqual([code, stdout], [1, ""], stderr);
        assert.match(stderr, message);
        assert.doesNotMatch(stderr, /^\s+at /m);
      }),
    );
  });
});
