import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { describe } from "vitest";
import { safe } from "../../src/cli/print.ts";
import { makeFolder } from "../helpers/books.ts";
import { runCli } from "../helpers/cli.ts";
import { CHILD_ENV } from "../helpers/environment.ts";
import { test as base } from "../helpers/fixtures.ts";
import { until } from "../helpers/until.ts";

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service }) => {
  const cliEnv = { DATA_DIR: service.dataDir };
  return { cliEnv };
});

describe("chorus ask", () => {
  test("creates a key once, keeps it, and replaces it when it is refused", async ({
    service,
    vendor,
    database: { pool },
    shared: { cliEnv },
    t,
  }) => {
    const folder = await makeFolder(t);
    const env = { ...cliEnv, XDG_CONFIG_HOME: folder };
    vendor.reply({ text: ["One, ", "two."] });
    const { code, stdout, stderr } = await runCli(["ask", "count", "to", "two"], env);
    assert.deepEqual([code, stdout, stderr], [0, "One, two.\n", ""]);
    assert.match(vendor.calls.at(-1)?.body ?? "", /count to two/);
    assert.equal((await stat(join(folder, "chorus/ask-keys.json"))).mode & 0o777, 0o600);
    const keys = () =>
      pool.query<{ id: string; scopes: string[] }>("select id, scopes from api_keys where name = 'chorus ask'");
    // The key belongs to the service, so another one needs a token.
    const again = { ...env, DATA_DIR: "/nowhere", CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: "wrong" };
    assert.match((await runCli(["ask", "more"], again)).stderr, /does not accept the secret from OPERATOR_TOKEN/);
    assert.equal((await runCli(["ask", "more"], env)).code, 0);
    const [key, ...others] = await keys();
    assert.deepEqual([key?.scopes, others], [["generate"], []]);
    await pool.query("update api_keys set revoked_at = now() where id = $1", [key?.id]);
    await until(async () => (await runCli(["ask", "more"], env)).code === 0 && (await keys()).length === 2);
  });

  test("uses the workspace of an owner, and says when the key cannot be kept", async ({ service, shared, t }) => {
    const cli = (args: string[], env: Record<string, string>) =>
      runCli(args, { CHORUS_RPC_URL: service.rpcUrl, ...env });
    const operator = { OPERATOR_TOKEN: service.operatorToken };
    await cli(["workspaces", "create", "acme"], operator);
    await cli(["credits", "grant", "acme", "1000", "--reference", "a"], operator);
    const { stdout } = await cli(["--json", "owners", "create", "acme"], operator);
    const owner = { OWNER_TOKEN: JSON.parse(stdout).token, XDG_CONFIG_HOME: await makeFolder(t) };
    assert.equal((await cli(["ask", "hello"], owner)).code, 0);
    assert.match((await cli(["keys", "list"], owner)).stdout, /^key_\w+ +acme +chorus ask /m);
    const { stderr } = await runCli(["ask", "hello"], shared.cliEnv);
    assert.match(stderr, /^chorus: The key for chorus ask cannot be kept: ENOTDIR.* Set CHORUS_API_KEY, or XDG_CONFIG/);
  });

  test("streams the answer with a key, and aborts the vendor call on SIGINT", async ({
    service,
    vendor,
    shared: { cliEnv },
  }) => {
    vendor.reply({ text: ["first ", "second"], end: "hang", after: 1 });
    const child = spawn(process.execPath, [resolve(import.meta.dirname, "../../src/cli/main.ts"), "ask", "hello"], {
      env: { ...CHILD_ENV, ...cliEnv, CHORUS_API_KEY: service.apiKey },
    });
    const [piece] = await once(child.stdout, "data");
    assert.equal(String(piece), "first ");
    const call = vendor.calls.at(-1);
    child.kill("SIGINT");
    await once(child, "exit");
    assert.equal(await call?.ended, "aborted");
  });

  test("writes an answer as it is, and without its control characters to a terminal", async ({
    service,
    vendor,
    shared,
  }) => {
    const answer = "one\r\n\u05e9\u05dc\u05d5\u05dd\u200f!\u001b[31m";
    const env = { ...shared.cliEnv, CHORUS_API_KEY: service.apiKey };
    vendor.reply({ text: answer });
    assert.equal((await runCli(["ask", "hello"], env)).stdout, `${answer}\n`);
    vendor.reply({ text: answer });
    const terminal = `data:text/javascript,${encodeURIComponent("process.stdout.isTTY = true")}`;
    const args = ["--import", terminal, resolve(import.meta.dirname, "../../src/cli/main.ts"), "ask", "hello"];
    const child = spawn(process.execPath, args, { env: { ...CHILD_ENV, ...env } });
    assert.equal(await text(child.stdout), `${safe(answer)}\n`);
  });

  test("gives the last row of the terminal back when a signal ends it", async ({ service, vendor, shared }) => {
    const terminal = `Object.assign(process.stderr, { isTTY: true, rows: 24, columns: 80 });`;
    const main = resolve(import.meta.dirname, "../../src/cli/main.ts");
    const args = ["--import", `data:text/javascript,${encodeURIComponent(terminal)}`, main, "ask", "hello"];
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      vendor.reply({ text: ["first ", "second"], end: "hang", after: 1 });
      const child = spawn(process.execPath, args, {
        env: { ...CHILD_ENV, ...shared.cliEnv, CHORUS_API_KEY: service.apiKey },
      });
      const shown = text(child.stderr);
      await once(child.stdout, "data");
      child.kill(signal);
      // A shell learns from the signal that the command was interrupted.
      assert.deepEqual(await once(child, "exit"), [null, signal]);
      const written = (await shown).replaceAll("\u001b", "ESC");
      assert.match(written, /ESC\[1;23r.*ESC\[rESC\[24;1HESC\[2KESC8$/s, signal);
    }
  });

  test("prints the response as one JSON document with --json", async ({ service, shared: { cliEnv } }) => {
    const { code, stdout } = await runCli(["ask", "--json", "hello"], { ...cliEnv, CHORUS_API_KEY: service.apiKey });
    assert.equal(code, 0);
    const { id, answer, finish_reason, usage } = JSON.parse(stdout);
    assert.match(id, /^gen_/);
    assert.deepEqual([answer, finish_reason, usage.output_tokens > 0], ["Hello from openai.", "stop", true]);
  });

  test("sends standard input, files, system text and limits", async ({ service, vendor, shared: { cliEnv }, t }) => {
    const folder = await makeFolder(t);
    const file = join(folder, "notes.csv");
    await writeFile(file, "room,time\n4,10:00\n");
    const env = { ...cliEnv, CHORUS_API_KEY: service.apiKey };
    const piped = await runCli(
      ["ask", "Summarise:", "-", "--system", "Be brief.", "--max-tokens", "50"],
      env,
      "a\nb\n",
    );
    assert.equal(piped.code, 0, piped.stderr);
    const { messages, max_completion_tokens, max_tokens } = vendor.calls.at(-1)?.json ?? {};
    assert.match(JSON.stringify(messages), /Be brief.*Summarise: \\n\\na\\nb"/);
    assert.equal(max_completion_tokens ?? max_tokens, 50);
    assert.equal((await runCli(["ask"], env, "only input")).code, 0);
    assert.match(vendor.calls.at(-1)?.body ?? "", /only input/);
    assert.equal((await runCli(["ask", "Which room?", "--file", file, "--effort", "low"], env)).code, 0);
  });

  test("prints JSON that matches a schema file", async ({ service, vendor, shared: { cliEnv }, t }) => {
    const file = join(await makeFolder(t), "room.schema.json");
    await writeFile(file, '{"type":"object","properties":{"room":{"type":"integer"}},"required":["room"]}');
    vendor.reply({ text: '```json\n{"room": 4}\n```' });
    const env = { ...cliEnv, CHORUS_API_KEY: service.apiKey };
    const { code, stdout, stderr } = await runCli(["ask", "Room 4.", "--schema", file], env);
    assert.deepEqual([code, stdout], [0, '{"room":4}\n'], stderr);
    vendor.reply({ text: '{"room": 4}' });
    const document = await runCli(["ask", "Room 4.", "--schema", file, "--json"], env);
    // As POST /v1/generate returns it.
    const { structured, structured_error } = JSON.parse(document.stdout);
    assert.deepEqual([structured, structured_error], [{ room: 4 }, null]);
    vendor.reply({ text: '{"room": 12345678901234567890}' });
    const long = await runCli(["ask", "Room 4.", "--schema", file, "--json"], env);
    assert.match(long.stdout, /"room": 12345678901234567890$/m);
  });

  test("names the schema's file and the place of the fault in it", async ({ service, shared: { cliEnv }, t }) => {
    const env = { ...cliEnv, CHORUS_API_KEY: service.apiKey };
    const file = join(await makeFolder(t), "schema.json");
    const error = async (schema: string) => {
      await writeFile(file, schema);
      return (await runCli(["ask", "a", "--schema", file], env)).stderr;
    };
    const nested = await error('{"type":"object","properties":{"date":{"type":"string","format":"date"}}}');
    assert.equal(nested.indexOf(`chorus: --schema: ${file} at properties.date: The keyword "format"`), 0, nested);
    const broken = await error("{");
    assert.equal(broken.indexOf(`chorus: --schema: ${file}: The schema must be one JSON object.`), 0, broken);
  });

  test("prints a failure to standard error and exits with code 1", async ({
    service,
    vendor,
    shared: { cliEnv },
    t,
  }) => {
    vendor.always({ status: 400 });
    const cases: [args: string[], env: Record<string, string>, message: RegExp][] = [
      [["ask"], cliEnv, /Standard input is empty/],
      [["ask", "a", "--effort", "huge"], cliEnv, /Allowed choices are auto, low, medium, high/],
      [["ask", "a", "--max-tokens", "many"], cliEnv, /--max-tokens must be a whole number/],
      [["ask", "a", "--file", "/nowhere/a.pdf"], cliEnv, /--file: \/nowhere\/a\.pdf cannot be read \(ENOENT\)/],
      [["ask", "hello"], { ...cliEnv, CHORUS_API_KEY: "nope" }, /does not accept the secret from CHORUS_API_KEY/],
      [
        ["ask", "hello", "--workspace", "nope"],
        { ...cliEnv, XDG_CONFIG_HOME: await makeFolder(t) },
        /no workspace "nope"/,
      ],
      [["ask", "hello"], { ...cliEnv, CHORUS_API_KEY: service.apiKey }, /No model could answer/],
      [["ask", "--json", "hello"], { ...cliEnv, CHORUS_API_KEY: service.apiKey }, /No model could answer/],
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
