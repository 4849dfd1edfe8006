import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { AlertDeliveryState, AlertService } from "../../gen/chorus/admin/v1/alerts_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import { OFFLINE, test } from "../helpers/fixtures.ts";
import { transports } from "../helpers/rpc.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { createWorkspace } from "../helpers/workspaces.ts";
import { type MailServer, partsOf, startMailServer } from "./mail-server.ts";

const ENV = { ...OFFLINE, CHORUS_ALERTS_MS: '{"compareMs":100,"retryMs":50}' };
const BODY = { prompt: "What is 17 * 23 + 4?", effort: "low" };

const mailEnv = ({ port }: MailServer) => ({
  ...ENV,
  CHORUS_SMTP_URL: `smtp://127.0.0.1:${port}`,
  CHORUS_MAIL_FROM: "chorus@example.com",
});

/** Creates a workspace and returns its key and a client with the token of its owner. */
async function makeOwner(service: TestService, name: string) {
  const key = await createWorkspace(service, name);
  const transport = transports(service.rpcUrl)["Connect over HTTP/1.1"];
  const operator = { headers: { authorization: `Bearer ${service.operatorToken}` } };
  const { token } = await createClient(WorkspaceService, transport).createOwnerToken({ workspace: name }, operator);
  const options = { headers: { authorization: `Bearer ${token}` } };
  return { key, alerts: createClient(AlertService, transport), options };
}

test("sends an alert by e-mail once, although the mail server refuses it at first", async ({ t }) => {
  const server = await startMailServer(t);
  server.refusals.push("451 4.3.0 Not now", "451 4.3.0 Not now");
  const service = await startService(t, { env: mailEnv(server) });
  const { key, alerts, options } = await makeOwner(service, "team");
  const set = { webhookUrl: "mailto:ann@example.com,bob@example.com", creditBelow: "99999.999" };
  const { secret, alerts: found } = await alerts.setAlerts({ alerts: set }, options);
  assert.deepEqual([secret, found?.webhookUrl], ["", set.webhookUrl]);
  await service.post("/v1/generate", BODY, { "x-api-key": key });
  const last = async () => (await alerts.listAlertDeliveries({}, options)).deliveries[0];
  await until(async () => (await last())?.state === AlertDeliveryState.DELIVERED);
  const delivery = await last();
  assert.deepEqual([delivery?.attempts, delivery?.responseStatus, delivery?.error], [3, 250, ""]);
  assert.equal(server.mails.length, 3);
  const [mail, ...others] = server.mails;
  assert.ok(mail);
  for (const other of others) assert.deepEqual(other, mail);
  assert.deepEqual(mail.to, ["ann@example.com", "bob@example.com"]);
  const { headers, text } = partsOf(mail);
  assert.equal(headers.get("message-id"), `<${delivery?.id}@example.com>`);
  assert.equal(headers.get("subject"), text.trimEnd());
  assert.match(text, /^Chorus, workspace team: 99999\.99\d* credits are left; the alert is at 99999\.999\.\r\n$/);
});

test("sends a test by e-mail once a minute at most", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const server = await startMailServer(t);
  const service = await startService(t, { databaseUrl, env: mailEnv(server) });
  const { alerts, options } = await makeOwner(service, "team");
  await alerts.setAlerts({ alerts: { webhookUrl: "mailto:ann@example.com", creditBelow: "1" } }, options);
  const tests = await Promise.allSettled([1, 2, 3].map(() => alerts.testAlerts({}, options)));
  assert.equal(tests.filter(({ status }) => status === "fulfilled").length, 1);
  await until(() => server.mails.length === 1);
  await assert.rejects(alerts.testAlerts({}, options), /A test was sent less than 60 s ago/);
  await pool.query("update alert_deliveries set created_at = created_at - interval '20 s'");
  await assert.rejects(alerts.testAlerts({}, options), /less than 60 s ago/);
  await pool.query("update alert_deliveries set created_at = created_at - interval '40 s'");
  await alerts.testAlerts({}, options);
  await until(() => server.mails.length === 2);
  const texts = server.mails.map((mail) => partsOf(mail).text);
  assert.deepEqual(texts, Array(2).fill("Chorus: this is a test of your alerts.\r\n"));
});

test("refuses e-mail that the configuration does not allow, and names the field", async ({ t }) => {
  const alertsTo = (webhookUrl: string) => ({ alerts: { webhookUrl, creditBelow: "1" } });
  const without = await startService(t, { env: ENV });
  const other = await makeOwner(without, "team");
  await assert.rejects(
    other.alerts.setAlerts(alertsTo("mailto:ann@example.com"), other.options),
    /alerts\.webhook_url is an e-mail address, but this service sends no e-mail\..*CHORUS_SMTP_URL/,
  );

  const server = await startMailServer(t);
  const env = {
    ...mailEnv(server),
    CHORUS_MAIL_DOMAINS: "example.com,.example.org",
    CHORUS_WEBHOOK_HOSTS: "127.0.0.1",
  };
  const { alerts, options } = await makeOwner(await startService(t, { env }), "team");
  for (const [target, message] of [
    ["mailto:", /alerts\.webhook_url must be mailto: and up to 5 e-mail addresses/],
    ["mailto:ann@example.com\r\nBcc: eve@example.com", /must be mailto:/],
    [`mailto:${Array(6).fill("ann@example.com").join(",")}`, /must be mailto:/],
    ["mailto:ann@example.com,eve@example.net", /has eve@example\.net, but e-mail is sent only to example\.com/],
    ["mailto:eve@notexample.org", /has eve@notexample\.org/],
    ["mailto:eve@example.com.evil.net", /has eve@example\.com\.evil\.net/],
  ] as const)
    await assert.rejects(alerts.setAlerts(alertsTo(target), options), message, target);
  const to = alertsTo("mailto:ann@EXAMPLE.com,bob@mail.example.org");
  await assert.rejects(alerts.setAlerts({ ...to, newSecret: true }, options), /new_secret|not signed/);
  // The secret is shown when there is a webhook that needs it.
  assert.equal((await alerts.setAlerts(to, options)).secret, "");
  const { secret } = await alerts.setAlerts(alertsTo("http://127.0.0.1:9/"), options);
  assert.match(secret, /^whsec_/);
  assert.equal((await alerts.setAlerts(alertsTo("http://127.0.0.1:9/"), options)).secret, "");
  await alerts.setAlerts(to, options);
  assert.notEqual((await alerts.setAlerts(alertsTo("http://127.0.0.1:9/"), options)).secret, secret);
});

test("mails of a workspace pause after 60 in an hour, and all count as sent to one host", async ({ t }) => {
  const { pool } = await testDatabase(t);
  for (let i = 0; i < 5; i++) await addMails(pool, `ws_${i}`, 4, 0);
  await addMails(pool, "paused", 4, 60);
  await addMails(pool, "nearly", 4, 59);
  const take = () =>
    pool.query<{ workspace_id: string; host: string }>("select * from take_alerts(1000, 4, 16, '{}', '{}')");
  const taken = await take();
  assert.equal(taken.length, 16);
  assert.deepEqual(new Set(taken.map(({ host }) => host)), new Set(["mailto:"]));
  const rest = await take();
  const of = (name: string) => [...taken, ...rest].filter(({ workspace_id }) => workspace_id === name).length;
  assert.deepEqual([of("nearly"), of("paused")], [4, 0]);
  assert.deepEqual(await pool.query("select alert_wait() as s"), [{ s: 0 }]);
  await pool.query("update alert_deliveries set next_at = next_at - interval '1 hour' where state = 'delivered'");
  assert.equal((await take()).length, 4);
});

/** Creates a workspace with due mails, and some that were sent a moment ago. */
async function addMails(pool: Pool, name: string, due: number, sent: number): Promise<void> {
  await pool.query(
    `insert into alert_rules (workspace_id, url, secret, credit_below_micro)
     values ($1, 'mailto:' || $1 || '@example.com', 'whsec_AAAA', 1)`,
    [name],
  );
  await pool.query(
    `insert into alert_deliveries (workspace_id, id, event, state, next_at)
     select $1, 'evt_' || i, '{}', case when i > $2::int then 'delivered' else 'waiting' end, now()
     from generate_series(1, $2::int + $3::int) i`,
    [name, due, sent],
  );
}
