import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, open, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "vitest";
import { writeDiscovery } from "../../src/discovery/data-folder.ts";
import { runCli, spawnCli } from "../helpers/cli.ts";
import { CHILD_ENV } from "../helpers/environment.ts";
import { startService } from "../helpers/service.ts";

test("explains what to do without a service, a token or an address", async (t) => {
  const service = await startService(t);
  const empty = await mkdtemp(join(tmpdir(), "chorus-cli-"));
  t.onTestFinished(() => rm(empty, { recursive: true }));
  const other = createServer((_, response) => response.end("hello"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(async () => {
    await other.close();
  });
  const otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const cliEnv = { DATA_DIR: service.dataDir };
  const token = { DATA_DIR: empty, OPERATOR_TOKEN: service.operatorToken };

  const cases: [env: Record<string, string>, message: RegExp][] = [
    [{ DATA_DIR: empty }, /No operator token\. Set OPERATOR_TOKEN.*operator_token/],
    [{ DATA_DIR: "/nowhere" }, /No operator token/],
    [{ ...token, CHORUS_RPC_URL: "http://127.0.0.1:1" }, /no service at http:\/\/127\.0\.0\.1:1\. Start one/],
    [{ ...token, CHORUS_RPC_URL: "http://nohost.invalid" }, /no service at http:\/\/nohost\.invalid/],
    [{ ...token, CHORUS_RPC_URL: "127.0.0.1:8081" }, /must be like http:\/\/127\.0\.0\.1:8081/],
    [{ ...token, CHORUS_RPC_URL: service.url }, /is not the internal listener/],
    // As a service of an earlier version answers a call that it does not know.
    [{ ...token, CHORUS_RPC_URL: `${service.rpcUrl}/v2` }, /does not have this command: it is of another version/],
    [{ ...token, CHORUS_RPC_URL: otherUrl }, /is not the internal listener/],
    [{ ...token, CHORUS_RPC_URL: service.rpcUrl.replace("http:", "https:") }, /is not the internal listener/],
    [{ ...cliEnv, OPERATOR_TOKEN: "wrong" }, /does not accept the secret from OPERATOR_TOKEN/],
    [{ ...cliEnv, OPERATOR_TOKEN: "a\nb" }, /OPERATOR_TOKEN must be visible ASCII/],
  ];
  await Promise.all(
    cases.map(async ([env, message]) => {
      const { code, stdout, stderr } = await runCli(["keys", "list"], env);
      assert.deepEqual([code, stdout], [1, ""], stderr);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /^\s+at /m);
    }),
  );

  const good = [
    spawnCli(["keys", "list"], { ...token, CHORUS_RPC_URL: service.rpcUrl }),
    runCli(["--rpc-url", service.rpcUrl, "keys", "list"], { ...token, CHORUS_RPC_URL: otherUrl }),
    runCli(["keys", "list"], cliEnv),
  ];
  for (const { code, stdout } of await Promise.all(good)) {
    assert.equal(code, 0);
    assert.match(stdout, /bootstrap/);
  }
});

test("sends the token of a data folder or profile only to the service of that", async (t) => {
  const secrets: unknown[] = [];
  const other = createServer(({ headers }, response) => {
    secrets.push(headers.authorization);
    response.end();
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => void other.close());
  const otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const service = await startService(t);
  const home = await mkdtemp(join(tmpdir(), "chorus-cli-"));
  t.onTestFinished(() => rm(home, { recursive: true }));
  const of = { XDG_CONFIG_HOME: home };
  const add = ["--rpc-url", service.rpcUrl, "profile", "add", "prod"];
  assert.equal((await runCli(add, { ...of, OPERATOR_TOKEN: service.operatorToken })).code, 0);
  const here = { ...of, DATA_DIR: service.dataDir };
  const cases: [args: string[], env: Record<string, string>, kept: string][] = [
    [["--rpc-url", otherUrl], here, "operator_token"],
    [[], { ...here, CHORUS_RPC_URL: otherUrl }, "operator_token"],
    [["--profile", "prod", "--rpc-url", otherUrl], of, 'the profile "prod"'],
  ];
  for (const [args, env, kept] of cases) {
    const { code, stderr } = await runCli([...args, "keys", "list"], env);
    assert.equal(code, 1);
    assert.match(stderr, /^chorus: No operator token\. Set OPERATOR_TOKEN/);
    assert.ok(stderr.includes(`${kept} is for the service at ${service.rpcUrl}, and is sent to no other.`), stderr);
  }
  assert.deepEqual(secrets, []);
  await runCli(["--rpc-url", otherUrl, "keys", "list"], { ...here, OPERATOR_TOKEN: "op_given" });
  assert.deepEqual(secrets, ["Bearer op_given"]);
  const { port } = new URL(service.rpcUrl);
  assert.equal((await runCli(["--rpc-url", `http://localhost:${port}/`, "keys", "list"], here)).code, 0);
});

test("sends no secret to the service of a data folder that may come from somebody else", async (t) => {
  const secrets: unknown[] = [];
  const other = createServer(({ headers }, response) => {
    secrets.push(headers.authorization ?? headers["x-api-key"]);
    response.end();
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const folder = await mkdtemp(join(tmpdir(), "chorus-cli-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  const dataDir = join(folder, ".chorus");
  const given = { OPERATOR_TOKEN: "op_given", CHORUS_API_KEY: "ck_given" };
  const [here, elsewhere] = [`http://127.0.0.1:${port}`, "http://192.0.2.1:8081"];
  const run = async (address: string, args: string[], env: Record<string, string> = {}, user = process.getuid?.()) => {
    await writeDiscovery(dataDir, { rpcUrl: address, restUrl: address, operatorToken: "op_kept" });
    const preload = `data:text/javascript,process.getuid = () => ${user}`;
    const main = resolve(import.meta.dirname, "../../src/cli/main.ts");
    const options = { cwd: folder, env: { ...CHILD_ENV, ...given, ...env } };
    const child = spawn(process.execPath, ["--import", preload, main, ...args], options);
    return text(child.stderr);
  };
  for (const args of [
    ["keys", "list"],
    ["ask", "hello"],
  ]) {
    assert.match(await run(elsewhere, args), /\.chorus is not used, .* not one of this machine: http:\/\/192/);
    assert.match(await run(here, args, {}, -1), /\.chorus is not used, .* it belongs to another user\. Set DATA_DIR/);
  }
  assert.deepEqual(secrets, []);
  const without = await run(elsewhere, ["keys", "list"], { CHORUS_RPC_URL: here, OPERATOR_TOKEN: "" });
  assert.match(without, /^chorus: No operator token\. .* \(no token was taken from .*\.chorus\/operator_token\)\.$/m);
  assert.deepEqual(secrets, []);
  await run(here, ["keys", "list"]);
  await run(here, ["ask", "hello"]);
  await run(here, ["keys", "list"], { DATA_DIR: dataDir }, -1);
  assert.deepEqual(secrets, ["Bearer op_given", "ck_given", "Bearer op_given"]);
});

test("prints a link that signs in only with an address of this machine", async (t) => {
  const { url, rpcUrl, operatorToken } = await startService(t);
  const folder = await mkdtemp(join(tmpdir(), "chorus-cli-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  const dataDir = join(folder, ".chorus");
  const link = async (restUrl: string, env: Record<string, string> = {}) => {
    await writeDiscovery(dataDir, { rpcUrl, restUrl, operatorToken });
    const main = resolve(import.meta.dirname, "../../src/cli/main.ts");
    const options = { cwd: folder, env: { ...CHILD_ENV, ...env } };
    return text(spawn(process.execPath, [main, "owners", "link", "default"], options).stdout);
  };
  const elsewhere = "http://192.0.2.1:8080";
  assert.ok((await link(url)).startsWith(`${url}/console#sign-in=`));
  assert.match(await link(elsewhere), /^\/console#sign-in=.*\n\nPut the public address of the service in front/);
  assert.ok((await link(elsewhere, { DATA_DIR: dataDir })).startsWith(`${elsewhere}/console#sign-in=`));
});

test("says that the connection ended, and not that another server listens", async (t) => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n";
  // A service that dies before its answer, one that dies in the middle of it, and a proxy that ends it properly.
  const answers = ["", `${head}5\r\n\0\0\0\0\x09\r\n`, `${head}0\r\n\r\n`];
  for (const answer of answers) {
    const server = createTcpServer((socket) => {
      socket.once("data", () => {
        socket.write(answer, () => (answer.endsWith("0\r\n\r\n") ? socket.end() : socket.destroy()));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, stderr } = await runCli(["ask", "hello"], { CHORUS_RPC_URL: url, CHORUS_API_KEY: "ck_a" });
    assert.equal(code, 1);
    assert.match(stderr, /^chorus: The connection to \S+ ended before the answer was complete\. See whether/);
  }
});

test("ends when the service answers nothing any more, and waits for one that is slow", async (t) => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n";
  const delta = `${head}5\r\n\0\0\0\0\0\r\n`;
  // Makes seconds of the command line short.
  const quick = `const { setInterval: every, AbortSignal: { timeout } } = globalThis;
    globalThis.setInterval = (run, ms) => every(run, ms === 20_000 ? 250 : ms);
    AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms === 20_000 ? 250 : ms);`;
  const main = resolve(import.meta.dirname, "../../src/cli/main.ts");
  const args = ["--import", `data:text/javascript,${encodeURIComponent(quick)}`, main];
  const ask = async (command: string[], answer: string, pings: number) => {
    let left = pings;
    const server = createTcpServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", (data) => {
        if (!`${data}`.startsWith("GET / ")) socket.write(answer);
        else if (left-- > 0) socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { ...CHILD_ENV, CHORUS_RPC_URL: url, CHORUS_API_KEY: "ck_a", OPERATOR_TOKEN: "op_a" };
    const child = spawn(process.execPath, [...args, ...command], { env });
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
    assert.equal(stderr.includes(`The service at ${url} does not answer. See whether`), true, stderr);
    return { code, pings: pings - left };
  };
  assert.deepEqual(await ask(["check"], "", 0), { code: 1, pings: 1 });
  assert.deepEqual(await ask(["check"], "", 3), { code: 1, pings: 4 });
  assert.deepEqual(await ask(["ask", "hello"], "", 0), { code: 1, pings: 1 });
  assert.deepEqual(await ask(["ask", "hello"], delta, 1), { code: 1, pings: 2 });
});

test.skipIf(!existsSync("/dev/full"))("says that its output cannot be written", async () => {
  const full = await open("/dev/full", "w");
  try {
    const main = resolve(import.meta.dirname, "../../src/cli/main.ts");
    const child = spawn(process.execPath, [main, "--json", "profile", "list"], {
      env: CHILD_ENV,
      stdio: ["ignore", full.fd, "pipe"],
    });
    assert.ok(child.stderr);
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
    assert.equal(code, 1);
    assert.match(stderr, /^chorus: The output cannot be written completely: ENOSPC: /);
  } finally {
    await full.close();
  }
});

test("--help lists every command and exits with code 0", async () => {
  const [help, keys, none, wrong] = await Promise.all([
    spawnCli(["--help"]),
    spawnCli(["keys", "create", "--help"]),
    spawnCli([]),
    spawnCli(["frob"]),
  ]);
  assert.equal(help.code, 0);
  for (const word of ["keys", "ask", "--json", "--rpc-url", "OPERATOR_TOKEN"]) assert.ok(help.stdout.includes(word));
  assert.equal(keys.code, 0);
  assert.doesNotMatch(keys.stdout, /default: (\[\]|""|false)/);
  for (const word of ["--workspace", "--scope", "--expires"]) assert.ok(keys.stdout.includes(word));
  for (const command of ["alerts show", "alerts set", "caps set", "usage top", "usage export"]) {
    const { code, stdout } = await runCli([...command.split(" "), "--help"]);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /default: ""/, command);
  }
  assert.deepEqual([none.code, none.stdout], [1, ""]);
  assert.match(none.stderr, /Usage/);
  assert.deepEqual([wrong.code, wrong.stdout], [1, ""]);
  assert.match(wrong.stderr, /unknown command 'frob'/);
});

test("completes commands, options and option values", async () => {
  const complete = async (...words: string[]) => (await spawnCli(["complete", "--", ...words])).stdout;
  assert.match(await complete("key"), /^keys\t/m);
  assert.match(await complete("keys", "cr"), /^create\t/m);
  assert.match(await complete("keys", "create", "--sc"), /^--scope\t/m);
  assert.match(await complete("ask", "--effort", ""), /^low\t\nmedium\t\nhigh\t$/m);
  for (const shell of ["bash", "zsh"])
    assert.match((await spawnCli(["complete", shell])).stdout, new RegExp(`${shell} completion for chorus`));
});

test("the launcher runs the command line and returns its exit code", async () => {
  const launcher = resolve(import.meta.dirname, "../../src/cli/chorus.cjs");
  assert.match((await spawnCli(["--help"], {}, "", launcher)).stdout, /^Usage: chorus/);
  assert.equal((await spawnCli(["nonsense"], {}, "", launcher)).code, 1);
  const help = await spawnCli(["start", "--help"], {}, "", launcher);
  assert.deepEqual([help.code, help.stdout.split("\n")[0]], [0, "Usage: chorus start [options]"]);
  for (const extra of [["--port", "9000"], ["now"]]) {
    const { code, stdout, stderr } = await spawnCli(["start", ...extra], {}, "", launcher);
    assert.deepEqual([code, stdout], [1, ""], extra.join(" "));
    assert.match(stderr, /unknown option '--port'|too many arguments/);
  }
});

test("the launcher installs Node.js beside itself, also in a folder whose name has a space", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus launcher-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  const [cli, bin] = [join(folder, "src/cli"), join(folder, "bin")];
  for (const made of [cli, bin]) await mkdir(made, { recursive: true });
  await copyFile(resolve(import.meta.dirname, "../../src/cli/node.cjs"), join(cli, "node.cjs"));
  const runtimes = { [`${process.platform}-${process.arch}`]: "node-bin@24" };
  await writeFile(join(folder, "package.json"), JSON.stringify({ runtimes }));
  await writeFile(join(bin, "npm"), '#!/bin/sh\npwd >&2\nprintf "%s\\n" "$@" >&2\n', { mode: 0o755 });
  const old = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } });";
  const { stderr } = spawnSync(process.execPath, ["-e", `${old} require("./src/cli/node.cjs").findNode()`], {
    ...{ cwd: folder, encoding: "utf8", env: { PATH: `${bin}:${process.env.PATH}` } },
  });
  const [cwd = "", ...args] = stderr.trimEnd().split("\n");
  assert.equal(resolve(cwd, args[args.indexOf("--prefix") + 1] ?? ""), join(await realpath(folder), "runtime"));
  assert.deepEqual([args[0], args.at(-1)], ["install", "node-bin@24"]);
});
