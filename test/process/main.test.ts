import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { afterAll, test } from "vitest";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { textOf } from "../helpers/bench.ts";
import { openBrowser } from "../helpers/browser.ts";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { draining } from "../helpers/draining.ts";
import { CHILD_ENV } from "../helpers/environment.ts";
import { faultEnv } from "../helpers/faults.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { programOf } from "../helpers/program.ts";
import { rpcFailure, transports } from "../helpers/rpc.ts";
import { readEvents, startOwnService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";

const execute = promisify(execFile);
const MAIN = resolve(import.meta.dirname, "../../src/process/start.ts");

/** Environment of a first start, which generates the secrets. */
const NO_SECRETS = { BOOTSTRAP_API_KEY: "", OPERATOR_TOKEN: "" };

const folders: string[] = [];
async function dataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-main-"));
  await chmod(folder, 0o711);
  folders.push(folder);
  return folder;
}
afterAll(async () => {
  for (const folder of folders) {
    const pid = await postgresOf(folder);
    if (pid) process.kill(pid, "SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
});

/** Process id of a folder's embedded Postgres; undefined when it does not run. */
async function postgresOf(folder: string): Promise<number | undefined> {
  const pid = await readFile(join(folder, "postgres/data/postmaster.pid"), "utf8").catch(() => "");
  return pid ? Number(pid.split("\n")[0]) : undefined;
}

/** Starts a service that is expected to exit. */
async function start(env: Record<string, string>): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const folder = await dataFolder();
  const child = spawn(process.execPath, [await programOf()], {
    cwd: folder,
    env: { ...CHILD_ENV, DATA_DIR: folder, PORT: "0", RPC_PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code, stdout, stderr };
}

test("answers the curl command that the first start prints", async (t) => {
  const dataDir = await dataFolder();
  const service = await startOwnService(t, { databaseUrl: "", dataDir, env: { ...NO_SECRETS, HOST: "0.0.0.0" } });

  const [, curl = ""] = /^ {2}(curl .+)$/m.exec(service.output()) ?? [];
  assert.match(curl, /^curl http:\/\/127\.0\.0\.1:\d+\/v1\/generate -H "X-API-Key: ck_/);
  const { stdout } = await execute("sh", ["-c", curl]);
  assert.equal(JSON.parse(stdout).answer, "17 * 23 + 4 = 395");
  assert.match(service.output(), /offline models/);

  for (const name of ["operator_token", "rpc_url", "rest_url"]) {
    assert.equal((await stat(join(dataDir, name))).mode & 0o777, 0o600);
  }
});

test("names its addresses and models, and signs its owner in with a link", async (t) => {
  const service = await startOwnService(t, { databaseUrl: "", env: { ...NO_SECRETS, CHORUS_WORKERS: "2" } });
  const row = (name: string) => new RegExp(`^ +${name} +(\\S.*)$`, "m").exec(service.output())?.[1] ?? "";
  assert.equal(row("Console"), `${service.url}/console`);
  assert.equal(row("API reference"), `${service.url}/docs`);
  assert.equal(row("Models"), "offline-fast, offline-strong, from the built-in catalogue");
  const links = [...service.output().matchAll(/(http\S+)#sign-in=(li_\w+)/g)];
  assert.equal(links.length, 1, "one link of several workers");
  const [[, page, link = ""] = []] = links;
  assert.equal(page, `${service.url}/console`);
  assert.equal((await openBrowser(service.url).signIn(link)).status, 200);
});

test("prints no secret with a database of the operator, and writes it to a file on request", async (t) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const secretsFile = join(await dataFolder(), "new/secrets.env");
  const start = (env: Record<string, string> = {}) =>
    startOwnService(t, { databaseUrl, env: { ...NO_SECRETS, ...env } });
  const first = await start();
  assert.doesNotMatch(first.output(), /(ck|op|ow|li)_\w/);
  assert.match(
    first.output(),
    /no operator token yet.*Set OPERATOR_TOKEN and BOOTSTRAP_API_KEY, or set CHORUS_SECRETS_FILE/s,
  );
  await first.stop();
  const second = await start({ CHORUS_SECRETS_FILE: secretsFile, CHORUS_WORKERS: "2" });
  assert.doesNotMatch(second.output(), /(ck|op|ow|li)_\w|no operator token/);
  assert.match(second.output(), new RegExp(`New secrets +in ${secretsFile}`));
  assert.equal((await stat(secretsFile)).mode & 0o777, 0o600);
  const [, key = "", token = ""] =
    /^BOOTSTRAP_API_KEY=(ck_\w+)\nOPERATOR_TOKEN=(op_\w+)\n$/.exec(await readFile(secretsFile, "utf8")) ?? [];
  assert.equal((await second.get("/v1/quotas", { "x-api-key": key })).status, 200);
  assert.equal((await runCli(["keys", "list"], { CHORUS_RPC_URL: second.rpcUrl, OPERATOR_TOKEN: token })).code, 0);
  assert.equal((await pool.query("select from ledger where reference = 'starting grant'")).length, 1);
});

test("reuses the database of a killed service", async (t) => {
  const dataDir = await dataFolder();
  const service = await startOwnService(t, { databaseUrl: "", dataDir, env: NO_SECRETS });
  const [key = ""] = /ck_\w+/.exec(service.output()) ?? [];
  const postgres = await postgresOf(dataDir);
  assert.equal(await service.stop("SIGKILL"), "SIGKILL");
  const next = await startOwnService(t, { databaseUrl: "", dataDir, env: NO_SECRETS });
  assert.equal(await postgresOf(dataDir), postgres);
  assert.doesNotMatch(next.output(), /ck_|op_/);
  assert.match(next.output(), /X-API-Key: \$CHORUS_API_KEY/);
  const answer = await next.post("/v1/generate", { prompt: "What is 2 + 2?" }, { "x-api-key": key });
  assert.equal(((await answer.json()) as { answer: string }).answer, "2 + 2 = 4");
  assert.equal(await next.stop(), 0);
  assert.equal(await postgresOf(dataDir), undefined);
});

test("uses configured secrets and never prints them", async (t) => {
  const service = await startOwnService(t);
  assert.ok(!service.output().includes(service.apiKey) && !service.output().includes(service.operatorToken));
  assert.doesNotMatch(service.output(), /ck_|op_/);
});

test("two services on one data folder share its database, and the last one stops it", async (t) => {
  const dataDir = await dataFolder();
  const options = { databaseUrl: "", dataDir, env: NO_SECRETS };
  const [one, other] = await Promise.all([startOwnService(t, options), startOwnService(t, options)]);
  const shown = [one, other].map(({ output }) => output()).filter((output) => output.includes("API key  "));
  assert.equal(shown.length, 1, "secrets printed once");
  const key = /ck_\w+/.exec(shown[0] ?? "")?.[0] ?? "";
  for (const { get } of [one, other]) assert.equal((await get("/v1/quotas", { "x-api-key": key })).status, 200);
  const listed = await runCli(["keys", "list"], { DATA_DIR: dataDir });
  assert.match(listed.stdout, /bootstrap/);
  const address = () => readFile(join(dataDir, "rpc_url"), "utf8").catch(() => "");
  const [first, second] = (await address()).trim() === one.rpcUrl ? [one, other] : [other, one];
  assert.equal(await first.stop(), 0);
  assert.equal((await second.get("/v1/quotas", { "x-api-key": key })).status, 200);
  // The command line finds the remaining service.
  await until(async () => (await address()).trim() === second.rpcUrl);
  assert.match((await runCli(["keys", "list"], { DATA_DIR: dataDir })).stdout, /bootstrap/);
  assert.equal(await second.stop("SIGINT"), 0);
  assert.equal(await address(), "");
  assert.equal(await postgresOf(dataDir), undefined);
});

test("the command line finds the other service of a data folder when the last one was killed", async (t) => {
  const dataDir = await dataFolder();
  const options = { databaseUrl: "", dataDir, env: NO_SECRETS };
  const first = await startOwnService(t, options);
  const second = await startOwnService(t, options);
  const addresses = async () => {
    const files = ["rpc_url", "rest_url"].map((name) => readFile(join(dataDir, name), "utf8"));
    return (await Promise.all(files)).join("").trim();
  };
  assert.equal(await addresses(), `${second.rpcUrl}\n${second.url}`);
  await second.stop("SIGKILL");
  await until(async () => (await addresses()) === `${first.rpcUrl}\n${first.url}`);
  assert.match((await runCli(["keys", "list"], { DATA_DIR: dataDir })).stdout, /bootstrap/);
});

test("replicas that start concurrently on an empty database share keys and revocations", async (t) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  await pool.query("drop schema public cascade");
  await pool.query("create schema public");
  const secretsFile = join(await dataFolder(), "secrets");
  const options = { databaseUrl, env: { ...NO_SECRETS, CHORUS_SECRETS_FILE: secretsFile } };
  const replicas = await Promise.all([
    startOwnService(t, options),
    startOwnService(t, options),
    startOwnService(t, options),
  ]);
  assert.equal(replicas.filter(({ output }) => output().includes("New secrets")).length, 1);
  const [, operatorToken = ""] = /OPERATOR_TOKEN=(\S+)/.exec(await readFile(secretsFile, "utf8")) ?? [];
  const [one, other] = replicas as [TestService, TestService, TestService];

  const chorus = (...args: string[]) =>
    runCli([...args, "--json"], { CHORUS_RPC_URL: one.rpcUrl, OPERATOR_TOKEN: operatorToken });
  const { key, secret } = JSON.parse((await chorus("keys", "create", "--workspace", "default")).stdout);
  const status = async () => (await other.get("/v1/quotas", { "x-api-key": secret })).status;
  assert.equal(await status(), 200);
  // Keeps the key in use, so that the other replica caches it.
  const refusedAt = (async () => {
    await until(async () => (await status()) !== 200);
    return performance.now();
  })();
  assert.equal((await chorus("keys", "revoke", key.id)).code, 0);
  const revoked = performance.now();
  const ms = Math.max(0, (await refusedAt) - revoked);
  await t.annotate(`a revoked key was refused by another replica after ${Math.round(ms)} ms`);
  // Without a message between the replicas it takes half a minute.
  assert.ok(ms < 10_000);

  const { secret: brief } = JSON.parse((await chorus("keys", "create", "--workspace", "default")).stdout);
  assert.equal((await other.get("/v1/quotas", { "x-api-key": brief })).status, 200);
  await pool.query("update api_keys set expires_at = now() where revoked_at is null and name = ''");
  const expired = performance.now();
  await until(async () => (await other.get("/v1/quotas", { "x-api-key": brief })).status !== 200);
  assert.ok(performance.now() - expired < 10_000);
});

test("SIGTERM: keeps its heartbeat while requests run, so that no other replica ends its grants", async (t) => {
  const released = Promise.withResolvers<void>();
  const vendor = await startVendor("openai", async () => {
    await released.promise;
    return {};
  });
  t.onTestFinished(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startOwnService(t, { databaseUrl, env: { ...vendor.env, CHORUS_DRAIN_MS: "60000" } });
  const answer = service.post("/v1/generate", { prompt: "slow" });
  await until(() => vendor.calls.length > 0);
  const exit = service.stop("SIGTERM");
  await draining(service.url);
  const beats = new Set<number>();
  await until(async () => {
    const [row] = await pool.query<{ at: Date }>("select beat_at as at from replicas");
    beats.add(row?.at.getTime() ?? 0);
    return beats.size === 3;
  });
  released.resolve();
  assert.equal((await answer).status, 200);
  assert.equal(await exit, 0);
  assert.deepEqual(await pool.query("select from grants"), []);
});

test("SIGTERM: reports not ready, lets requests finish, and aborts the rest without charge", async (t) => {
  const drainMs = 6_000;
  const vendor = await startVendor("openai", ({ body }) =>
    body.includes("slow")
      ? { text: ["one ", "two ", "three"], betweenMs: 200, firstMs: 100 }
      : body.includes("hang")
        ? { text: ["one ", "two"], after: 1, end: "hang" }
        : { end: "silent" },
  );
  t.onTestFinished(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startOwnService(t, { databaseUrl, env: { ...vendor.env, CHORUS_DRAIN_MS: `${drainMs}` } });
  const headers = { "x-api-key": service.apiKey };
  const { gRPC, "Connect over HTTP/1.1": connect } = transports(service.rpcUrl);
  const rpc = createClient(GenerationService, gRPC);

  const watched: Status[] = [];
  const watch = (async () => {
    for await (const { status } of createClient(Health, gRPC).watch({})) watched.push(status);
  })().catch(() => undefined);
  const stream = (prompt: string) => service.post("/v1/generate:stream", { prompt }).then(readEvents);
  const streamRpc = async (prompt: string) => {
    const events = [];
    for await (const { event } of rpc.streamGenerate({ prompt }, { headers })) events.push(event);
    return events;
  };
  const slow = stream("slow");
  const slowWhole = service.post("/v1/generate", { prompt: "slow" }).then((response) => response.json());
  const hung = stream("hang");
  const hungRpc = streamRpc("hang");
  const silent = service.post("/v1/generate", { prompt: "silent" });
  const silentRpc = rpcFailure(rpc.generate({ prompt: "silent" }, { headers }));
  await until(() => vendor.calls.length >= 6 && watched.length > 0);

  const began = performance.now();
  const exit = service.stop("SIGTERM");
  // The signal has been sent.
  await draining(service.url);
  assert.equal((await service.get("/healthz")).status, 200);
  const refused = await service.post("/v1/generate", { prompt: "late" });
  assert.equal(refused.status, 503);
  assert.deepEqual([refused.headers.get("retry-after"), refused.headers.get("connection")], ["1", "close"]);
  assert.equal(((await refused.json()) as { code: string }).code, "overloaded");
  const late = await rpcFailure(createClient(GenerationService, connect).generate({ prompt: "late" }, { headers }));
  assert.deepEqual([late.code, late.detail?.code], ["Unavailable", "overloaded"]);
  const health = createClient(Health, transports(service.rpcUrl).gRPC);
  assert.equal((await health.check({ service: "chorus.v1.GenerationService" })).status, Status.NOT_SERVING);

  assert.equal(textOf(await slow), "one two three");
  assert.equal((await slow).at(-1)?.data.finish_reason, "stop");
  assert.equal(((await slowWhole) as { answer: string }).answer, "one two three");
  const last = (await hung).at(-1);
  assert.equal(last?.event, "done");
  assert.equal(last.data.finish_reason, "length");
  assert.equal((last.data.usage as { credits: number }).credits, 0);
  assert.equal((last.data.notices as { code: string }[]).at(-1)?.code, "cut_short");
  const done = (await hungRpc).at(-1);
  assert.ok(done?.case === "done" && done.value.usage?.credits === 0);
  assert.equal((await silent).status, 503);
  assert.equal((await silentRpc).detail?.code, "overloaded");
  assert.equal(await exit, 0);
  const took = performance.now() - began;
  assert.ok(took > drainMs - 50 && took < drainMs + 20_000, `${took} ms`);
  await watch;
  assert.deepEqual(watched, [Status.SERVING, Status.NOT_SERVING]);
  assert.deepEqual(
    await pool.query(
      "select outcome, count(*), sum(credits_micro) > 0 as charged from generations group by 1 order by 1",
    ),
    [
      { outcome: "cut_short", count: 2n, charged: false },
      { outcome: "ok", count: 2n, charged: true },
      { outcome: "overloaded", count: 2n, charged: false },
    ],
  );
});

test("counts a doubled Ctrl-C once, and exits at once on a later signal", async (t) => {
  const vendor = await startVendor("openai", { text: ["one ", "two"], after: 1, end: "hang" });
  t.onTestFinished(() => vendor.close());
  const run = async (drainMs: number) => {
    const service = await startOwnService(t, { env: { ...vendor.env, CHORUS_DRAIN_MS: `${drainMs}` } });
    // Has its headers when the first text was written.
    const response = await service.post("/v1/generate:stream", { prompt: "a" });
    return { service, events: readEvents(response).catch(() => []) };
  };
  const [shortDrain, longDrain] = await Promise.all([run(400), run(60_000)]);

  const exit = shortDrain.service.stop("SIGINT");
  shortDrain.service.process.kill("SIGINT");
  const forced = longDrain.service.stop("SIGINT");
  assert.equal(await exit, 0);
  assert.equal((await shortDrain.events).at(-1)?.event, "done");

  // A second signal counts only if it arrives more than a second after the first.
  await draining(longDrain.service.url);
  await sleep(1_100);
  assert.equal(longDrain.service.process.exitCode, null);
  longDrain.service.process.kill("SIGINT");
  assert.equal(await forced, 1);
  await longDrain.events;
});

test("a signal during the start stops the service and its Postgres", async () => {
  const dataDir = await dataFolder();
  const child = spawn(process.execPath, [MAIN], {
    cwd: dataDir,
    env: { ...CHILD_ENV, DATA_DIR: dataDir, PORT: "0", RPC_PORT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const exit = once(child, "exit");
  // The folder appears early: the rest of the start takes most of a second.
  await until(() => stat(join(dataDir, "postgres")).catch(() => undefined));
  child.kill("SIGTERM");
  const [code] = await exit;
  assert.equal(code, 0, (await output).join());
  assert.doesNotMatch((await output).join(), /ready|cannot/);
  assert.equal(await postgresOf(dataDir), undefined);
});

test("names a port in use, and prints the secrets at the next start", async (t) => {
  const taken = createServer();
  await new Promise<void>((done) => taken.listen(0, "127.0.0.1", done));
  t.onTestFinished(async () => {
    await taken.close();
  });
  const port = String((taken.address() as { port: number }).port);
  const dataDir = await dataFolder();
  for (const name of ["PORT", "RPC_PORT"]) {
    const { code, stdout, stderr } = await start({ DATA_DIR: dataDir, [name]: port });
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(
      stderr,
      new RegExp(`^Chorus cannot start\\. 127\\.0\\.0\\.1:${port} .*another program.* ${name} `, "m"),
    );
    assert.equal(await postgresOf(dataDir), undefined);
  }
  const service = await startOwnService(t, { databaseUrl: "", dataDir, env: NO_SECRETS });
  assert.match(service.output(), /API key +ck_/);
  assert.equal(await service.stop(), 0);
});

/** Creates a database with an encoding that has few characters. @returns its address */
async function latinDatabase(t: Lifetime): Promise<string> {
  const { url, pool } = await testDatabase(t);
  const latin = new URL(url);
  latin.pathname += "_latin";
  const name = latin.pathname.slice(1);
  await pool.query(`create database ${name} encoding 'LATIN1' locale 'C' template template0`);
  t.onTestFinished(async () => void (await pool.query(`drop database ${name}`)));
  return latin.href;
}

test("names an unusable setting and exits with code 1", async (t) => {
  const file = join(await dataFolder(), "file");
  await writeFile(file, "");
  const { url } = await testDatabase(t);
  const wrong = new URL(url);
  wrong.password = "not-the-password";
  const missing = new URL(url);
  missing.pathname = "/no_such_database";
  const latin = await latinDatabase(t);
  const cases: [env: Record<string, string>, message: RegExp][] = [
    [{ PORT: "http" }, /PORT must be a whole number/],
    [{ HOST: "192.0.2.1", DATABASE_URL: url }, /192\.0\.2\.1:0 .*does not have that address.* HOST/],
    [{ RPC_HOST: "nohost.invalid", DATABASE_URL: url }, /nohost\.invalid:0 .* RPC_HOST/],
    [{ CHORUS_SECRETS_FILE: join(file, "s"), DATABASE_URL: url }, /CHORUS_SECRETS_FILE: .* cannot be written/],
    [{ CHORUS_SECRETS_FILE: dirname(file), DATABASE_URL: url }, /CHORUS_SECRETS_FILE: .* cannot be written \(EISDIR\)/],
    [{ BOOTSTRAP_API_KEY: "short", DATABASE_URL: url }, /BOOTSTRAP_API_KEY must have 16/],
    [{ DATA_DIR: join(file, "data") }, /DATA_DIR cannot be used: ENOTDIR/],
    [{ DATABASE_URL: wrong.href }, /password authentication failed.*DATABASE_URL/],
    [{ DATABASE_URL: missing.href }, /database "no_such_database" does not exist.*DATABASE_URL/],
    [{ DATABASE_URL: `${url}?sslmode=require` }, /does not support SSL.*DATABASE_URL/],
    [{ DATABASE_URL: `${url}?options=-c%20datestyle%3DGerman` }, /The database has datestyle "German, .*'ISO'/],
    [{ DATABASE_URL: `${url}?options=-c%20array_nulls%3Doff` }, /The database has array_nulls = off, .* = on/],
    [
      { DATABASE_URL: `${url}?options=-c%20default_transaction_isolation%3Dserializable` },
      /The database has default_transaction_isolation "serializable", .* = 'read committed'/,
    ],
    [{ DATABASE_URL: latin }, /The database has the encoding LATIN1, .*encoding 'UTF8' template template0/],
    [{ DATABASE_URL: url, DATABASE_LISTEN_URL: "postgres://u:a#b@host/d" }, /DATABASE_LISTEN_URL must be an address/],
    [{ DATABASE_URL: url, DATABASE_LISTEN_URL: `${url}?sslmode=on` }, /DATABASE_LISTEN_URL has sslmode=on/],
  ];
  await Promise.all(
    cases.map(async ([env, message]) => {
      const { code, stdout, stderr } = await start(env);
      assert.deepEqual([code, stdout], [1, ""], stderr);
      assert.match(stderr, /^Chorus cannot start\. /m);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /not-the-password|^\s+at /m);
    }),
  );
});

test("starts without a writable data folder when a database is configured", async (t) => {
  const folder = await dataFolder();
  const file = join(folder, "file");
  await writeFile(file, "");
  const service = await startOwnService(t, { env: { DATA_DIR: join(file, "data"), TMPDIR: folder } });
  assert.equal((await service.get("/readyz")).status, 200);
  assert.equal(await service.stop(), 0);
  assert.match(service.output(), /could not write to DATA_DIR/);
  const left = (await readdir(folder)).filter((name) => name.startsWith("chorus-journal-"));
  assert.deepEqual(left, [], "no temporary folder without entries");
});

test("starts without any writable folder when a database is configured", async (t) => {
  const file = join(await dataFolder(), "file");
  await writeFile(file, "");
  const service = await startOwnService(t, { env: { DATA_DIR: join(file, "data"), TMPDIR: join(file, "tmp") } });
  assert.equal((await service.post("/v1/generate", { prompt: "What is 2 + 2?" })).status, 200);
  assert.equal(await service.stop(), 0);
  assert.match(service.output(), /could not write to DATA_DIR or a temporary folder; .* answers fail/);
});

test.skipIf(!existsSync("/dev/full"))("starts where standard output is a file on a full disk", async (t) => {
  const { url } = await testDatabase(t);
  const folder = await dataFolder();
  const full = await open("/dev/full", "w");
  const child = spawn(process.execPath, [await programOf()], {
    cwd: folder,
    env: { ...CHILD_ENV, DATABASE_URL: url, DATA_DIR: folder, PORT: "0", RPC_PORT: "0" },
    stdio: ["ignore", full.fd, "pipe"],
  });
  t.onTestFinished(() => void child.kill("SIGKILL"));
  await full.close();
  const exit = once(child, "exit");
  let log = "";
  child.stderr?.on("data", (chunk) => {
    log += chunk;
  });
  await until(() => child.exitCode !== null || log.includes("could not write to standard output"));
  assert.equal(child.exitCode, null, log);
  assert.equal((await fetch(`${(await readFile(join(folder, "rest_url"), "utf8")).trim()}/readyz`)).status, 200);
  child.kill("SIGTERM");
  assert.deepEqual(await exit, [0, null]);
});

test("a rejected promise that nothing awaits is logged and counted, and requests go on", async (t) => {
  const service = await startOwnService(t, { env: faultEnv("rejection") });
  service.process.kill("SIGUSR2");
  const count = async () => {
    const text = await (await fetch(`${service.rpcUrl}/metrics`)).text();
    return /^chorus_internal_errors_total\{where="promise"\} (\d+)$/m.exec(text)?.[1];
  };
  await until(async () => (await count()) === "1");
  assert.equal((await service.post("/v1/generate", { prompt: "What is 2 + 2?" })).status, 200);
  assert.equal(await service.stop(), 0);
  assert.match(service.output(), /^\{"level":50,.*"where":"promise","errors":1,"cause":\{"name":"TypeError"/m);
  assert.doesNotMatch(service.output(), /injected/);
});

test("an uncaught exception ends the process with its name and place as the last line of the log", async (t) => {
  const service = await startOwnService(t, { env: { ...faultEnv("exception"), LOG_LEVEL: "info" } });
  for (let i = 0; i < 20; i++) await service.get("/v1/quotas");
  assert.equal(await service.stop("SIGUSR2"), 1);
  const lines = service.output().trimEnd().split("\n");
  assert.equal(lines.filter((line) => line.includes('"msg":"request"')).length, 20);
  assert.match(lines.at(-1) ?? "", /^\{"level":60,.*"name":"TypeError","at":.*uncaught exception"\}$/);
  assert.doesNotMatch(service.output(), /injected/);
});
