import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Pool } from "../../src/store/pool.ts";
import { testDatabase } from "../helpers/database.ts";
import { OFFLINE, test } from "../helpers/fixtures.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startNameServer } from "../helpers/name-server.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startReceiver } from "./receiver.ts";

const ENV = {
  ...OFFLINE,
  CHORUS_ALERTS_MS: '{"compareMs":100,"retryMs":50}',
  CHORUS_WEBHOOK_HOSTS: "127.0.0.1,localhost,.hooks.example",
};

/** Starts a receiver that never answers. @returns its port, and a function for the number of attempts so far */
async function startSilent(t: Lifetime): Promise<{ port: number; attempts(): number }> {
  let attempts = 0;
  const server = createServer(() => attempts++);
  server.listen(0);
  await once(server, "listening");
  t.onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return { port: (server.address() as AddressInfo).port, attempts: () => attempts };
}

/** Creates workspaces with due events for a webhook. */
async function addEvents(pool: Pool, prefix: string, workspaces: number, each: number, url: string): Promise<void> {
  await pool.query(
    `insert into alert_rules (workspace_id, url, secret, credit_below_micro)
     select $1 || w, $2, 'whsec_AAAA', 1 from generate_series(1, $3) w`,
    [prefix, url, workspaces],
  );
  await pool.query(
    `insert into alert_deliveries (workspace_id, id, event, next_at)
     select $1 || w, 'evt_' || i, '{}', now() - interval '1 minute'
     from generate_series(1, $2) w, generate_series(1, $3) i`,
    [prefix, workspaces, each],
  );
}

test("alerts do not wait for attempts to a webhook that never answers", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const [silent, receiver] = [await startSilent(t), await startReceiver(t)];
  const service = await startService(t, { databaseUrl, env: ENV });
  await addEvents(pool, "silent_", 1, 30, `http://127.0.0.1:${silent.port}/`);
  await until(() => silent.attempts() >= 4);
  await addEvents(pool, "other_", 1, 1, receiver.url);
  await until(() => receiver.received.length === 1);
  // Four until the first of them end, after ten seconds.
  assert.ok(silent.attempts() <= 12, `${silent.attempts()} attempts`);
  const metrics = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  assert.match(metrics, /^chorus_alert_wait_seconds \d/m);
});

test("alerts to other hosts do not wait for a host that never answers any workspace", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const [silent, receiver] = [await startSilent(t), await startReceiver(t)];
  await startService(t, { databaseUrl, env: ENV });
  await addEvents(pool, "silent_", 20, 10, `http://localhost:${silent.port}/`);
  await until(() => silent.attempts() >= 16);
  await addEvents(pool, "other_", 1, 20, receiver.url);
  await until(() => receiver.received.length === 20);
  assert.ok(silent.attempts() <= 48, `${silent.attempts()} attempts`);
});

test("alerts do not wait for names that resolve slowly", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const names = await startNameServer(t, (name) =>
    name.startsWith("slow") ? { afterMs: Infinity } : { addresses: ["127.0.0.1"] },
  );
  await startService(t, { databaseUrl, env: { ...ENV, CHORUS_WEBHOOK_DNS_SERVERS: names.address } });
  await addEvents(pool, "slow_", 4, 10, "https://slow.hooks.example/");
  await until(() => names.asked.length > 0);
  await addEvents(pool, "other_", 1, 1, receiver.url.replace("127.0.0.1", "fast.hooks.example"));
  await until(() => receiver.received.length === 1);
  const [waiting] = await pool.query<{ count: bigint }>(
    "select count(*) from alert_deliveries where workspace_id like 'slow%' and attempts = 0",
  );
  assert.ok(Number(waiting?.count) > 0);
});

test("resolves and checks a name for each connection, and refuses it if one address is not public", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const names = await startNameServer(t, (name) =>
    name.startsWith("mixed") ? { addresses: ["8.8.8.8", "10.1.2.3"] } : { addresses: ["127.0.0.1"] },
  );
  await startService(t, { databaseUrl, env: { ...ENV, CHORUS_WEBHOOK_DNS_SERVERS: names.address } });
  await addEvents(pool, "mixed_", 1, 1, "https://mixed.example/");
  await addEvents(pool, "private_", 1, 1, "https://private.example/");
  const rows = () =>
    pool.query<{ attempts: number; error: string | null }>("select attempts, error from alert_deliveries");
  await until(async () => (await rows()).every(({ attempts, error }) => attempts >= 3 && error !== null));
  for (const { error } of await rows())
    assert.equal(error, "The webhook's name leads to an address that is not public.");
  for (const name of ["mixed.example", "private.example"])
    assert.ok(names.asked.filter((asked) => asked === name).length >= 4, names.asked.join(" "));
});

interface Taken {
  workspace_id: string;
  id: string;
  host: string;
}

function take(pool: Pool, room: number, running: readonly Taken[] = []): Promise<Taken[]> {
  const keys = [running.map((one) => one.workspace_id), running.map(({ host }) => host)];
  return pool.query<Taken>("select * from take_alerts($1, 4, 16, $2, $3)", [room, ...keys]);
}

test("takes a bounded number of events of a workspace and for a host, with those under way", async ({ t }) => {
  const { pool } = await testDatabase(t);
  for (let i = 0; i < 6; i++) await addEvents(pool, `ws_${i}_`, 1, 9, `https://SHARED.example:80${i}/${i}`);
  await addEvents(pool, "own_", 1, 9, "https://[2606:4700::1111]/");
  const first = await take(pool, 2);
  assert.equal(new Set(first.map((one) => one.workspace_id)).size, 2);
  const all = [...first, ...(await take(pool, 1_000, first))];
  assert.deepEqual([...new Set(all.map(({ host }) => host))].sort(), ["[2606:4700::1111]", "shared.example"]);
  assert.equal(all.filter(({ host }) => host === "shared.example").length, 16);
  assert.equal(all.filter((one) => one.workspace_id === "own_1").length, 4);
  assert.deepEqual(await take(pool, 1_000, all), []);
});

test("two replicas never take the same event, and together take all", async ({ t }) => {
  const { pool } = await testDatabase(t);
  for (let i = 0; i < 8; i++) await addEvents(pool, `ws_${i}_`, 1, 5, `https://h${i}.example/`);
  const all: string[] = [];
  while (all.length < 40) {
    const taken = (await Promise.all([take(pool, 3), take(pool, 100), take(pool, 5)])).flat();
    assert.ok(taken.length > 0);
    all.push(...taken.map((one) => `${one.workspace_id} ${one.id}`));
  }
  assert.equal(new Set(all).size, 40);
});

test("the workspace whose last attempt is the oldest is first; its own queue does not count as waiting", async ({
  t,
}) => {
  const { pool } = await testDatabase(t);
  for (const name of ["a", "b", "c"]) await addEvents(pool, name, 1, 2, `https://${name}.example/`);
  await pool.query("update alert_rules set sent_at = now() - interval '5 s' where workspace_id = 'a1'");
  await pool.query("update alert_rules set sent_at = now() - interval '9 s' where workspace_id = 'b1'");
  const next = async () => (await take(pool, 1))[0]?.workspace_id;
  const waits = async () => Math.round((await pool.query<{ s: number }>("select alert_wait() as s"))[0]?.s ?? 0);
  assert.equal(await waits(), 60);
  assert.deepEqual([await next(), await next(), await next()], ["c1", "b1", "a1"]);
  assert.equal(await waits(), 0);
});
