import assert from "node:assert/strict";
import { test } from "vitest";
import { createNotifications, type NotificationsConnection } from "../../src/store/notifications.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startRelay } from "../helpers/relay.ts";
import { until } from "../helpers/until.ts";

const LISTENERS =
  "select pid from pg_stat_activity where datname = current_database() and application_name like '%listen'";

/** Connects to the channel `test`, and collects its messages and the lines of the log. */
async function connect(
  t: Lifetime,
  url: string,
  pool: Pool,
): Promise<{ notifications: NotificationsConnection; messages: string[]; lines: string[] }> {
  const lines: string[] = [];
  const messages: string[] = [];
  const notifications = createNotifications(createLog("info", { write: (line) => void lines.push(line) }));
  notifications.listen("test", (message) => void messages.push(message));
  notifications.start(url, pool);
  t.onTestFinished(() => notifications.stop());
  await until(() => notifications.period !== undefined);
  return { notifications, messages, lines };
}

test("delivers the messages of a channel to all processes, in order", async (t) => {
  const { pool, url } = await testDatabase(t);
  const own = openPool(url);
  t.onTestFinished(() => own.end());
  const one = await connect(t, url, pool);
  const two = await connect(t, url, own);
  const sent = Array.from({ length: 20 }, (_, i) => `message ${i}`);
  for (const [i, message] of sent.entries()) await [one, two][i % 2]?.notifications.notify("test", message);
  await pool.query("select pg_notify('another_channel', 'not for us')");
  for (const { messages } of [one, two]) {
    await until(() => messages.length === sent.length);
    assert.deepEqual(messages, sent);
  }
});

test("starts a new period after the server has ended the connection", async (t) => {
  const { pool, url } = await testDatabase(t);
  const { notifications, messages, lines } = await connect(t, url, pool);
  const { period: before = 0 } = notifications;
  const [backend] = await pool.query<{ pid: number }>(LISTENERS);
  await pool.query("select pg_terminate_backend($1)", [backend?.pid]);
  await until(() => notifications.period === undefined);
  await until(() => notifications.period !== undefined);
  assert.ok((notifications.period ?? 0) > before);
  await notifications.notify("test", "after");
  await until(() => messages.includes("after"));
  assert.match(lines[0] ?? "", /cannot listen to changes .*DATABASE_LISTEN_URL/);
  assert.match(lines[1] ?? "", /works again/);
});

test("ends the period while the connection is frozen, and replaces the connection", async (t) => {
  const { pool, url } = await testDatabase(t);
  const relay = await startRelay(t, url);
  const { notifications, lines } = await connect(t, relay.url, pool);
  const { period: before = 0 } = notifications;
  const { connections } = relay;
  relay.frozen = true;
  await until(() => notifications.period === undefined);
  assert.deepEqual(lines, [], "the connection is not given up yet");
  await until(() => relay.connections > connections);
  relay.frozen = false;
  await until(() => notifications.period !== undefined);
  assert.ok((notifications.period ?? 0) > before);
});

test("has no period while the pool uses another server than the connection", async (t) => {
  const one = await testDatabase(t);
  const two = await testDatabase(t);
  const lines: string[] = [];
  const notifications = createNotifications(createLog("info", { write: (line) => void lines.push(line) }));
  notifications.start(two.url, one.pool);
  t.onTestFinished(() => notifications.stop());
  await until(() => lines.length > 0);
  assert.equal(notifications.period, undefined);
});

test("stops while the server does not answer", async (t) => {
  const { pool, url } = await testDatabase(t);
  const relay = await startRelay(t, url);
  relay.frozen = true;
  const notifications = createNotifications(createLog("silent"));
  notifications.start(relay.url, pool);
  await until(() => relay.connections > 0);
  await notifications.stop();
  assert.equal(notifications.period, undefined);
});
