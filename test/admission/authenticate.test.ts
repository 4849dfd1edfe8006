import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { Scope } from "../../gen/chorus/admin/v1/keys_pb.js";
import { type Caller, createAuthenticator, requireScope } from "../../src/admission/authenticate.ts";
import { hashSecret } from "../../src/admission/secret.ts";
import { createNotifications, type NotificationsConnection } from "../../src/store/notifications.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { adminOf } from "../helpers/admin.ts";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startRelay } from "../helpers/relay.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

const UNAUTHENTICATED = {
  kind: "unauthenticated",
  message: "The request needs a valid API key in the header X-API-Key, or in Authorization as a bearer token.",
};

/** Wraps a pool to count its statements. */
function counted(pool: Pool): Pool & { statements: number; running: number } {
  const counter: ReturnType<typeof counted> = {
    ...pool,
    statements: 0,
    running: 0,
    query: (text, values) => {
      counter.statements++;
      counter.running++;
      return pool.query<never>(text, values).finally(() => counter.running--);
    },
  };
  return counter;
}

/** The keys of a new workspace, and their look-up on the replica that changes them. */
async function workspace(pool: Pool) {
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one')");
  const { keys, authenticate } = adminOf(pool);
  return {
    authenticate,
    async create(request: { scopes?: Scope[]; expiresAt?: Date } = {}) {
      const { scopes = [], expiresAt } = request;
      const expiry = expiresAt ? { expiresAt: timestampFromDate(expiresAt) } : {};
      const { key, secret } = await keys.createKey({ workspace: "one", scopes, ...expiry });
      return { id: key?.id ?? "", secret };
    },
    revoke: (id: string) => keys.revokeKey({ id }),
  };
}

test("identifies the caller of a valid key and refuses every other secret with the same message", async (t) => {
  const { pool } = await testDatabase(t);
  const keys = await workspace(pool);
  const key = await keys.create({ scopes: [Scope.METRICS] });
  assert.deepEqual(await keys.authenticate(key.secret), {
    workspaceId: "ws_1",
    workspace: "one",
    keyId: key.id,
    scopes: ["metrics"],
  });
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes, revoked_at, expires_at)
     values ('ws_1', 'key_r', sha256('revoked'), '', '{generate}', now(), null),
       ('ws_1', 'key_e', sha256('expired'), '', '{generate}', null, now())`,
  );
  const wrong = [
    undefined,
    "",
    "revoked",
    "expired",
    "unknown",
    ` ${key.secret}`,
    key.secret.toLowerCase(),
    "x".repeat(100_000),
    "\0",
    "ключ",
  ];
  for (const secret of wrong) await assert.rejects(keys.authenticate(secret), UNAUTHENTICATED, secret?.slice(0, 40));
});

test("refuses a key within a second after it was revoked in the database, under constant use", async (t) => {
  const { pool, url } = await testDatabase(t);
  const keys = await workspace(pool);
  const { secret, id } = await keys.create();
  const replicaPool = openPool(url);
  t.onTestFinished(() => replicaPool.end());
  const replica = openAuthenticator(replicaPool, Date.now);
  for (const end = Date.now() + 700; Date.now() < end; await sleep(5)) await replica.authenticate(secret);
  await pool.query("update api_keys set revoked_at = now() where id = $1", [id]);
  const revoked = performance.now();
  const works = () =>
    replica.authenticate(secret).then(
      () => true,
      () => false,
    );
  await until(async () => !(await works()));
  // A cached look-up counts for half a second; a busy machine adds some.
  assert.ok(performance.now() - revoked < 5_000, `${performance.now() - revoked} ms`);
  await pool.query("update api_keys set revoked_at = null where id = $1", [id]);
  const restored = performance.now();
  await until(works);
  assert.ok(performance.now() - restored < 5_000, "a refused key is cached no longer than a valid one");
});

test("refuses a key at once on the replica that revoked it", async (t) => {
  const { pool } = await testDatabase(t);
  const keys = await workspace(pool);
  const { secret, id } = await keys.create();
  await keys.authenticate(secret);
  await keys.revoke(id);
  await assert.rejects(keys.authenticate(secret), UNAUTHENTICATED);
});

test("checks expiry at each use, caches a look-up for 500 ms and shares it between concurrent calls", async (t) => {
  const { pool } = await testDatabase(t);
  const setUp = await workspace(pool);
  const start = Date.now();
  let now = start;
  const { secret } = await setUp.create({ expiresAt: new Date(start + 60_000) });
  const counter = counted(pool);
  const { authenticate } = openAuthenticator(counter, () => now);
  await Promise.all(Array.from({ length: 50 }, () => authenticate(secret)));
  assert.equal(counter.statements, 1);
  now += 249;
  await authenticate(secret);
  assert.equal(counter.statements, 1);
  now += 1;
  await authenticate(secret);
  assert.equal(counter.statements, 2, "looked up again in the background");
  await until(() => counter.running === 0);
  now += 500;
  await authenticate(secret);
  assert.equal(counter.statements, 3);
  now -= 10_000;
  await authenticate(secret);
  assert.equal(counter.statements, 4, "a clock that is set back does not extend the cache time");
  now = start + 59_999;
  await authenticate(secret);
  now += 1;
  await assert.rejects(authenticate(secret), UNAUTHENTICATED);
});

test("sends few statements for a flood of unknown keys and keeps valid keys in the cache", async (t) => {
  const { pool } = await testDatabase(t);
  const keys = await workspace(pool);
  const { secret } = await keys.create();
  const counter = counted(pool);
  const now = Date.now();
  const { authenticate } = openAuthenticator(counter, () => now);
  await authenticate(secret);
  for (let round = 0; round < 2; round++) {
    const results = await Promise.allSettled(
      Array.from({ length: 6_000 }, (_, i) => authenticate(`made-up ${round} ${i}`)),
    );
    assert.ok(results.every((result) => result.status === "rejected" && result.reason.kind === "unauthenticated"));
  }
  assert.ok(counter.statements <= 20, String(counter.statements));
  const before = counter.statements;
  await authenticate(secret);
  assert.equal(counter.statements, before, "the valid key is still cached");
  await assert.rejects(authenticate("made-up 1 5999"));
  assert.equal(counter.statements, before, "a recent unknown key is still cached");
  await assert.rejects(authenticate("made-up 0 0"));
  assert.equal(counter.statements, before + 1, "an early unknown key was evicted");
});

test("accepts cached keys for 500 ms without the database, then fails with overloaded, and recovers", async (t) => {
  const { pool, url } = await testDatabase(t);
  const setUp = await workspace(pool);
  const { secret } = await setUp.create();
  const own = openPool(url);
  t.onTestFinished(() => own.end());
  let now = Date.now();
  let away = false;
  const flaky: Pool = {
    ...own,
    query: (text, values) =>
      away
        ? Promise.reject(Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" }))
        : own.query(text, values),
  };
  const { authenticate } = openAuthenticator(flaky, () => now);
  await authenticate(secret);
  away = true;
  now += 499;
  await authenticate(secret);
  // Time for the background look-up to fail.
  await sleep(10);
  now += 1;
  await assert.rejects(authenticate(secret), { kind: "overloaded", retryAfterMs: 1_000 });
  await assert.rejects(authenticate("unknown"), { kind: "overloaded" });
  away = false;
  await authenticate(secret);
});

test("replaces lost connections", async (t) => {
  const { pool, url } = await testDatabase(t);
  const keys = await workspace(pool);
  const { secret } = await keys.create();
  const own = openPool(url);
  t.onTestFinished(() => own.end());
  const { authenticate, forget } = openAuthenticator(own, Date.now);
  for (let round = 0; round < 5; round++) {
    await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    forget(hashSecret(secret));
    const failure = await authenticate(secret).then(
      () => undefined,
      (error: { kind: string }) => error.kind,
    );
    assert.ok(failure === undefined || failure === "overloaded", failure);
  }
  // The store refuses queries until a probe finds the database reachable.
  await until(() =>
    authenticate(secret).then(
      () => true,
      () => false,
    ),
  );
});

/** An authenticator that returns a promise also for a key that is cached. */
function openAuthenticator(...parts: Parameters<typeof createAuthenticator>) {
  const { authenticate, forget } = createAuthenticator(...parts);
  return { authenticate: async (secret: string | undefined) => authenticate(secret), forget };
}

interface Listening {
  authenticate(secret: string | undefined): Promise<Caller>;
  /** Whether the secret is accepted. */
  accepts(secret: string): Promise<boolean>;
  notifications: NotificationsConnection;
  /** Number of look-ups so far. */
  lookUps(): number;
}

/** Starts the keys of a replica that listens to changes at `listenUrl`, through a pool that can be counted. */
async function listening(t: Lifetime, url: string, listenUrl = url, clock = Date.now): Promise<Listening> {
  const own = openPool(url);
  t.onTestFinished(() => own.end());
  const counter = counted(own);
  const notifications = createNotifications(createLog("silent"));
  const { authenticate } = openAuthenticator(counter, clock, notifications);
  notifications.start(listenUrl, own);
  t.onTestFinished(() => notifications.stop());
  await until(() => notifications.period !== undefined);
  const accepts = (secret: string) =>
    authenticate(secret).then(
      () => true,
      (error: { kind: string }) => {
        assert.equal(error.kind, "unauthenticated");
        return false;
      },
    );
  return { authenticate, accepts, notifications, lookUps: () => counter.statements };
}

/** Fails if a key is accepted for as long as without messages and look-ups: half a minute. Machines may be busy. */
async function refusedSoon(accepted: () => Promise<boolean>): Promise<void> {
  const since = performance.now();
  await until(async () => !(await accepted()));
  assert.ok(performance.now() - since < 10_000, `${performance.now() - since} ms`);
}

test("does not look a key in use up again while it listens, except every half minute", async (t) => {
  const { pool, url } = await testDatabase(t);
  const { secret } = await (await workspace(pool)).create();
  let now = Date.now();
  const replica = await listening(t, url, url, () => now);
  // A busy machine can interrupt listening between the two readings.
  const lookUpsIn = async (ms: number): Promise<number> => {
    for (;;) {
      await replica.authenticate(secret);
      const { period } = replica.notifications;
      const before = replica.lookUps();
      for (let passed = 0; passed < ms; passed += 100) {
        now += 100;
        await replica.authenticate(secret);
      }
      if (period !== undefined && replica.notifications.period === period) return replica.lookUps() - before;
    }
  };
  assert.equal(await lookUpsIn(20_000), 0);
  assert.equal(await lookUpsIn(30_000), 1);
});

test("refuses a revoked, expired or deleted key on all replicas that listen", async (t) => {
  const { pool, url } = await testDatabase(t);
  const keys = await workspace(pool);
  const replicas = [await listening(t, url), await listening(t, url)];
  const changes: ((id: string) => Promise<unknown>)[] = [
    (id) => keys.revoke(id),
    (id) => pool.query("update api_keys set revoked_at = now() where id = $1", [id]),
    (id) => pool.query("update api_keys set expires_at = now() where id = $1", [id]),
    (id) => pool.query("delete from api_keys where id = $1", [id]),
    () => pool.query("delete from workspaces"),
  ];
  for (const change of changes) {
    const { secret, id } = await keys.create();
    for (const { accepts } of replicas) assert.ok(await accepts(secret));
    await change(id);
    for (const { accepts } of replicas) await refusedSoon(() => accepts(secret));
  }
});

test("applies new scopes on a replica that listens", async (t) => {
  const { pool, url } = await testDatabase(t);
  const { secret, id } = await (await workspace(pool)).create();
  const { authenticate } = await listening(t, url);
  assert.deepEqual((await authenticate(secret)).scopes, ["generate", "metrics"]);
  await pool.query("update api_keys set scopes = '{metrics}' where id = $1", [id]);
  await until(async () => (await authenticate(secret)).scopes.length === 1);
});

test("refuses a key that was revoked after the server ended the connection of the listener", async (t) => {
  const { pool, url } = await testDatabase(t);
  const keys = await workspace(pool);
  const { accepts } = await listening(t, url);
  for (let round = 0; round < 5; round++) {
    const { secret, id } = await keys.create();
    assert.ok(await accepts(secret));
    await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'chorus listen'`,
    );
    await keys.revoke(id);
    await refusedSoon(() => accepts(secret));
  }
});

test("refuses a key that was revoked while the connection of the listener is frozen", async (t) => {
  const { pool, url } = await testDatabase(t);
  const keys = await workspace(pool);
  const relay = await startRelay(t, url);
  const { accepts } = await listening(t, url, relay.url);
  const { secret, id } = await keys.create();
  assert.ok(await accepts(secret));
  relay.frozen = true;
  await keys.revoke(id);
  await refusedSoon(() => accepts(secret));
});

test("a key that is revoked on one service is refused by the others, a renamed one is not", async (t) => {
  const { pool, url } = await testDatabase(t);
  const env = { OPENAI_API_KEY: "" };
  const [one, two] = await Promise.all([1, 2].map(() => startService(t, { databaseUrl: url, env })));
  assert.ok(one && two);
  const [key] = await pool.query<{ id: string }>("select id from api_keys");
  const chorus = (...args: string[]) => runCli(args, { CHORUS_RPC_URL: one.rpcUrl, OPERATOR_TOKEN: one.operatorToken });
  const status = async () => (await two.get("/v1/quotas")).status;
  assert.equal(await status(), 200);
  assert.equal((await chorus("keys", "update", key?.id ?? "", "--name", "renamed")).code, 0);
  assert.equal(await status(), 200);
  assert.equal((await chorus("keys", "revoke", key?.id ?? "")).code, 0);
  await until(async () => (await status()) === 401);
});

test("names the missing scope", () => {
  const caller = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: ["generate"] as const };
  requireScope(caller, "generate");
  assert.throws(() => requireScope(caller, "metrics"), { kind: "missing_scope", message: /"metrics"/ });
});
