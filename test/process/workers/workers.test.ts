import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "vitest";
import { testDatabase } from "../../helpers/database.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { freePort, startServer } from "../../helpers/server.ts";
import { eventsOf, startOwnService, type TestService } from "../../helpers/service.ts";
import { startEarly } from "../../helpers/starting.ts";
import { until } from "../../helpers/until.ts";
import { startVendor } from "../../helpers/vendors.ts";

const BODY = { prompt: "What is 17 * 23 + 4?" };

/** Starts a service with two workers. */
async function startTwo(t: Lifetime, env: Record<string, string> = {}, databaseUrl?: string): Promise<TestService> {
  const options = { env: { CHORUS_WORKERS: "2", LOG_LEVEL: "info", ...env } };
  return startOwnService(t, databaseUrl === undefined ? options : { ...options, databaseUrl });
}

/** Value of a metric without labels, or the sum over its labels. */
async function metric({ rpcUrl }: TestService, name: string): Promise<number> {
  const text = await (await fetch(`${rpcUrl}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** Identifiers of the processes whose parent is `pid`. */
async function childrenOf(pid: number | undefined): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.split(" ").filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Places of the workers that have logged a request. */
function placesIn(output: string): Set<number> {
  const lines = output.split("\n").filter((line) => line.includes('"request_id"'));
  return new Set(lines.map((line) => JSON.parse(line).worker));
}

test("two workers answer on one port, and the metrics are their sum", async (t) => {
  const service = await startTwo(t, { OPENAI_API_KEY: "" });
  assert.equal((await service.get("/readyz")).status, 200);
  assert.equal((await childrenOf(service.process.pid)).length, 2);
  let requests = 0;
  // The kernel chooses the worker by the ports of a connection, and each request has its own connection.
  await until(async () => {
    const response = await service.post("/v1/generate", BODY, { connection: "close" });
    assert.equal(response.status, 200, await response.text());
    requests++;
    return placesIn(service.output()).size === 2;
  });
  await until(async () => (await metric(service, 'chorus_requests_total{transport="rest"')) === requests);
  assert.equal(await metric(service, "chorus_workers "), 2);
  assert.deepEqual([...placesIn(service.output())].sort(), [1, 2]);
  assert.equal((await readFile(join(service.dataDir, "rpc_url"), "utf8")).trim(), service.rpcUrl);
  assert.equal(service.output().match(/Chorus is ready/g)?.length, 1);
  assert.equal(await service.stop(), 0);
});

test("the metrics count lines of the journal that are set aside once, until an operator deletes them", async (t) => {
  const service = await startTwo(t, { OPENAI_API_KEY: "" });
  const path = join(service.dataDir, "journal/damaged");
  const lines = () => metric(service, "chorus_journal_set_aside");
  assert.equal(await lines(), 0);
  await writeFile(path, "one\ntwo\n");
  await until(async () => (await lines()) > 0);
  // Both workers have looked.
  for (let i = 0; i < 2; i++) assert.equal(await lines(), 2);
  await rm(path);
  await until(async () => (await lines()) === 0);
});

test("a worker that is killed loses only its own requests and is replaced, and counters do not fall", async (t) => {
  const vendor = await startVendor("openai", { text: ["one", " two", " three"], betweenMs: 20 });
  t.onTestFinished(() => vendor.close());
  const service = await startTwo(t, vendor.env);
  for (let i = 0; i < 4; i++) assert.equal((await service.post("/v1/generate", BODY)).status, 200);
  const before = await metric(service, "chorus_requests_total");
  const [victim = 0] = await childrenOf(service.process.pid);

  const results: (number | "lost")[] = [];
  let stop = false;
  const load = Array.from({ length: 8 }, async () => {
    while (!stop) {
      const sent = service.post("/v1/generate", BODY, { connection: "close" });
      results.push(
        await sent
          .then(async (response) => (await response.arrayBuffer()) && response.status)
          .catch(() => "lost" as const),
      );
    }
  });
  await until(() => results.length > 20);
  process.kill(victim, "SIGKILL");
  await until(() => service.output().includes("a worker has ended"));
  const lostAt = results.length;
  await until(() => results.length > lostAt + 20);
  await until(async () => (await childrenOf(service.process.pid)).length === 2);
  await until(async () => (await metric(service, "chorus_workers ")) === 2);
  stop = true;
  await Promise.all(load);

  assert.deepEqual(new Set(results.slice(0, lostAt)).difference(new Set(["lost"])), new Set([200]));
  // Eight requests were in flight when the worker had ended.
  assert.deepEqual(new Set(results.slice(lostAt + 8)), new Set([200]));
  assert.ok((await metric(service, "chorus_requests_total")) >= before);
  assert.equal(await metric(service, "chorus_worker_ends_total"), 1);
  // Another worker releases what the killed one held.
  const running = async () => {
    const quotas = (await (await service.get("/v1/quotas")).json()) as { concurrent_requests: { used: number } };
    return quotas.concurrent_requests.used;
  };
  await until(async () => (await running()) === 0, 100);
  assert.equal(await service.stop(), 0);
});

test("says why a worker that ended cannot be replaced, until it can", async (t) => {
  const file = join(await mkdtemp(join(tmpdir(), "chorus-rates-")), "rates");
  t.onTestFinished(() => rm(dirname(file), { recursive: true }));
  const rates = '{"input":1,"cached":1,"output":1}';
  await writeFile(file, rates);
  const service = await startTwo(t, { OPENAI_API_KEY: "", CHORUS_RATES_FILE: file });
  await writeFile(file, "{");
  const [victim = 0] = await childrenOf(service.process.pid);
  process.kill(victim, "SIGKILL");
  const replaced = () =>
    service
      .output()
      .split("\n")
      .filter((line) => line.includes("will be replaced"));
  await until(() => replaced().length >= 2);
  const [killed, refused] = replaced().map((line) => JSON.parse(line));
  assert.deepEqual([killed.signal, killed.reason], ["SIGKILL", undefined]);
  assert.match(refused.reason, /^CHORUS_RATES must be .* Its value comes from .*rates \(CHORUS_RATES_FILE\)\.$/);
  await writeFile(file, rates);
  await until(async () => (await metric(service, "chorus_workers ")) === 2);
});

test("is ready only when all workers are, also while the database is away at the start", async (t) => {
  const server = await startServer(t);
  await server.stop();
  const service = await startEarly(t, { DATABASE_URL: server.url, CHORUS_WORKERS: "2" });
  await until(() => new Set(service.output().match(/"worker":\d.*waiting for the database/g)).size >= 2);
  assert.deepEqual(await Promise.all([service.status("/healthz"), service.status("/readyz")]), [200, 503]);
  await server.start();
  await until(async () => (await service.status("/readyz")) === 200);
  for (let i = 0; i < 10; i++) assert.equal(await service.status("/v1/quotas"), 200);
  assert.equal(await service.stop(), 0);
});

test("SIGTERM drains all workers, and no process and no embedded Postgres is left", async (t) => {
  const vendor = await startVendor("openai", { text: ["one", " two", " three", " four", " five"], betweenMs: 100 });
  t.onTestFinished(() => vendor.close());
  const service = await startTwo(t, { ...vendor.env, CHORUS_TIERS: "" }, "");
  const children = await childrenOf(service.process.pid);
  const pidFile = join(service.dataDir, "postgres/data/postmaster.pid");
  const [postgres = ""] = (await readFile(pidFile, "utf8")).split("\n");
  const streams = await Promise.all(
    Array.from({ length: 4 }, () => service.post("/v1/generate:stream", BODY, { connection: "close" })),
  );
  const ends = streams.map(async (response) => {
    const names: string[] = [];
    for await (const { event } of eventsOf(response)) names.push(event);
    return names.at(-1);
  });
  const code = service.stop();
  assert.deepEqual(await Promise.all(ends), ["done", "done", "done", "done"]);
  assert.equal(await code, 0);
  for (const pid of [...children, Number(postgres)]) await until(() => !isAlive(pid));
});

test("the workers end when the process that started them is killed", async (t) => {
  const service = await startTwo(t, { OPENAI_API_KEY: "" });
  const children = await childrenOf(service.process.pid);
  assert.equal(children.length, 2);
  service.process.kill("SIGKILL");
  for (const pid of children) await until(() => !isAlive(pid));
});

test("says once why a port cannot be used", async (t) => {
  const { url } = await testDatabase(t);
  const other = createServer().listen(0, "127.0.0.1");
  await until(() => other.listening);
  t.onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const service = await startEarly(t, { DATABASE_URL: url, CHORUS_WORKERS: "3", PORT: `${port}` });
  assert.equal(await service.exit, 1);
  assert.deepEqual(service.output().match(/Chorus cannot start\. .*/g), [
    `Chorus cannot start. 127.0.0.1:${port} cannot be used: another program listens there. ` +
      "Set HOST and PORT to another address.",
  ]);
});

test("of two services that start with the same port at the same time, one starts", async (t) => {
  const { url } = await testDatabase(t);
  const env = { DATABASE_URL: url, CHORUS_WORKERS: "2", PORT: `${await freePort()}` };
  const services = await Promise.all([startEarly(t, env), startEarly(t, env)]);
  const refused = () => services.filter((service) => service.output().includes("another program listens there"));
  const ready = () => services.filter((service) => service.output().includes("Chorus is ready"));
  await until(() => refused().length + ready().length === 2);
  assert.deepEqual([refused().length, ready().length], [1, 1]);
});

test("starts nothing more for one worker", async (t) => {
  const service = await startOwnService(t, { env: { CHORUS_WORKERS: "1", OPENAI_API_KEY: "", LOG_LEVEL: "info" } });
  assert.deepEqual(await childrenOf(service.process.pid), []);
  assert.equal((await service.post("/v1/generate", BODY)).status, 200);
  assert.equal(await service.stop(), 0);
  assert.deepEqual([...placesIn(service.output())], [undefined]);
});

test("says once why its workers cannot start", async (t) => {
  const service = await startEarly(t, { DATABASE_URL: "postgres://u:p@127.0.0.1:1/x?sslmode=no", CHORUS_WORKERS: "2" });
  assert.equal(await service.exit, 1);
  assert.equal(service.output().match(/Chorus cannot start\. DATABASE_URL has sslmode=no/g)?.length, 1);
});
