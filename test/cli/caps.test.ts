import assert from "node:assert/strict";
import { type CliResult, runCli } from "../helpers/cli.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";

const test = base.extend("env", { scope: "file" }, OFFLINE).extend("chorus", ({ service }) => {
  return (...args: string[]) => runCli(args, { DATA_DIR: service.dataDir });
});

const ok = ({ code, stdout, stderr }: CliResult): string => {
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
};

test("sets, lists and clears caps", async ({ chorus }) => {
  const set = (...options: string[]) => chorus("caps", "set", "default", ...options);
  const table = ok(
    await set("--subject", "user:*", "--figure", "credits", "--period", "day", "--amount", "1234.5", "--then", "low"),
  );
  assert.match(table, /^ID +SUBJECT +FIGURE +PERIOD +AMOUNT +THEN +UNTIL \(UTC\)\n/);
  assert.match(table, /^cap_\w+ +user:\* +credits +day +1,234.5 +low +-$/m);
  const json = ok(
    await set(
      "--subject",
      "tag:team=a",
      "--figure",
      "concurrent_requests",
      "--amount",
      "3",
      "--until",
      "12h",
      "--json",
    ),
  );
  const { cap } = JSON.parse(json) as { cap: Record<string, unknown> };
  const { id, created_at, until, ...rest } = cap;
  assert.deepEqual(rest, {
    ...{ subject: "tag:team=a", figure: "concurrent_requests", period: null, amount: "3", action: "refuse" },
  });
  assert.ok(Math.abs(Date.parse(String(until)) - Date.now() - 12 * 3_600_000) < 60_000);
  assert.ok(Date.parse(String(created_at)) <= Date.now() + 1_000);

  const listed = JSON.parse(ok(await chorus("caps", "list", "default", "--json"))) as { caps: { subject: string }[] };
  assert.deepEqual(
    listed.caps.map(({ subject }) => subject),
    ["tag:team=a", "user:*"],
  );
  assert.equal(ok(await chorus("caps", "clear", "default", String(id))), "The cap is removed.\n");
  assert.doesNotMatch(ok(await chorus("caps", "list", "default")), /tag:team/);

  for (const [options, message] of [
    [["--subject", "user:u", "--figure", "money", "--amount", "1"], /--figure must be one of credits, requests/],
    [["--subject", "user:u", "--figure", "requests", "--amount", "1"], /cap.period must be one of minute, day/],
    [["--subject", "u", "--figure", "requests", "--period", "day", "--amount", "1"], /cap.subject must be key:ID/],
  ] as const) {
    const { code, stderr } = await set(...options);
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
  const { code, stderr } = await chorus("caps", "clear", "cap_x");
  assert.equal(code, 1);
  assert.match(stderr, /Name the workspace/);
});
