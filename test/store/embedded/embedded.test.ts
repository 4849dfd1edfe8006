import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { startEmbedded } from "../../../src/store/embedded/embedded.ts";
import { openPool } from "../../../src/store/pool.ts";
import { copyCluster } from "../../helpers/cluster.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { until } from "../../helpers/until.ts";

const isRoot = userInfo().uid === 0;
const EMBEDDED = join(import.meta.dirname, "../../../src/store/embedded/embedded.ts");
const nobody = { uid: 65_534, gid: 65_534 };
/** Some tests run a service as another user, which needs read access to this project. */
const canBeNobody =
  isRoot &&
  spawnSync(process.execPath, ["--eval", `fs.accessSync(${JSON.stringify(EMBEDDED)})`], {
    ...nobody,
    cwd: "/",
    env: {},
  }).status === 0;

test("creates a durable database at the first start and opens it at the next", async (t) => {
  const dataDir = await folder(t);
  const first = await start(dataDir);
  await using(first.url, async (query) => {
    await query("create table kept (text text)");
    await query("insert into kept values ('äö')");
    const settings = await query(
      "select name, setting from pg_settings where name in " +
        "('fsync', 'synchronous_commit', 'listen_addresses', 'password_encryption') order by 1",
    );
    assert.deepEqual(
      settings.map(({ setting }) => setting),
      ["on", "127.0.0.1", "scram-sha-256", "on"],
    );
    assert.deepEqual(
      await query(
        "select current_setting('server_version_num')::integer / 10000 as major, upper('ä') as upper, " +
          "current_setting('timezone') as zone",
      ),
      [{ major: 18, upper: "Ä", zone: "UTC" }],
    );
  });
  assert.equal((await stat(join(dataDir, "postgres/password"))).mode & 0o777, 0o600);
  const wrong = openPool(first.url.replace(/:[^:@]+@/, ":wrong@"));
  await assert.rejects(wrong.query("select 1"), /password authentication failed/);
  await wrong.end();
  await first.stop();
  await first.stop();
  assert.equal(await isServed(dataDir), false);

  const second = await start(dataDir);
  await using(second.url, async (query) => assert.deepEqual(await query("select text from kept"), [{ text: "äö" }]));
  await second.stop();
});

test("shares one server between services on the same folder, and stops it with the last service", async (t) => {
  const dataDir = await folder(t);
  const services = await Promise.all(Array.from({ length: 4 }, () => start(dataDir)));
  assert.equal(new Set(services.map(({ url }) => url)).size, 1);
  const [first, ...others] = services;
  assert.ok(first);
  await Promise.all(others.map(({ stop }) => stop()));
  assert.equal(await isServed(dataDir), true);
  const [late] = await Promise.all([start(dataDir), first.stop()]);
  await using(late.url, async (query) => assert.equal((await query("select 1")).length, 1));
  await Promise.all([late.stop(), start(dataDir).then(({ stop }) => stop())]);
  assert.equal(await isServed(dataDir), false);
});

test("uses a running server that a killed service left behind", async (t) => {
  const dataDir = await made(t);
  const { child, url } = await startChild(dataDir);
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.equal(await isServed(dataDir), true);
  const service = await start(dataDir);
  assert.equal(service.url, url);
  // Postgres notices some time later that the killed service has gone.
  const pool = openPool(url);
  const users = "select count(*)::int as n from pg_locks where locktype = 'advisory'";
  await until(async () => (await pool.query<{ n: number }>(users))[0]?.n === 1);
  await pool.end();
  await service.stop();
  assert.equal(await isServed(dataDir), false);
});

test("keeps the server running after Ctrl-C, which signals the whole process group", async (t) => {
  const dataDir = await made(t);
  const { child } = await startChild(dataDir, { detached: true });
  assert.ok(child.pid);
  process.kill(-child.pid, "SIGINT");
  await once(child, "exit");
  assert.equal(await isServed(dataDir), true);
  await (await start(dataDir)).stop();
});

test("restarts a server that dies, at the same address", async (t) => {
  const dataDir = await made(t);
  const lines: string[] = [];
  const services = [
    await start(dataDir, (line, level) => lines.push(`${level}: ${line}`)),
    await start(dataDir),
  ] as const;
  const pool = openPool(services[0].url);
  await pool.query("create table kept (id integer)");
  process.kill(await serverPid(dataDir), "SIGKILL");
  await until(() =>
    pool.query("select from kept").then(
      () => true,
      () => false,
    ),
  );
  await until(() => lines.includes("info: The embedded Postgres is back."));
  assert.match(lines.join("\n"), /warn: .* was lost/);
  await pool.end();
  for (const service of services) await service.stop();
  assert.equal(await isServed(dataDir), false);
});

test("stops a server that it is starting again", async (t) => {
  const dataDir = await made(t);
  const service = await start(dataDir);
  const killed = await serverPid(dataDir);
  process.kill(killed, "SIGKILL");
  await until(async () => (await serverPid(dataDir).catch(() => killed)) !== killed);
  await service.stop();
  assert.equal(await isServed(dataDir), false);
});

test("ignores a postmaster.pid from before a crash, even if another process has the same id", async (t) => {
  const dataDir = await made(t);
  await (await start(dataDir)).stop();
  const data = join(dataDir, "postgres/data");
  const { uid, gid } = await stat(data);
  const other = spawn("sleep", ["60"], isRoot ? { uid, gid } : {});
  t.onTestFinished(() => void other.kill());
  for (const pid of [other.pid, 2 ** 22 + 1]) {
    await writeFile(join(data, "postmaster.pid"), `${pid}\n${data}\n1700000000\n1\n\n127.0.0.1\n 1 1\nready   \n`);
    const service = await start(dataDir);
    await using(service.url, async (query) => assert.equal((await query("select 1")).length, 1));
    await service.stop();
  }
});

test("refuses an unusable folder and says what to do", async (t) => {
  const dataDir = await folder(t);
  await writeFile(join(dataDir, "file"), "");
  await assert.rejects(start(join(dataDir, "file")), /DATA_DIR cannot be used: EEXIST at .*file/);
  await mkdir(join(dataDir, "postgres/data"), { recursive: true });
  await writeFile(join(dataDir, "postgres/data/PG_VERSION"), "17\n");
  await assert.rejects(start(dataDir), /made by Postgres 17, and this version of Chorus brings Postgres 18/);
});

test("names DATA_DIR when the log of the server cannot be opened", async (t) => {
  const dataDir = await made(t);
  await mkdir(join(dataDir, "postgres/server.log"));
  await assert.rejects(
    start(dataDir),
    /^Error: DATA_DIR cannot be used: EISDIR at .*server\.log\. Make .* set DATABASE_URL\.$/,
  );
});

test.for([
  ["is full", "size=1m", ["bs=4k"], /DATA_DIR cannot be used: ENOSPC\. Make .* with free space/],
  ["becomes full", "size=1m", undefined, /DATA_DIR cannot be used: ENOSPC\. Make .* with free space/],
  ["is read-only", "size=1m,ro", undefined, /DATA_DIR cannot be used: EROFS at /],
] as const)("names DATA_DIR when its disk %s", async ([, options, fill, message], { skip, onTestFinished }) => {
  const dataDir = await folder({ onTestFinished });
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", dataDir]);
  skip(mounted.status !== 0, "needs the right to mount a disk");
  onTestFinished(() => void spawnSync("umount", [dataDir]));
  if (fill) spawnSync("dd", ["if=/dev/zero", `of=${join(dataDir, "fill")}`, ...fill]);
  await assert.rejects(start(dataDir), message);
});

test("names DATA_DIR when the disk of its database is full or read-only", async (t) => {
  const dataDir = await folder(t);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=200m", "tmpfs", dataDir]);
  t.skip(mounted.status !== 0, "needs the right to mount a disk");
  t.onTestFinished(() => void spawnSync("umount", [dataDir]));
  await copyCluster(dataDir);
  spawnSync("dd", ["if=/dev/zero", `of=${join(dataDir, "fill")}`, "bs=4k"]);
  await assert.rejects(start(dataDir), /DATA_DIR cannot be used: ENOSPC/);
  assert.equal(spawnSync("mount", ["-o", "remount,ro", dataDir]).status, 0);
  await assert.rejects(start(dataDir), /DATA_DIR cannot be used: EROFS at .*server\.log/);
});

test("accepts a folder whose path is long or has spaces and quotes", async (t) => {
  const dataDir = join(await folder(t), "a 'quoted' \"name\"", "x".repeat(200));
  const service = await start(dataDir);
  await using(service.url, async (query) => assert.equal((await query("select 1")).length, 1));
  await service.stop();
});

test("runs the server as another user when started by root, even below a folder closed to that user", async (t) => {
  t.skip(!isRoot, "needs root");
  const closed = await folder(t);
  await chmod(closed, 0o700);
  const lines: string[] = [];
  const service = await start(join(closed, "data"), (line) => lines.push(line));
  assert.notEqual((await stat(`/proc/${await serverPid(join(closed, "data"))}`)).uid, 0);
  assert.match(lines.join("\n"), /may not enter .*: it keeps a capability/);
  const environment = await readFile(`/proc/${await serverPid(join(closed, "data"))}/environ`, "utf8");
  assert.doesNotMatch(environment, /HOME=|NODE/);
  await service.stop();
});

test("runs the server as the current user without root, and as the same user when root starts it later", async (t) => {
  t.skip(!canBeNobody, "needs root, and a folder that every user may read");
  const parent = await folder(t);
  const { uid, gid } = nobody;
  await chown(parent, uid, gid);
  const dataDir = join(parent, "data");
  const { child } = await startChild(dataDir, { uid, gid });
  assert.equal((await stat(`/proc/${await serverPid(dataDir)}`)).uid, uid);
  child.stdin?.end();
  await once(child, "exit");
  assert.equal(await isServed(dataDir), false);
  const service = await start(dataDir);
  assert.equal((await stat(`/proc/${await serverPid(dataDir)}`)).uid, uid);
  await service.stop();
});

test("names the folder that an ordinary user cannot access", async (t) => {
  t.skip(!canBeNobody, "needs root, and a folder that every user may read");
  const dataDir = await folder(t);
  await (await start(dataDir)).stop();
  await assert.rejects(startChild(dataDir, nobody), /DATA_DIR cannot be used: EACCES at .*postgres/);
  await assert.rejects(startChild("/etc/chorus", nobody), /DATA_DIR cannot be used: /);
});

const started: { stop(): Promise<void> | void }[] = [];

/** Starts a service. It is stopped after the test if the test has not done so. */
async function start(
  dataDir: string,
  log: Parameters<typeof startEmbedded>[1] = () => undefined,
): Promise<{ url: string; stop(): Promise<void> }> {
  const service = await startEmbedded(dataDir, log);
  started.push(service);
  return service;
}

/** A folder with a database that no server has opened. */
async function made(t: Lifetime): Promise<string> {
  const path = await folder(t);
  await copyCluster(path);
  return path;
}

async function folder(t: Lifetime): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "chorus-embedded-"));
  await chmod(path, 0o755);
  t.onTestFinished(async () => {
    for (const { stop } of started.splice(0)) await stop();
    await rm(path, { recursive: true, force: true });
  });
  return path;
}

async function using(
  url: string,
  work: (query: (text: string) => Promise<Record<string, unknown>[]>) => Promise<void>,
): Promise<void> {
  const pool = openPool(url, { max: 1 });
  try {
    await work((text) => pool.query(text));
  } finally {
    await pool.end();
  }
}

async function serverPid(dataDir: string): Promise<number> {
  return Number((await readFile(join(dataDir, "postgres/data/postmaster.pid"), "utf8")).split("\n", 1)[0]);
}

async function isServed(dataDir: string): Promise<boolean> {
  try {
    process.kill(await serverPid(dataDir), 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts a service in another process. It stops when its standard input ends.
 * @throws Error with the output of the process if the start fails
 */
async function startChild(
  dataDir: string,
  options: { uid?: number; gid?: number; detached?: boolean } = {},
): Promise<{ child: ChildProcess; url: string }> {
  const program = `
    const { startEmbedded } = await import(${JSON.stringify(EMBEDDED)});
    const service = await startEmbedded(${JSON.stringify(dataDir)}, () => {});
    console.log(service.url);
    process.stdin.on("end", () => service.stop()).resume();`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    ...options,
    cwd: "/",
    env: {},
    stdio: ["pipe", "pipe", "pipe"],
  });
  started.push({ stop: () => void child.kill("SIGKILL") });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const [url] = (await Promise.race([
    once(child.stdout.setEncoding("utf8"), "data"),
    once(child, "close").then(() => Promise.reject(new Error(errors))),
  ])) as [string];
  return { child, url: url.trim() };
}
