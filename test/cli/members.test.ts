import assert from "node:assert/strict";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { openBrowser } from "../helpers/browser.ts";
import { type CliResult, runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { signInAs, startProvider } from "../helpers/oidc.ts";

const test = base
  .extend("provider", { scope: "file" }, fixture(startProvider))
  .extend("env", { scope: "file" }, ({ provider }) => ({ ...OFFLINE, ...provider.env }) as Record<string, string>)
  .extend("chorus", ({ service }) => {
    return (...args: string[]) => runCli(args, { DATA_DIR: service.dataDir });
  });

const ok = ({ code, stdout, stderr }: CliResult): string => {
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
};

test("invites, lists, changes and removes members, and takes a key over", async ({ chorus, service, provider }) => {
  const of = ["--workspace", "default"];
  const link = ok(await chorus("members", "invite", "developer", ...of, "--note", "for Ann")).trim();
  assert.ok(link.startsWith(`${service.url}/console#invitation=in_`));
  const other = JSON.parse(ok(await chorus("members", "invite", "viewer", ...of, "--json")));
  assert.match(ok(await chorus("members", "list", ...of)), /^inv_\w+ +developer +for Ann +\d{4}-/m);
  ok(await chorus("members", "withdraw", other.invitation.id, ...of));

  provider.accounts.set("ann", { name: "Ann Lee", email: "ann@example.com" });
  const browser = openBrowser(service.url);
  await signInAs(browser, "ann");
  assert.equal((await browser.signIn(link.split("=")[1] ?? "")).status, 200);
  const { key } = await browser.client(KeyService).createKey({ name: "kept" });
  await browser.client(KeyService).createKey({ name: "ended" });
  const listed = JSON.parse(ok(await chorus("members", "list", ...of, "--json")));
  assert.deepEqual(listed.invitations, []);
  const [{ person, role, keys }] = listed.members;
  assert.deepEqual([person.name, role, keys], ["Ann Lee", "developer", 2]);

  assert.match(ok(await chorus("keys", "list", ...of)), / kept +\S+ +generate +Ann Lee +/);
  assert.match(ok(await chorus("keys", "take-over", key?.id ?? "")), / kept +\S+ +generate +- +/);
  const changed = ok(await chorus("members", "set-role", person.id, "owner", ...of));
  assert.match(changed, /^per_\w+ +Ann Lee +ann@example.com +owner +invitation +1 /m);
  const last = await chorus("members", "remove", person.id, ...of);
  assert.match(last.stderr, /This is the last owner of the workspace/);
  const wrong = await chorus("members", "set-role", "ann@example.com", "viewer", ...of);
  assert.match(wrong.stderr, /Identifiers begin with per_/);
  assert.match((await chorus("members", "invite", "boss", ...of)).stderr, /must be one of owner, developer, billing/);
  assert.match(ok(await chorus("audit", "default")), /^\S+ \S+ +member +Ann Lee \(per_\w+\) +key\.create /m);
});
