import assert from "node:assert/strict";
import { startReceiver } from "../alerts/receiver.ts";
import { runCli } from "../helpers/cli.ts";
import { OFFLINE, test } from "../helpers/fixtures.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

test("sets, tests, lists, shows and removes the alerts of all workspaces", async ({ t }) => {
  const receiver = await startReceiver(t);
  const service = await startService(t, { env: { ...OFFLINE, CHORUS_WEBHOOK_HOSTS: "127.0.0.1" } });
  const chorus = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(["alerts", ...args], { DATA_DIR: service.dataDir });
    assert.deepEqual([code, stderr], [0, ""]);
    return stdout;
  };
  assert.equal(await chorus("show"), "No alerts are set.\n");
  const set = await chorus("set", "--url", receiver.url, "--credit-below", "5", "--failure-share", "0.25");
  assert.match(set, /^Secret of the signatures, shown only once: whsec_/m);
  const shown = JSON.parse(await chorus("show", "--json"));
  assert.deepEqual([shown.webhook_url, shown.credit_below, shown.failure_share], [receiver.url, "5", 0.25]);
  assert.match(await chorus("test"), /^Sending evt_/);
  // A change keeps what it does not name.
  await chorus("set", "--cap-share", "0.8", "--cap", "user:credits_per_day", "--format", "slack");
  await chorus("set", "--credit-below", "none", "--spend-share", "0.5");
  const changed = JSON.parse(await chorus("show", "--json"));
  assert.deepEqual(
    [changed.webhook_url, changed.credit_below ?? "", changed.failure_share, changed.spend_share],
    [receiver.url, "", 0.25, 0.5],
  );
  assert.deepEqual([changed.cap_share, changed.cap_limits], [0.8, ["user:credits_per_day"]]);
  assert.deepEqual([shown.format, changed.format], ["event", "slack"]);
  await chorus("set", "--format", "event");
  await chorus("set", "--cap-share", "none", "--failure-share", "none");
  const fewer = JSON.parse(await chorus("show", "--json"));
  assert.deepEqual([fewer.cap_share, fewer.failure_share, fewer.spend_share], [undefined, undefined, 0.5]);
  await until(() => receiver.received.length === 1);
  await until(
    async () => /^\S+ \S+ {2}evt_\w+ +delivered +1 +200 +.*alert\.test/m.test(await chorus("deliveries")),
    200,
  );
  assert.equal(JSON.parse(await chorus("deliveries", "--json")).deliveries[0].state, "delivered");
  const none = await runCli(["alerts", "deliveries", "--limit", "0"], { DATA_DIR: service.dataDir });
  assert.deepEqual([none.code, none.stderr], [1, 'chorus: --limit must be a whole number from 1, but is "0".\n']);
  assert.equal(JSON.parse(await chorus("deliveries", "--json", "--limit", "2000")).deliveries.length, 1);
  await chorus("clear");
  assert.equal(await chorus("show"), "No alerts are set.\n");
  for (const [args, message] of [
    [
      ["--url", receiver.url, "--spend-share", "80%"],
      '--spend-share must be a number up to 1, such as 0.8, or none, but is "80%".',
    ],
    [["--url", receiver.url, "--format", "teams"], '--format must be event or slack, but is "teams".'],
    [["--spend-share", "0.8"], "No alerts are set yet, so --url must name the webhook or the e-mail addresses."],
  ] as const) {
    const { code, stderr } = await runCli(["alerts", "set", ...args], { DATA_DIR: service.dataDir });
    assert.deepEqual([code, stderr], [1, `chorus: ${message}\n`]);
  }
});
