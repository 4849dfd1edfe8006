import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { OFFLINE, test } from "../helpers/fixtures.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

test("replaces lost operator tokens, with an entry in the audit", async ({ onTestFinished }) => {
  const t = { onTestFinished };
  const { url: databaseUrl } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: OFFLINE });
  const lost = { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken };
  assert.equal((await runCli(["keys", "list"], lost)).code, 0);
  // Where the service gets the address from a file, this command does, too.
  const file = join(service.dataDir, "database_url");
  await writeFile(file, `${databaseUrl}\n`);
  const replace = await runCli(["operators", "replace-token"], {
    DATABASE_URL_FILE: file,
    DATA_DIR: service.dataDir,
  });
  const [, token = ""] = /^Operator token \(shown only once\): (op_\w{33})$/m.exec(replace.stdout) ?? [];
  assert.match(replace.stdout, /^Earlier tokens that no longer work: 1\.$/m);
  const found = { ...lost, OPERATOR_TOKEN: token };
  await until(async () => (await runCli(["keys", "list"], lost)).code === 1);
  assert.equal((await runCli(["keys", "list"], found)).code, 0);
  // The service had stored its token in DATA_DIR.
  assert.equal((await runCli(["keys", "list"], { DATA_DIR: service.dataDir })).code, 0);
  const audit = await runCli(["audit"], found);
  assert.match(audit.stdout, /^\S+ \S+ +- +service +command line +operator_token\.replace +\{"id":\s?"tok_\w{16}"/m);
  assert.ok(!audit.stdout.includes(token));
});

test("replaces them in the embedded Postgres, while the service runs and while it does not", async ({
  onTestFinished,
}) => {
  const t = { onTestFinished };
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-operators-"));
  await chmod(dataDir, 0o711);
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const env = { DATA_DIR: dataDir };
  const missing = await runCli(["operators", "replace-token"], env);
  assert.deepEqual([missing.code, missing.stdout], [1, ""]);
  assert.match(missing.stderr, /There is no database: DATABASE_URL is not set, and .* holds no Postgres\./);
  const service = await startService(t, { databaseUrl: "", dataDir, env: { ...OFFLINE, OPERATOR_TOKEN: "" } });
  const replace = async () => JSON.parse((await runCli(["--json", "operators", "replace-token"], env)).stdout);
  const first = await replace();
  const as = (token: string) => runCli(["keys", "list"], { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: token });
  assert.equal((await as(first.token)).code, 0);
  assert.equal(await service.stop(), 0);
  const second = await replace();
  assert.equal(second.replaced, 1);
  assert.notEqual(second.token, first.token);
});

test("lists the changes of a workspace for operators and its owner", async ({ service }) => {
  const operator = { DATA_DIR: service.dataDir };
  const cli = async (args: string[], env: Record<string, string> = operator) => (await runCli(args, env)).stdout;
  await cli(["keys", "create", "--workspace", "default", "--name", "app"]);
  const { token } = JSON.parse(await cli(["--json", "owners", "create", "default"]));
  const owner = { OWNER_TOKEN: token, CHORUS_RPC_URL: service.rpcUrl };
  await cli(["spend-limits", "set", "--period", "day", "--amount", "5"], owner);
  for (const [args, env] of [
    [["audit", "default"], operator],
    [["audit"], owner],
  ] as const) {
    const listed = await cli([...args], env);
    assert.match(
      listed,
      /^AT \(UTC\) +WHO +PERSON, TOKEN OR REASON +ACTION +DETAILS\n\S+ \S+ +owner +tok_\w+ +spend_limit\.set /,
    );
    assert.match(listed, /^\S+ \S+ +operator +tok_\w+ +key\.create +.*"app"/m);
  }
  const { entries, has_more } = JSON.parse(await cli(["audit", "default", "--limit", "1", "--json"]));
  assert.equal(has_more, true);
  assert.deepEqual([entries.length, entries[0].action, entries[0].details.amount], [1, "spend_limit.set", "5"]);
  const actions = async (...args: string[]) =>
    JSON.parse(await cli(["audit", "default", "--json", ...args])).entries.map((one: { action: string }) => one.action);
  assert.deepEqual(await actions("--action", "spend_limit", "--by", "owner", "--from", "1h"), ["spend_limit.set"]);
  assert.deepEqual(await actions("--by", entries[0].actor_id), ["spend_limit.set"]);
  assert.deepEqual(await actions("--action", "spend_limit", "--by", "operator"), []);
  assert.deepEqual(await actions("--action", "spend_limit", "--to", "1h"), []);
  assert.match(await cli(["audit", "default", "--limit", "1"]), /There are older changes; --limit 10 shows more/);
});
