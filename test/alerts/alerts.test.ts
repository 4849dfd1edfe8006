import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createClient } from "@connectrpc/connect";
import { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import { AlertDeliveryState, AlertFormat, AlertService } from "../../gen/chorus/admin/v1/alerts_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { testDatabase } from "../helpers/database.ts";
import { OFFLINE, test } from "../helpers/fixtures.ts";
import { blocks } from "../helpers/guides.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { transports } from "../helpers/rpc.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { createWorkspace } from "../helpers/workspaces.ts";
import { type Receiver, signatureOf, startReceiver } from "./receiver.ts";

const ENV = { ...OFFLINE, CHORUS_ALERTS_MS: '{"compareMs":100,"retryMs":50}', CHORUS_WEBHOOK_HOSTS: "127.0.0.1" };
const BODY = { prompt: "What is 17 * 23 + 4?", effort: "low" };

function connect({ rpcUrl }: TestService, token: string) {
  const headers = { authorization: `Bearer ${token}` };
  const alerts = createClient(AlertService, transports(rpcUrl)["Connect over HTTP/1.1"]);
  const workspaces = createClient(WorkspaceService, transports(rpcUrl)["Connect over HTTP/1.1"]);
  return { alerts, workspaces, options: { headers } };
}

/** Creates a workspace and returns its key and a client with the token of its owner. */
async function makeOwner(service: TestService, name: string) {
  const key = await createWorkspace(service, name);
  const { workspaces, options } = connect(service, service.operatorToken);
  const { token } = await workspaces.createOwnerToken({ workspace: name }, options);
  return { key, ...connect(service, token) };
}

/** The program of docs/alerts.md that checks a signature. */
async function guideProgram(t: Lifetime) {
  const [block] = await blocks("docs/alerts.md", "js");
  const folder = await mkdtemp(join(tmpdir(), "chorus-guide-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "check.mjs"), block?.text ?? "");
  const program: unknown = await import(pathToFileURL(join(folder, "check.mjs")).href);
  return (program as { isGenuine(headers: object, body: string, secret: string): boolean }).isGenuine;
}

const kinds = ({ received }: Receiver) => received.map(({ event }) => `${event.type} ${event.data.alert ?? ""}`.trim());

test("raises an alert once when it is crossed, and once when it is not any more, from two replicas", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  await startService(t, { databaseUrl, env: ENV });
  const { key, alerts, options } = await makeOwner(service, "team");
  const request = { alerts: { webhookUrl: receiver.url, creditBelow: "99999.999" } };
  const { secret, alerts: set } = await alerts.setAlerts(request, options);
  assert.match(secret, /^whsec_[\w+/]{32}$/);
  assert.equal(set?.creditBelow, "99999.999");
  await service.post("/v1/generate", BODY, { "x-api-key": key });
  await until(() => receiver.received.length === 1);

  const [first] = receiver.received;
  assert.ok(first);
  const isGenuine = await guideProgram(t);
  assert.ok(isGenuine(first.headers, first.body, secret));
  assert.ok(!isGenuine(first.headers, first.body.replace("team", "meat"), secret));
  assert.equal(first.headers["webhook-signature"], signatureOf(first, secret));
  assert.ok(Math.abs(Number(first.headers["webhook-timestamp"]) - Date.now() / 1_000) < 60);
  const { data, ...event } = first.event;
  assert.equal(event.type, "alert.raised");
  assert.deepEqual([data.alert, data.workspace, data.threshold], ["credit_left", "team", 99_999.999]);
  assert.ok(Number(data.value) < 99_999.999);

  await pool.query("select book_credit(id, 'grant', 'more', 1000000) from workspaces where name = 'team'");
  await until(() => receiver.received.length === 2);
  assert.deepEqual(kinds(receiver), ["alert.raised credit_left", "alert.cleared credit_left"]);
  // Both replicas have compared since then.
  const compared = async () => (await pool.query("select compared_at::text as at from alert_clock"))[0]?.at;
  for (let i = 0; i < 4; i++) {
    const before = await compared();
    await until(async () => (await compared()) !== before);
  }
  assert.equal(receiver.received.length, 2);

  const { deliveries } = await alerts.listAlertDeliveries({}, options);
  assert.deepEqual(
    deliveries.map((one) => [one.state, one.attempts, one.responseStatus, one.error]),
    [1, 2].map(() => [AlertDeliveryState.DELIVERED, 1, 200, ""]),
  );
  assert.equal(deliveries[1]?.event, first.body);
  assert.equal(deliveries[1]?.id, first.headers["webhook-id"]);
});

test("raises alerts on the share of a spend limit and of failed requests; operators watch all workspaces", async ({
  t,
}) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const [own, all] = [await startReceiver(t), await startReceiver(t)];
  const service = await startService(t, { databaseUrl, env: ENV });
  const { key, alerts, options } = await makeOwner(service, "team");
  const operator = connect(service, service.operatorToken);
  const thresholds = { spendShare: 0.8, failureShare: 0.5 };
  await alerts.setAlerts({ alerts: { webhookUrl: own.url, ...thresholds } }, options);
  await operator.alerts.setAlerts({ alerts: { webhookUrl: all.url, ...thresholds } }, operator.options);
  await service.post("/v1/generate", BODY, { "x-api-key": key });
  await pool.query(`update accounts set spend_limits = '{"day":1000}' where workspace_id = (
    select id from workspaces where name = 'team')`);
  await pool.query(`update periods set spent_micro = '{800,800,800,800}' where workspace_id = (
    select id from workspaces where name = 'team')`);
  await until(() => own.received.length === 1 && all.received.length === 1);
  assert.deepEqual([...kinds(own), ...kinds(all)], ["alert.raised spend_share", "alert.raised spend_share"]);
  assert.equal(own.received[0]?.event.data.value, 0.8);
  await pool.query("update usage set failed_requests = 20 where unit = 'minute'");
  await until(() => own.received.length === 2 && all.received.length === 2);
  assert.equal(kinds(own)[1], "alert.raised failure_share");
  assert.equal(all.received[1]?.event.data.workspace, "team");
  // The secrets differ.
  assert.notEqual(own.received[0]?.headers["webhook-signature"], all.received[0]?.headers["webhook-signature"]);
});

test("raises an alert for each spend limit, also while that of another one is raised", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  const { key, alerts, options } = await makeOwner(service, "team");
  await alerts.setAlerts({ alerts: { webhookUrl: receiver.url, spendShare: 0.8 } }, options);
  await service.post("/v1/generate", BODY, { "x-api-key": key });
  const spend = async (limits: object, spent: number) => {
    const ofTeam = "workspace_id = (select id from workspaces where name = 'team')";
    // In one statement: figures are compared at any moment.
    await pool.query(
      `with limited as (update accounts set spend_limits = $1 where ${ofTeam})
       update periods set spent_micro = array_fill($2::bigint, array[4]) where ${ofTeam}`,
      [limits, spent],
    );
  };
  const received = () => receiver.received.map(({ event }) => [event.type, event.data.period, event.data.value]);
  await spend({ day: 1_000, month: 2_000 }, 800);
  await until(() => receiver.received.length === 1);
  await spend({ day: 1_000, month: 1_000 }, 900);
  await until(() => receiver.received.length === 2);
  await spend({ month: 1_000 }, 900);
  await until(() => receiver.received.length === 3);
  assert.deepEqual(received(), [
    ["alert.raised", "day", 0.8],
    ["alert.raised", "month", 0.9],
    ["alert.cleared", "day", 0],
  ]);
});

test("raises an alert again when its threshold or the address changes, and not when others do", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const [receiver, other] = [await startReceiver(t), await startReceiver(t)];
  const service = await startService(t, { databaseUrl, env: ENV });
  const { alerts, options } = await makeOwner(service, "team");
  const set = async (changes: object) => {
    await alerts.setAlerts({ alerts: { webhookUrl: receiver.url, creditBelow: "1000000", ...changes } }, options);
    await pool.query("update alert_clock set compared_at = '-infinity'");
    await until(async () => (await pool.query("select from alert_clock where compared_at > '-infinity'")).length > 0);
  };
  await set({});
  await until(() => receiver.received.length === 1);
  await set({ failureShare: 0.5 });
  await set({ failureShare: 0.5, spendShare: 0.5 });
  await set({ creditBelow: "2000000" });
  await until(() => receiver.received.length >= 2);
  const bounds = receiver.received.map(({ event }) => event.data.threshold);
  assert.deepEqual(bounds, [1_000_000, 2_000_000], "none for other thresholds");
  await set({ webhookUrl: other.url });
  await until(() => other.received.length === 1);
  await set({ webhookUrl: other.url, creditBelow: "0.5" });
  await until(() => other.received.length === 2);
  await set({ webhookUrl: other.url, creditBelow: "0.4" });
  await set({ webhookUrl: other.url, creditBelow: "1000000" });
  await until(() => other.received.length === 3);
  await set({ webhookUrl: receiver.url, creditBelow: "0.5" });
  await set({ webhookUrl: receiver.url, creditBelow: "1000000" });
  await until(() => receiver.received.length === 3);
  assert.deepEqual(kinds(other), ["alert.raised credit_left", "alert.cleared credit_left", "alert.raised credit_left"]);
  assert.equal(kinds(receiver).at(-1), "alert.raised credit_left", "nothing is cleared that it did not know of");
});

test("raises alerts after the clock of the database was set back", async ({ t }) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one')");
  await pool.query("insert into accounts (workspace_id) values ('ws_1')");
  await pool.query(
    `insert into alert_rules (workspace_id, url, secret, credit_below_micro, cap_share)
     values ('ws_1', '', '', 1, 0.5)`,
  );
  // The same states as after a comparison a day ago, by a clock that was then two days ahead.
  await pool.query("update alert_clock set compared_at = now() + interval '1 day'");
  await pool.query(
    `insert into alert_states values
       ('ws_1', 'ws_1', 'credit_left', now() + interval '1 day', now() + interval '1 day')`,
  );
  await pool.query(
    `insert into caps (workspace_id, id, subject, figure, period, amount, action, created_at)
     values ('ws_1', 'cap_1', 'user:a', 'requests', 'day', 4, 'refuse', now())`,
  );
  const none = "{0,0,0,0,0}";
  await pool.query("insert into subject_periods values ('ws_1', 'user:a', now(), '{2,2,2,2,2}', $1, $1, $1)", [none]);
  const raise = async () => (await pool.query("select raise_alerts('1 minute') as n"))[0]?.n;
  assert.equal(await raise(), 2n);
  assert.equal(await raise(), 0n, "a minute has not passed");
});

test("retries a delivery with growing waits, follows no redirect, and gives up after eight attempts", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  const { alerts, options } = await makeOwner(service, "team");
  receiver.statuses.push(500, 307);
  await alerts.setAlerts({ alerts: { webhookUrl: receiver.url, creditBelow: "1" } }, options);
  const { deliveryId } = await alerts.testAlerts({}, options);
  await until(() => receiver.received.length === 3);
  const ids = receiver.received.map(({ headers }) => headers["webhook-id"]);
  assert.deepEqual(ids, [deliveryId, deliveryId, deliveryId]);
  const last = async () => (await alerts.listAlertDeliveries({ pageSize: 1 }, options)).deliveries[0];
  await until(async () => (await last())?.state === AlertDeliveryState.DELIVERED);
  assert.deepEqual([(await last())?.attempts, (await last())?.error], [3, ""]);

  receiver.statuses.push(...Array(6).fill(503));
  await until(
    () =>
      alerts.testAlerts({}, options).then(
        () => true,
        () => false,
      ),
    100,
  );
  await until(async () => Number((await last())?.attempts) >= 2 && (await last())?.error !== "");
  assert.match((await last())?.error ?? "", /^The webhook answered 503\.$/);
  assert.ok((await last())?.nextAttemptAt);
  // Brings the last attempt forward.
  await pool.query("update alert_deliveries set attempts = 7, next_at = now() where state = 'waiting'");
  await until(async () => (await last())?.state === AlertDeliveryState.FAILED);
  assert.deepEqual([(await last())?.attempts, (await last())?.nextAttemptAt], [8, undefined]);
  await until(() => service.output().includes("gave up the delivery of an alert"));
});

test("does not count an attempt that the end of the service has cut off, and makes it again", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  const { alerts, options } = await makeOwner(service, "team");
  receiver.statuses.push(500, 0);
  await alerts.setAlerts({ alerts: { webhookUrl: receiver.url, creditBelow: "1" } }, options);
  await alerts.testAlerts({}, options);
  await until(() => receiver.received.length === 2);
  // An event whose last attempt is cut off would be given up.
  await pool.query("update alert_deliveries set attempts = 8");
  assert.equal(await service.stop(), 0);
  const read = () => pool.query("select state, attempts, error from alert_deliveries");
  assert.deepEqual(await read(), [{ state: "waiting", attempts: 7, error: "The webhook answered 500." }]);

  await startService(t, { databaseUrl, env: ENV });
  await until(() => receiver.received.length === 3);
  await until(async () => (await read())[0]?.state === "delivered");
  assert.deepEqual(await read(), [{ state: "delivered", attempts: 8, error: null }]);
});

test("writes events as messages of a channel, and says in the list what happened", async ({ t }) => {
  const { url: databaseUrl } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  const { key, alerts, options } = await makeOwner(service, "team");
  const set = { webhookUrl: receiver.url, creditBelow: "99999.999" };
  const { alerts: found } = await alerts.setAlerts({ alerts: { ...set, format: AlertFormat.SLACK } }, options);
  assert.equal(found?.format, AlertFormat.SLACK);
  await service.post("/v1/generate", BODY, { "x-api-key": key });
  await until(() => receiver.received.length === 1);
  const { text, ...others } = JSON.parse(receiver.received[0]?.body ?? "");
  assert.match(text, /^Chorus, workspace team: 99999\.99\d* credits are left; the alert is at 99999\.999\.$/);
  assert.deepEqual(others, {});
  const { deliveries } = await alerts.listAlertDeliveries({}, options);
  assert.equal(JSON.parse(deliveries[0]?.event ?? "").data.alert, "credit_left");
  // Without a format, events are those of Standard Webhooks again.
  assert.equal((await alerts.setAlerts({ alerts: set }, options)).alerts?.format, AlertFormat.EVENT);
});

test("keeps the last 200 deliveries of a workspace", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  const { alerts, options } = await makeOwner(service, "team");
  await alerts.setAlerts({ alerts: { webhookUrl: receiver.url, creditBelow: "1" } }, options);
  await pool.query(`insert into alert_deliveries (workspace_id, id, event)
    select id, 'evt_' || i, '{}' from workspaces, generate_series(1, 230) i where name = 'team'`);
  await until(() => receiver.received.length > 0);
  await until(async () => (await pool.query("select from alert_deliveries")).length === 200, 50);
  const first = await alerts.listAlertDeliveries({ pageSize: 150 }, options);
  const second = await alerts.listAlertDeliveries({ pageSize: 150, pageToken: first.nextPageToken }, options);
  assert.equal(new Set([...first.deliveries, ...second.deliveries].map(({ id }) => id)).size, 200);
  assert.equal(second.nextPageToken, "");
});

test("tells operators of each workspace when more cross a threshold at once than events may wait", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  const { alerts, options } = connect(service, service.operatorToken);
  await pool.query("insert into workspaces (id, name) select 'w' || i, 'w' || i from generate_series(1, 230) i");
  await pool.query("insert into accounts (workspace_id) select 'w' || i from generate_series(1, 230) i");
  await pool.query(
    `insert into periods select 'w' || i, clock_timestamp(), '{1,1,1,1}', '{1,1,1,1}', '{0,0,0,0}', '{0,0,0,0}',
       clock_timestamp() from generate_series(1, 230) i`,
  );
  await alerts.setAlerts({ alerts: { webhookUrl: receiver.url, creditBelow: "1" } }, options);
  const waiting = async () => (await pool.query("select from alert_deliveries where state = 'waiting'")).length;
  await until(async () => (await waiting()) > 0);
  assert.ok((await waiting()) <= 200);
  const told = () => new Set(receiver.received.map(({ event }) => event.data.workspace)).size;
  await until(() => told() === 230);
  await until(async () => (await pool.query("select from alert_deliveries")).length <= 200);
  assert.equal(receiver.received.length, 230);
});

test("raises what there was no room for also when its workspace has no requests any more", async ({ t }) => {
  const { pool } = await testDatabase(t);
  const ids = "from generate_series(1, 230) i";
  const none = "{0,0,0,0}";
  await pool.query(`insert into workspaces (id, name) select 'w' || i, 'w' || i ${ids}`);
  await pool.query(`insert into accounts (workspace_id) select 'w' || i ${ids}`);
  await pool.query(
    `insert into periods select 'w' || i, clock_timestamp(), '{1,1,1,1}', $1, $1, $1, clock_timestamp() ${ids}`,
    [none],
  );
  await pool.query(
    `insert into alert_rules (workspace_id, url, secret, credit_below_micro)
     values ('', 'https://hooks.example', 'secret', 1000000)`,
  );
  const raise = async () => (await pool.query("select raise_alerts('0') as n"))[0]?.n;
  const deliver = () => pool.query("update alert_deliveries set state = 'delivered'");
  assert.equal(await raise(), 200n);
  await pool.query("update periods set at = clock_timestamp() - interval '1 hour'");
  assert.equal(await raise(), 0n, "there is no room");
  const left = await pool.query<{ id: string }>(
    `select id from workspaces w
     where not exists (select from alert_deliveries where event::jsonb -> 'data' ->> 'workspace_id' = w.id)`,
  );
  assert.equal(left.length, 30);
  const [paid, poor] = left;
  await pool.query("update accounts set granted_micro = 9000000 where workspace_id = $1", [paid?.id]);
  assert.equal(await raise(), 0n);
  await pool.query("update accounts set granted_micro = 500000 where workspace_id = $1", [poor?.id]);
  await deliver();
  assert.equal(await raise(), 29n, "one is not crossed any more, of which nobody was told");
  await deliver();
  assert.equal(await raise(), 0n);
  const events = await pool.query("select from alert_deliveries where event like '%alert.raised%'");
  assert.equal(events.length, 229);
});

test("refuses invalid alerts and private webhooks, and keeps the alerts of owners apart", async ({ t }) => {
  const service = await startService(t, { env: { ...ENV, CHORUS_WEBHOOK_HOSTS: ".svc.example" } });
  const { alerts, options } = await makeOwner(service, "team");
  const other = await makeOwner(service, "other");
  const webhookUrl = "https://example.com/hook";
  const refused: [alerts: object, message: RegExp][] = [
    [{ webhookUrl }, /must have credit_below, spend_share, failure_share or cap_share/],
    [{ webhookUrl, creditBelow: "x" }, /alerts\.credit_below/],
    [{ webhookUrl, spendShare: 0 }, /alerts\.spend_share must be above 0/],
    [{ webhookUrl, failureShare: 1.5 }, /alerts\.failure_share/],
    [
      { webhookUrl: "http://example.com", creditBelow: "1" },
      /webhook_url must be an address with https, unless .*HOSTS\.$/,
    ],
    [{ webhookUrl: "https://a:b@example.com", creditBelow: "1" }, /webhook_url must be .* without a user name/],
    [{ webhookUrl: "example.com/hook", creditBelow: "1" }, /webhook_url must be an address such as/],
    [{ webhookUrl: "ftp://a.svc.example", creditBelow: "1" }, /webhook_url/],
    ...[
      "127.0.0.1",
      "10.1.2.3",
      "169.254.169.254",
      "[::1]",
      "[::ffff:10.0.0.1]",
      "[fd00::1]",
      "2130706433",
      "0x7f.1",
    ].map((host): [object, RegExp] => [
      { webhookUrl: `https://${host}/`, creditBelow: "1" },
      /must be a public address, unless an operator allows its host with CHORUS_WEBHOOK_HOSTS\.$/,
    ]),
  ];
  for (const [given, message] of refused) {
    await assert.rejects(alerts.setAlerts({ alerts: given }, options), message, JSON.stringify(given));
  }
  await assert.rejects(alerts.setAlerts({}, options), /alerts must have a webhook/);
  await assert.rejects(alerts.testAlerts({}, options), /No alerts are set/);

  const set = { alerts: { webhookUrl: "http://hook.svc.example:8080/", creditBelow: "1" } };
  const { secret } = await alerts.setAlerts(set, options);
  assert.equal((await alerts.setAlerts(set, options)).secret, "");
  assert.notEqual((await alerts.setAlerts({ ...set, newSecret: true }, options)).secret, secret);
  assert.equal((await other.alerts.getAlerts({}, other.options)).alerts, undefined);
  await assert.rejects(other.alerts.getAlerts({ workspace: "team" }, other.options), /There is no workspace/);
  await alerts.clearAlerts({}, options);
  assert.equal((await alerts.getAlerts({}, options)).alerts, undefined);
});

test("keeps the host of a webhook in the audit, and not its path, which may be a secret", async ({ t }) => {
  const service = await startService(t, { env: ENV });
  const { operatorToken, rpcUrl } = service;
  const { alerts, options } = connect(service, operatorToken);
  const activity = createClient(ActivityService, transports(rpcUrl)["Connect over HTTP/1.1"]);
  const recorded = async (webhookUrl: string) => {
    await alerts.setAlerts({ alerts: { webhookUrl, creditBelow: "1" } }, options);
    const { entries } = await activity.listAudit({ action: "alerts.set", pageSize: 1 }, options);
    return JSON.parse(entries[0]?.details ?? "{}").webhookUrl;
  };
  assert.equal(await recorded("https://hooks.slack.com/services/T0/B0/secret?a=b"), "https://hooks.slack.com");
  assert.equal(await recorded("http://127.0.0.1:9/secret"), "http://127.0.0.1:9");
});

test("refuses a name that leads to a private address when the event is sent", async ({ t }) => {
  const service = await startService(t, { env: { ...ENV, CHORUS_WEBHOOK_HOSTS: "" } });
  const { alerts, options } = await makeOwner(service, "team");
  await alerts.setAlerts({ alerts: { webhookUrl: "https://localhost:9/", creditBelow: "1" } }, options);
  await alerts.testAlerts({}, options);
  await until(async () => {
    const { deliveries } = await alerts.listAlertDeliveries({}, options);
    return deliveries[0]?.error === "The webhook's name leads to an address that is not public.";
  });
});
