import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import { startService } from "../helpers/service.ts";

const test = base
  .extend("env", { scope: "file" }, OFFLINE)
  /** A configuration folder, and the command line in another folder than that of a service. */
  .extend("home", async ({ t }) => {
    const folder = await mkdtemp(join(tmpdir(), "chorus-home-"));
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const env = { XDG_CONFIG_HOME: folder };
    const cli = async (args: string, more: Record<string, string> = {}) => runCli(args.split(" "), { ...env, ...more });
    const ok = async (args: string, more: Record<string, string> = {}) => {
      const { code, stdout, stderr } = await cli(args, more);
      assert.deepEqual([code, stderr], [0, ""], args);
      return stdout;
    };
    return { folder, file: join(folder, "chorus/profiles.json"), cli, ok };
  });

test("a service with its own Postgres is found from any folder", async ({ t, home: { folder, file, ok } }) => {
  const service = await startService(t, { databaseUrl: "", env: { XDG_CONFIG_HOME: folder } });
  assert.match(await ok("keys list"), /bootstrap/);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(JSON.parse(await readFile(file, "utf8")), {
    default: "local",
    profiles: { local: { dataDir: service.dataDir } },
  });
});

test("reaches services by named profiles", async ({ service, home: { file, cli, ok } }) => {
  const { rpcUrl, operatorToken, dataDir } = service;
  await ok(`profile add prod --rpc-url ${rpcUrl}`, { OPERATOR_TOKEN: operatorToken });
  await ok(`profile add here --data-dir ${dataDir}`);
  await ok("profile add wrong --rpc-url http://127.0.0.1:1", { OWNER_TOKEN: "ow_wrong" });
  assert.match(await ok("profile list"), new RegExp(`^prod +${rpcUrl} +yes\\nhere +${dataDir}\\nwrong +http`, "m"));
  assert.ok(!(await ok("profile list --json")).includes(operatorToken));
  assert.equal((await stat(file)).mode & 0o777, 0o600);

  // The first is the default. A named profile wins over the environment.
  for (const [args, env] of [
    ["keys list", {}],
    ["--profile here keys list", {}],
    ["keys list", { CHORUS_PROFILE: "prod", OPERATOR_TOKEN: "wrong", CHORUS_RPC_URL: "http://127.0.0.1:1" }],
    ["keys list", { CHORUS_RPC_URL: rpcUrl, OPERATOR_TOKEN: operatorToken, DATA_DIR: "/nowhere" }],
  ] as const)
    assert.match(await ok(args, env), /bootstrap/);

  await ok("profile use wrong");
  assert.match((await cli("keys list")).stderr, /no service at http:\/\/127\.0\.0\.1:1/);
  await ok("profile remove wrong");
  assert.match((await cli("keys list")).stderr, /No operator token\. .*chorus profile add\. /);
});

test("names the profile or the file that is wrong", async ({ service, home: { file, cli, ok } }) => {
  await ok(`profile add bad --rpc-url ${service.rpcUrl}`, { OWNER_TOKEN: "ow_wrong" });
  const cases: [args: string, message: RegExp][] = [
    ["keys list", /does not accept the secret from the profile "bad"/],
    ["--profile none keys list", /There is no profile "none" in .*profiles\.json \(it has: bad\)\. Add it/],
    ["profile use none", /There is no profile "none"/],
    ["profile add x", /Name the service: --data-dir FOLDER, or --rpc-url URL/],
    ["profile add a/b --data-dir .", /must have 1 to 64/],
    [`profile add x --rpc-url ${service.rpcUrl}`, /Set OPERATOR_TOKEN or OWNER_TOKEN, or pass the token/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await cli(args);
    assert.equal(code, 1, args);
    assert.match(stderr, message);
  }
  await writeFile(file, "[]");
  for (const args of ["keys list", "profile list", "profile add x --data-dir ."])
    assert.match((await cli(args)).stderr, /^chorus: .*profiles\.json is not a JSON object\. Correct or delete it\.$/m);
  const { stderr } = await cli("profile add x --data-dir .", { XDG_CONFIG_HOME: "/dev/null" });
  assert.match(stderr, /^chorus: ENOTDIR: not a directory, .*\/dev\/null\/chorus/);
});

test("prints its version", async ({ home: { ok } }) => {
  assert.match(await ok("--version"), /^\d+\.\d+\.\d+\n$/);
});
