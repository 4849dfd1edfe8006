import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe } from "vitest";
import { openBrowser } from "../helpers/browser.ts";
import { runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import type { TestService } from "../helpers/service.ts";

/** Runs the command line as an operator. */
function run({ rpcUrl, operatorToken }: TestService, args: string[], env: Record<string, string> = {}) {
  return runCli(args, { CHORUS_RPC_URL: rpcUrl, OPERATOR_TOKEN: operatorToken, ...env });
}

const test = base
  .extend("env", { scope: "file" }, { ...OFFLINE, CHORUS_TIERS: "" })
  .extend("cli", ({ service }) => {
    const ok = async (args: string, env?: Record<string, string>): Promise<string> => {
      const { code, stdout, stderr } = await run(service, args.split(" "), env);
      assert.equal(code, 0, `${args}: ${stderr}`);
      assert.equal(stderr, "");
      return stdout;
    };
    const json = async (args: string, env?: Record<string, string>) => JSON.parse(await ok(`--json ${args}`, env));
    const wrong = async (args: string[], message: RegExp, env?: Record<string, string>): Promise<void> => {
      const { code, stdout, stderr } = await run(service, args, env);
      assert.equal(code, 1, args.join(" "));
      assert.equal(stdout, "");
      assert.match(stderr, message);
    };
    return { ok, json, wrong };
  })
  /** The name of a new workspace. */
  .extend("acme", async ({ service }) => {
    const name = `acme-${randomUUID().slice(0, 8)}`;
    assert.equal((await run(service, ["workspaces", "create", name])).code, 0);
    return name;
  });

describe("the command line covers all operator and owner actions", () => {
  test("manages workspaces", async ({ cli: { ok, json, wrong } }) => {
    const made = await json("workspaces create fresh --kind organization");
    assert.equal(made.kind, "organization");
    assert.equal(made.limits.requests_per_minute, 600);
    assert.equal(made.granted, "0");
    assert.match(await ok("workspaces show fresh"), /^tier +free$/m);
    assert.match(await ok("workspaces list"), /^fresh +ws_[0-9a-f]{24} +organization +free +0 +0 +0 /m);
    const { workspaces } = await json("workspaces list");
    const names = workspaces.map(({ name }: { name: string }) => name);
    assert.deepEqual(
      ["default", "fresh"].filter((name) => !names.includes(name)),
      [],
    );
    await wrong(["workspaces", "create", "fresh"], /^chorus: There is a workspace "fresh" already/);
    await wrong(["workspaces", "create", "x", "--kind", "club"], /^chorus: --kind must be personal or organization/);
    await wrong(["workspaces", "create", "a;drop table accounts"], /^chorus: name must have/);
    await wrong(["workspaces", "show", "nobody\u001b[2J"], /^chorus: There is no workspace "nobody\\+u001b\[2J"/);
  });

  test("manages credits", async ({ acme, cli: { ok, json, wrong } }) => {
    assert.match(
      await ok(`credits grant ${acme} 12.345678 --reference welcome`),
      /^grant +welcome +12\.345678 .* 12\.345678 +0 +0$/m,
    );
    const purchase = await json(`credits purchase ${acme} 500 --reference inv-1`);
    assert.deepEqual(purchase.balance, { granted: "12.345678", purchased: "500", held: "0" });
    assert.equal(purchase.booking.booked_before, false);
    const again = { ...purchase, booking: { ...purchase.booking, booked_before: true } };
    assert.deepEqual(await json(`credits purchase ${acme} 500 --reference inv-1`), again);
    assert.match(
      await ok(`credits purchase ${acme} 500 --reference inv-1`),
      /^Booked before, at \S+ \S+ UTC, under the same reference\. Nothing was booked now\.$/m,
    );
    assert.match(await ok(`workspaces show ${acme}`), /^tier +1$/m);
    assert.match(await ok(`credits deduct ${acme} 2.345678 --reference back`), / -2\.345678 .* 10 +500 +0$/m);
    const ledger = await ok(`credits ledger ${acme} --limit 2`);
    assert.match(ledger, /^\S+ \S+ +adjustment +back +-2\.345678 +0 +0$/m);
    assert.match(ledger, /There are older movements/);
    // A program has no other sign that entries are left out.
    const few = await json(`credits ledger ${acme} --limit 2`);
    assert.deepEqual([few.entries.length, few.has_more], [2, true]);
    const { entries, has_more } = await json(`credits ledger ${acme} --charges-only`);
    assert.equal(has_more, false);
    assert.deepEqual(
      entries.map(({ kind }: { kind: string }) => kind),
      ["adjustment", "purchase", "grant"],
    );
    await wrong(["credits", "purchase", acme, "5", "--reference", "inv-1"], /reference/);
    await wrong(["credits", "purchase", acme, "-5", "--reference", "r"], /^chorus: amount must be from 0\.000001/);
    await wrong(["credits", "grant", acme, "-5", "--reference", "r"], /^chorus: amount must be from 0\.000001/);
    await wrong(["credits", "deduct", acme, "11", "--reference", "r"], /^chorus: Only 10 credits can be taken back/);
    await wrong(["credits", "grant", acme, "1e9", "--reference", "r"], /^chorus: amount must be a decimal number/);
    await wrong(["credits", "grant", "nobody", "1", "--reference", "r"], /^chorus: There is no workspace "nobody"/);
    await wrong(["credits", "grant", acme, "1"], /required option '--reference/);
    const bookings = await json(`credits ledger ${acme} --kind grant --kind adjustment`);
    const kinds = new Set((bookings.entries as { kind: string }[]).map(({ kind }) => kind));
    assert.deepEqual([...kinds].sort(), ["adjustment", "grant"]);
    assert.match(await ok(`credits ledger ${acme} --by-hour`), /^HOUR \(UTC\) +SETTLEMENTS +GRANTED +PURCHASED$/m);
    assert.deepEqual(await json(`credits ledger ${acme} --by-hour`), { hours: [], has_more: false });
    await wrong(["credits", "ledger", acme, "--by-hour", "--kind", "grant"], /'--by-hour' cannot be used with/);
    await wrong(["credits", "ledger", acme, "--kind", "fee"], /--kind must be one of/);
    await wrong(["credits", "ledger", acme, "--limit", "0"], /--limit must be/);
  });

  test("manages tiers and limits", async ({ acme, cli: { ok, json, wrong } }) => {
    await ok(`credits purchase ${acme} 500 --reference inv-1`);
    assert.match(await ok(`tiers set ${acme} unlimited`), /^tier +unlimited \(by an operator\)$/m);
    assert.match(await ok(`tiers set ${acme} auto`), /^tier +1$/m);
    const all = "requests input-tokens output-tokens"
      .split(" ")
      .flatMap((what) => ["minute", "day", "month"].map((per) => `--${what}-per-${per}`));
    const set = await json(
      `limits set ${acme} ${[...all, "--concurrent-requests"].map((flag, i) => `${flag} ${i}`).join(" ")}`,
    );
    assert.deepEqual(Object.values(set.limits).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const some = await ok(`limits set ${acme} --requests-per-minute none --requests-per-day default`);
    assert.match(some, /^requests_per_minute +none +an operator$/m);
    assert.match(some, /^requests_per_day +100,000 +tier 1$/m);
    assert.match(await ok(`limits show ${acme}`), /^requests_per_day +100,000 +0 +tier 1$/m);
    await wrong(["limits", "set", acme], /Name at least one limit/);
    await wrong(["limits", "set", acme, "--requests-per-day", "-1"], /requests_per_day must be a whole number from 0/);
    for (const value of ["many", "99999999999999999999"])
      await wrong(
        ["limits", "set", acme, "--requests-per-day", value],
        /--requests-per-day must be a whole number from 0 to 10{15}, none or default, but is/,
      );
    await wrong(["tiers", "set", acme, "gold"], /There is no such tier/);
  });

  test("creates an owner token, shows it once and accepts it for owner commands", async ({
    acme,
    cli: { ok, json, wrong },
  }) => {
    const shown = await ok(`owners create ${acme} --expires 30d`);
    const [, token = ""] = /^Owner token \(shown only once\): (ow_\w+)$/m.exec(shown) ?? [];
    const { token: newer } = await json(`owners create ${acme}`);
    const owner = { OPERATOR_TOKEN: "", OWNER_TOKEN: newer };
    await wrong(["workspaces", "show"], /OWNER_TOKEN/, { OPERATOR_TOKEN: "", OWNER_TOKEN: token });
    assert.match(await ok("workspaces show", owner), new RegExp(`^name +${acme}$`, "m"));
    const created = await ok("keys create --name app --scope generate --expires 12h", owner);
    const [, id = ""] = new RegExp(`^(key_\\w+) +${acme} +app `, "m").exec(created) ?? [];
    assert.match(created, /^Secret \(shown only once\): ck_\w{33}$/m);
    const { key } = await json(`keys update ${id} --name renamed --expires never`, owner);
    assert.deepEqual([key.name, key.expires_at], ["renamed", undefined]);
    assert.match(await ok("keys list", owner), new RegExp(`^${id} +${acme} +renamed `, "m"));
    assert.ok((await json(`keys revoke ${id}`, owner)).key.revoked_at);
    assert.deepEqual(await json("spend-limits set --period week --amount 7.5", owner), {
      spend_limits: { week: "7.5" },
    });
    assert.match(await ok(`spend-limits set ${acme} --period day --amount 0`, owner), /^day +0$/m);
    assert.match(await ok("spend-limits clear --period day", owner), /^day +none$/m);
    const { cap } = await json("caps set --subject user:* --figure requests --period day --amount 5", owner);
    assert.match(await ok("caps list", owner), new RegExp(`^${cap.id} +user:\\* `, "m"));
    assert.deepEqual(await json(`caps clear ${cap.id}`, owner), {});
    await wrong(["caps", "clear", cap.id], /There is no cap with this identifier/, owner);
    await wrong(["caps", "clear"], /Name the cap by its identifier/, owner);
    assert.match(await ok("usage --by-key --interval hour --from 1d", owner), /^total +0 +0 +0 +0 +0 +0$/m);
    const usage = await json("usage --from 2026-01-01 --to 2026-01-02", owner);
    assert.deepEqual([usage.workspace, usage.from, usage.totals.requests], [acme, "2026-01-01T00:00:00.000Z", 0]);
    // Options of `usage` that have no effect on its commands: an export by user that has a row for each key is wrong.
    for (const args of ["export --by-user", "export --interval month", "--by-tag team export", "top --by-user"])
      await wrong(["usage", ...args.split(" ")], /^error: unknown option '--(by-user|interval|by-tag)'$/m, owner);
    assert.match(await ok("usage --from 1d export --to 2100-01-01", owner), /^day,workspace,key_id/);
    await wrong(["workspaces", "show", "default"], /There is no workspace "default"/, owner);
    await wrong(["credits", "grant", acme, "1", "--reference", "r"], /Only an operator/, owner);
    await wrong(["keys", "update", id, "--expires", "soon"], /--expires must be a time/, owner);
    await wrong(["keys", "update", id], /Set at least one of/, owner);
    await wrong(["spend-limits", "set", "--period", "year", "--amount", "1"], /period must be one of/, owner);
  });

  test("shows the use of keys with their names, in aligned columns", async ({ service, acme, cli: { ok, json } }) => {
    await ok(`credits grant ${acme} 100000 --reference start`);
    const { secret, key } = await json(`keys create --workspace ${acme} --name app`);
    const prompt = `What is 2 + 2? ${"word ".repeat(2_000)}`;
    assert.equal((await service.post("/v1/generate", { prompt }, { "x-api-key": secret })).status, 200);
    const shown = await ok(`usage ${acme} --by-key`);
    assert.match(shown, /^START \(UTC\) +KEY +REQUESTS +FAILED +INPUT/m);
    assert.match(shown, /^\S+ \S+ +app +1 +0 +2,0\d\d /m);
    const [header = "", row = ""] = shown.slice(shown.indexOf("By key:")).split("\n").slice(1);
    assert.match(row, new RegExp(`^${key.id} +app +1 +0 +2,0\\d\\d `));
    assert.equal(header.indexOf("INPUT") + "INPUT".length, row.search(/2,0\d\d/) + "2,000".length);
    const { keys } = await json(`usage ${acme} --by-key`);
    assert.deepEqual([keys[0].key_id, keys[0].name, keys[0].requests], [key.id, "app", 1]);
    assert.match(await ok(`credits ledger ${acme}`), /^\S+ \S+ +grant +start +100,000 +0 +0$/m);
    assert.match(await ok(`workspaces show ${acme}`), /^granted +99,999\.\d+$/m);
  });

  test("says how long to wait when a limit is reached", async ({ service, acme, cli: { ok, json } }) => {
    await ok(`credits grant ${acme} 1000 --reference start`);
    await ok(`limits set ${acme} --requests-per-day 1`);
    const { secret } = await json(`keys create --workspace ${acme}`);
    const ask = () => run(service, ["ask", "hello"], { CHORUS_API_KEY: secret });
    assert.equal((await ask()).code, 0);
    const { code, stderr } = await ask();
    assert.equal(code, 1);
    assert.match(stderr, /limit requests_per_day is reached\. Wait, then .* The wait is \d+ (s|min|h)\.\n$/);
  });

  test("sums up the use of every key, however many there are", async ({ database: { pool }, acme, cli: { json } }) => {
    const { id } = await json(`workspaces show ${acme}`);
    await pool.query(
      `insert into usage select $1, 'day', ('2026-03-0' || day)::timestamptz, 'key_' || i, 1, 0, 10, 20, 5, 100000 * i
       from generate_series(1, 120) i, generate_series(1, 2) day`,
      [id],
    );
    const { keys, totals } = await json(`usage ${acme} --by-key --from 2026-03-01 --to 2026-03-03`);
    assert.deepEqual([keys.length, totals.requests, totals.input_tokens], [120, 240, 2_400]);
    const first = {
      requests: 2,
      failed_requests: 0,
      input_tokens: 20,
      output_tokens: 40,
      cached_tokens: 10,
      credits: 24,
    };
    assert.deepEqual(keys[0], { key_id: "key_120", name: "", ...first });
    const requests = keys.reduce((sum: number, { requests }: { requests: number }) => sum + requests, 0);
    assert.equal(requests, totals.requests);
  });

  test("creates a link that signs the owner in", async ({ service, acme, cli: { ok, json, wrong } }) => {
    // Without DATA_DIR, the command line does not know the public address.
    assert.match(await ok(`owners link ${acme}`), /^\/console#sign-in=li_\w{33}\n\nPut the public address/);
    const here = { DATA_DIR: service.dataDir, CHORUS_RPC_URL: "" };
    const { url, path } = await json(`owners link ${acme}`, here);
    assert.equal(url, service.url + path);
    assert.equal((await openBrowser(service.url).signIn(path.split("=")[1])).status, 200);
    await wrong(["owners", "link", "nobody"], /^chorus: There is no workspace "nobody"/);
  });

  test("prints no terminal control characters", async ({ service, acme }) => {
    const { code, stderr } = await run(service, ["keys", "create", "--workspace", acme, "--name", "a\u001b]0;b\u0007"]);
    assert.equal(code, 1);
    assert.match(stderr, /name may have up to 200 characters, and no control characters/);
    const named = await run(service, ["keys", "create", "--workspace", acme, "--name", "\u202egnp.exe"]);
    assert.match(named.stdout, /\\u202egnp\.exe/);
    assert.ok(!named.stdout.includes("\u202e"));
  });
});
