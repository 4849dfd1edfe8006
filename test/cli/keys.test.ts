import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { WorkspaceKind } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { adminOf } from "../helpers/admin.ts";
import { type CliResult, runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";

const test = base
  .extend("env", { scope: "file" }, OFFLINE)
  .extend("chorus", ({ service }) => {
    // The command line reads the address and the token from DATA_DIR.
    return (...args: string[]) => runCli(args, { DATA_DIR: service.dataDir });
  })
  .extend("workspace", async ({ database }) => {
    // Separates the keys of the tests.
    const name = `team-${randomUUID().slice(0, 8)}`;
    await adminOf(database.pool).workspaces.createWorkspace({ name, kind: WorkspaceKind.ORGANIZATION });
    return name;
  });

const ok = ({ code, stdout, stderr }: CliResult): string => {
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
};

test("creates, lists and revokes keys of a running service", async ({
  service,
  database: { pool },
  workspace,
  chorus,
}) => {
  const status = async (secret: string) => (await service.get("/v1/quotas", { "x-api-key": secret })).status;

  const [human, json] = await Promise.all([
    chorus("keys", "create", "--workspace", workspace, "--name", "my service", "--expires", "90d"),
    chorus("keys", "create", "--workspace", workspace, "--scope", "generate", "--scope", "metrics", "--json"),
  ]);
  const table = ok(human);
  const [, secret = ""] = /^Secret \(shown only once\): (ck_\w+)$/m.exec(table) ?? [];
  const [, id = ""] = new RegExp(`^(key_\\w+) +${workspace} +my service +ck_`, "m").exec(table) ?? [];
  assert.match(table, /^ID {2,}WORKSPACE {2,}NAME {2,}SECRET/);
  assert.equal(await status(secret), 200);

  const created = JSON.parse(ok(json));
  assert.deepEqual(created.key.scopes, ["generate", "metrics"]);
  assert.equal(created.key.expires_at, undefined);
  assert.equal(await status(created.secret), 200);

  // The service refuses such a name, so the test writes it to the database.
  const evil = "\u001b[2J\u001b]0;x\u0007\u202e\n\r\u009b31m<script>";
  await pool.query("update api_keys set name = $1 where id = $2", [evil, created.key.id]);

  const [list, listed, revoked] = await Promise.all([
    chorus("keys", "list"),
    chorus("keys", "list", "--workspace", workspace, "--json"),
    chorus("keys", "revoke", id),
  ]);
  const lines = ok(list).trimEnd().split("\n");
  assert.equal(lines.filter((line) => line.includes(workspace)).length, 2, list.stdout);
  assert.match(list.stdout, /bootstrap/);
  assert.ok(!list.stdout.includes(secret) && !listed.stdout.includes(secret));
  for (const text of [list.stdout, listed.stdout]) assert.doesNotMatch(text, /(?![\n])[\p{Cc}\p{Bidi_Control}]/u);
  const { keys } = JSON.parse(ok(listed));
  assert.equal(keys.length, 2);
  assert.equal(keys.find((key: { id: string }) => key.id === created.key.id).name, evil);

  assert.match(ok(revoked), /\d\d:\d\d:\d\d\n$/);
  assert.equal(await status(secret), 401);
  assert.equal(await status(created.secret), 200);
});

test("lists all keys when they exceed one page", async ({ database: { pool }, workspace, chorus }) => {
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at)
      select id, 'key_' || lpad(to_hex(n), 24, '0'), decode(md5(n::text), 'hex'), 'ck_x', 'bulk', '{}',
              date_trunc('milliseconds', created_at)
     from workspaces, generate_series(1, 1500) n where name = $1`,
    [workspace],
  );
  const { keys } = JSON.parse(ok(await chorus("keys", "list", "--workspace", workspace, "--json")));
  assert.equal(keys.length, 1500);
});

test("changes only those properties of the tags that it names", async ({ workspace, chorus }) => {
  const create = ["keys", "create", "--workspace", workspace, "--tag", "team=a", "--tag", "env=prod", "--json"];
  const { key } = JSON.parse(ok(await chorus(...create)));
  const update = async (...options: string[]) =>
    JSON.parse(ok(await chorus("keys", "update", key.id, ...options, "--json"))).key.tags;
  const both = { team: "a", env: "prod" };
  assert.deepEqual(await update("--forbid-tags"), { fixed: both, forbids_others: true });
  assert.deepEqual(await update("--name", "renamed"), { fixed: both, forbids_others: true });
  assert.deepEqual(await update("--tag", "team=b"), { fixed: { team: "b" }, forbids_others: true });
  assert.deepEqual(await update("--allow-tags"), { fixed: { team: "b" }, forbids_others: false });
  assert.deepEqual(await update("--tag", "x=1", "--forbid-tags"), { fixed: { x: "1" }, forbids_others: true });
  assert.deepEqual(await update("--tag", "x=2", "--allow-tags"), { fixed: { x: "2" }, forbids_others: false });
  assert.equal(await update("--clear-tags"), undefined);
});

test("prints an error to standard error and exits with code 1", async ({ workspace, chorus }) => {
  const created = JSON.parse(ok(await chorus("keys", "create", "--workspace", workspace, "--json")));
  const cases: [args: string[], message: RegExp][] = [
    [["keys", "create"], /Name the workspace/],
    [["keys", "create", "--workspace", "nope"], /no workspace "nope"/],
    [["keys", "create", "--workspace", "\u001b[31m"], /no workspace "\\u001b\[31m"/],
    [["keys", "create", "--workspace", "default", "--scope", "all"], /generate, metrics/],
    [["keys", "create", "--workspace", "default", "--name", "\u001b[31m"], /control characters/],
    [["keys", "create", "--workspace", "default", "--expires", "soon"], /--expires .*2027-01-31.*"soon"/],
    [["keys", "create", "--workspace", "default", "--expires", "30"], /--expires/],
    [
      ["keys", "create", "--workspace", "default", "--expires", "2100-02-29T12:00:00+01:00"],
      /--expires must be a day of the calendar, but is "2100-02-29T12/,
    ],
    [
      ["keys", "create", "--workspace", "default", "--expires", "2020-01-01"],
      /expires_at must be a time in the future/,
    ],
    [
      ["keys", "create", "--workspace", "default", "--expires", "99999999d"],
      /--expires .* in the years 1 to 9999, but/,
    ],
    [["audit", "default", "--from", "99999999999999999d"], /--from .* in the years 1 to 9999, but is "9999/],
    [["audit", "default", "--from", "2027-04-31"], /--from must be a day of the calendar/],
    [["keys", "list", "--workspace", "nope"], /no workspace/],
    [["keys", "update", created.key.id, "--tag", "a=b", "--clear-tags"], /'--clear-tags' cannot be used with .*--tag/],
    [["keys", "update", created.key.id, "--forbid-tags", "--clear-tags"], /cannot be used with .*--forbid-tags/],
    [["keys", "revoke"], /id/],
    [["keys", "revoke", created.secret], /no key with this identifier/],
    [["keys", "frob"], /frob/],
  ];
  await Promise.all(
    cases.map(async ([args, message]) => {
      const { code, stdout, stderr } = await chorus(...args);
      assert.deepEqual([code, stdout], [1, ""], args.join(" "));
      assert.match(stderr, message);
      assert.ok(!stderr.includes(created.secret));
      assert.doesNotMatch(stderr, /^\s+at /m);
    }),
  );
});
