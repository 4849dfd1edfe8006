import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import { OWN_PROCESS } from "../helpers/program.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";

const test = base.extend("env", { scope: "file" }, { ...OFFLINE, ...OWN_PROCESS });

test("shows models and replicas", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  await until(async () => /offline-fast/.test((await runCli(["models"], env)).stdout));
  const { stdout } = await runCli(["models"], env);
  assert.match(stdout, /^MODEL +ANSWERED AS +TIER +VENDOR +API +HEALTH +CALLS +SHARE +FAILED /);
  assert.match(stdout, /^offline-fast +- +fast +offline +- +unused +0 +0 % +0 % +- +- +0 +0 +-$/m);
  const { models } = JSON.parse((await runCli(["models", "--json"], env)).stdout);
  assert.deepEqual([models[1].name, models[1].health, models[1].replicas], ["offline-strong", "unused", 1]);
  const replicas = await runCli(["replicas"], env);
  assert.match(
    replicas.stdout,
    /^HOST +PID +VERSION +STARTED \(UTC\) +RUNNING +MB +LOOP MS +JOURNAL +SET ASIDE +OVERLOAD$/m,
  );
  assert.match(replicas.stdout, new RegExp(`^${hostname()} +${service.process.pid} +\\d+\\.\\d+\\.\\d+ `, "m"));
  assert.match(replicas.stdout, /^HOST +PID +WORKSPACES +CREDITS +HELD +CONCURRENT +OLDEST \(UTC\)$/m);
  assert.match(replicas.stdout, new RegExp(`^${hostname()} +${service.process.pid} +0 +0 +0 +0 +-$`, "m"));
  const { replicas: list } = JSON.parse((await runCli(["replicas", "--json"], env)).stdout);
  assert.equal(list[0].pid, service.process.pid);
  assert.deepEqual(list[0].grants, {
    workspaces: 0,
    reserved_credits: "0",
    held_credits: "0",
    concurrent_requests: 0,
  });
});

test("tests a model", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  const works = await runCli(["models", "test", "offline-fast"], env);
  assert.match(works.stdout, /^offline-fast answers: \d+ ms, \d+ \+ \d+ tokens\n$/);
  assert.equal(works.code, 0);
  const unknown = await runCli(["models", "test", "nobody"], env);
  assert.match(unknown.stderr, /no model with this name/);
  assert.equal(unknown.code, 1);
});

test("disables and enables a model", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  const cli = async (...args: string[]) => (await runCli(["models", ...args], env)).stdout;
  await until(async () => /offline-strong/.test(await cli()));
  assert.equal(
    await cli("disable", "offline-strong", "--reason", "too slow"),
    "disabled offline-strong\nNo strong model is left: those of the other tier replace it.\n",
  );
  const list = await cli();
  assert.match(list, /^offline-strong .* disabled /m);
  assert.match(list, /^offline-strong: disabled at \d{4}-.* UTC by tok_\w+: too slow\.$/m);
  assert.match(await cli("disable", "offline-fast"), /^No model is left, so no request is answered until you enable/m);
  for (const model of ["offline-fast", "offline-strong"])
    assert.equal(await cli("enable", model), `enabled ${model}\n`);
  assert.equal(await cli("enable", "offline-fast"), "offline-fast was not disabled\n");
});

test("a test says why a model does not answer, with exit code 1", async ({ onTestFinished }) => {
  const t = { onTestFinished };
  const vendor = await startVendor("openai", { status: 402, error: { message: "Payment required", code: "no_money" } });
  onTestFinished(() => vendor.close());
  const service = await startOwnService(t, { env: vendor.env });
  const env = { DATA_DIR: service.dataDir };
  const { stdout, code } = await runCli(["models", "test", "openai-strong"], env);
  assert.match(
    stdout,
    /^openai-strong does not answer: 402 no_money, \d+ ms\. The vendor says: Payment required\. Add credit .*_API_KEY/,
  );
  assert.equal(code, 1);
  const { failure } = JSON.parse((await runCli(["models", "test", "openai-strong", "--json"], env)).stdout);
  assert.deepEqual([failure.status, failure.code, failure.needs_operator], [402, "no_money", true]);
  const list = await runCli(["audit"], env);
  assert.match(list.stdout, /models\.test/);
});

test("shows use and what stops a workspace", async ({ service }) => {
  const env = { DATA_DIR: service.dataDir };
  const cli = async (...args: string[]) => (await runCli(args, env)).stdout;
  assert.equal((await service.post("/v1/generate", { prompt: "What is 2 + 2?" })).status, 200);
  await cli("workspaces", "create", "poor");
  await cli("limits", "set", "default", "--requests-per-day", "1");
  const list = await cli("workspaces", "list");
  assert.match(list, /^NAME +ID +KIND +TIER +GRANTED +PURCHASED +HELD +REQUESTS +CREDITS +STATE$/m);
  assert.match(list, /^default .* 1 +0\.\d+ +limit reached: requests_per_day$/m);
  assert.match(list, /^poor .* 0 +0 +no credit$/m);
  assert.match(await cli("limits", "show", "default"), /^requests_per_day +1 +1 +an operator$/m);
  const { workspaces } = JSON.parse(await cli("workspaces", "list", "--json"));
  assert.deepEqual([workspaces[0].name, workspaces[0].condition], ["default", "limit_reached"]);
  assert.deepEqual(workspaces[0].limits.requests_per_day, 1);
  const namesOf = async (...options: string[]) => {
    const found = JSON.parse(await cli("workspaces", "list", ...options, "--json"));
    return found.workspaces.map((each: { name: string }) => each.name);
  };
  assert.deepEqual(await namesOf("--order", "created"), ["poor", "default"]);
  assert.deepEqual(await namesOf("--order", "spend", "--limit", "1"), ["default"]);
  assert.deepEqual(await namesOf("--search", "OO"), ["poor"]);
});

test("check names the machine whose journal has lines that are set aside", async ({ onTestFinished }) => {
  const t = { onTestFinished };
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-aside-"));
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  await mkdir(join(dataDir, "journal"));
  await writeFile(join(dataDir, "journal/damaged"), "one\ntwo\n");
  const service = await startOwnService(t, { dataDir });
  const env = { DATA_DIR: dataDir };
  await until(async () => (await runCli(["check"], env)).code === 1);
  const { stdout, stderr } = await runCli(["check"], env);
  assert.equal(
    stdout,
    `Ledger, balances, holds and usage agree.\n2 lines of the journal on ${hostname()} are set aside.\n`,
  );
  assert.match(stderr, /^chorus: Nothing is charged for lines that are set aside\. They are in the files damaged and/);
  const { set_aside } = JSON.parse((await runCli(["check", "--json"], env)).stdout);
  assert.deepEqual(set_aside, [{ host: hostname(), lines: 2 }]);
  await service.stop();
});
