import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { test } from "vitest";
import { Failure } from "../../src/contract/failure.ts";
import { checkServer } from "../../src/store/check-server.ts";
import { isUnavailable, openPool, orOverloaded } from "../../src/store/pool.ts";
import { tlsOf } from "../../src/store/tls.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const URL = "postgres://user:p%23w@db.example:5433/chorus";

test("converts columns to the documented types", async (t) => {
  const { pool } = await testDatabase(t);
  const [row] = await pool.query(
    `select 9223372036854775807 as big, 7 as small, '2026-01-02T03:04:05.678Z'::timestamptz as at, $1::text[] as list,
       application_name as app
     from pg_stat_activity where pid = pg_backend_pid()`,
    [["a", "b,c"]],
  );
  assert.deepEqual(row, {
    big: 9223372036854775807n,
    small: 7,
    at: new Date("2026-01-02T03:04:05.678Z"),
    list: ["a", "b,c"],
    app: "chorus",
  });
});

test("commits a transaction when its function resolves and rolls it back when it throws", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query("create table things (id integer primary key)");
  assert.equal(await pool.tx(async (query) => (await query("insert into things values (1)")).length), 0);
  await assert.rejects(
    pool.tx(async (query) => {
      await query("insert into things values (2)");
      throw new Failure("not_found");
    }),
    { kind: "not_found" },
  );
  await assert.rejects(
    pool.tx((query) => query("insert into things values (3), (1)")),
    { code: "23505" },
  );
  assert.deepEqual(await pool.query("select id from things"), [{ id: 1 }]);
});

test("keeps two connections that are not used, so that the next request need not open one", async (t) => {
  const { pool, url } = await testDatabase(t);
  const other = openPool(url, { idleMs: 50 });
  t.onTestFinished(() => other.end());
  const open = async () => {
    const [row] = await pool.query<{ n: bigint }>(
      "select count(*) as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    return Number(row?.n);
  };
  await Promise.all(Array.from({ length: 5 }, () => other.query("select pg_sleep(0.05)")));
  await until(async () => (await open()) <= 2);
  for (let i = 0; i < 3; i++) assert.equal(await open(), 2);
  await other.query("select 1");
  assert.equal(await open(), 2);
});

test("replaces lost connections, idle and in use", async (t) => {
  const { pool, url } = await testDatabase(t);
  const killer = openPool(url, { max: 1 });
  t.onTestFinished(() => killer.end());
  // Waits until each has ended.
  const kill =
    "select pg_terminate_backend(pid, 10000) from pg_stat_activity " +
    "where datname = current_database() and pid <> pg_backend_pid()";
  await Promise.all([pool.query("select pg_sleep(0.01)"), pool.query("select pg_sleep(0.01)")]);
  const inUse = pool.query("select pg_sleep(30)");
  const inTransaction = pool.tx(async (query) => {
    await query("select 1");
    await killer.query(kill);
    return query("select 1");
  });
  // Both fail at the same time, so both need a handler first.
  const failures = await Promise.all([failure(inUse), failure(inTransaction)]);
  assert.deepEqual(failures.map(isUnavailable), [true, true]);
  // Ends one idle connection, but not the one with which the pool tries the server after a failure.
  const [{ pid } = { pid: 0 }] = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  await killer.query("select pg_terminate_backend($1, 10000)", [pid]);
  // The pool sees a dead connection when the socket closes, which was before this answer.
  await killer.query("select 1");
  assert.deepEqual(await pool.query("select 1 as one"), [{ one: 1 }]);
});

test("fails a statement that takes too long and does not reuse its connection", async (t) => {
  const { url } = await testDatabase(t);
  const pool = openPool(url, { max: 1, timeoutMs: 1_000 });
  t.onTestFinished(() => pool.end());
  assert.equal(isUnavailable(await failure(pool.query("select pg_sleep(5)"))), true);
  assert.deepEqual(await pool.query("select 1 as one"), [{ one: 1 }]);
  assert.equal((await pool.tx((query) => query("select pg_sleep(1.2)"), { timeoutMs: 10_000 })).length, 1);
});

test("does not take a blocked event loop for a database that does not answer", async (t) => {
  const { url, pool: observer } = await testDatabase(t);
  const pool = openPool(url, { max: 2, timeoutMs: 1_000, connectMs: 1_000 });
  t.onTestFinished(() => pool.end());
  const isRunning = (text: string) => async () => {
    const rows = await observer.query("select from pg_stat_activity where state = 'active' and query = $1", [text]);
    return rows.length > 0;
  };
  const connecting = pool.query("select 1 as one");
  block(1_500);
  assert.deepEqual(await connecting, [{ one: 1 }]);

  const asked = "select pg_sleep(0.3), 'asked' as name";
  const statements = [pool.query(asked), pool.query(asked), pool.query("select 'waited' as name")];
  await until(isRunning(asked));
  block(1_500);
  const names = (await Promise.all(statements)).map(([row]) => row?.name);
  assert.deepEqual(names, ["asked", "asked", "waited"]);
});

/** Does nothing else for a time, as a long computation. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test("fails with overloaded when the database refuses connections, does not answer or has no address", async (t) => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  t.onTestFinished(() => {
    silent.close();
    for (const socket of sockets) socket.destroy();
  });
  const port = await listen(silent);
  for (const host of ["127.0.0.1:1", "localhost:1", `127.0.0.1:${port}`, "nowhere.invalid:5432"]) {
    const pool = openPool(`postgres://user:secret@${host}/db`, { connectMs: 200 });
    await assert.rejects(orOverloaded(pool.query("select 1")), (error: unknown) => {
      assert.ok(error instanceof Failure, host);
      assert.equal(error.kind, "overloaded");
      assert.equal(error.retryAfterMs, 1_000);
      return true;
    });
    await pool.end();
  }
});

test("is unavailable while a pooler answers that its server is away, and not while the pooler is full", async (t) => {
  const pooler = await startPooler(t);
  const changes: boolean[] = [];
  const pool = openPool(pooler.url, { onAvailability: (isAvailable) => void changes.push(isAvailable) });
  t.onTestFinished(() => pool.end());
  await pool.query("select 1");

  // The connection that is open goes on.
  pooler.login = "no more connections allowed (max_client_conn)";
  const both = await Promise.allSettled([pool.query("select 1"), pool.query("select 1")]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  await until(() => pooler.refusals >= 2);
  await pool.query("select 1");
  assert.deepEqual(changes, []);

  pooler.login = undefined;
  pooler.statement = "server login has been failing, try again later (server_login_retry)";
  assert.equal(isUnavailable(await failure(pool.query("select 1"))), true);
  await until(() => changes.length > 0);
  assert.deepEqual(changes, [false]);
  const refusals = pooler.refusals;
  assert.equal(isUnavailable(await failure(pool.query("select 'not sent'"))), true);
  assert.ok(!pooler.statements.includes("select 'not sent'"), "a statement fails at once");
  await until(() => pooler.refusals > refusals);

  pooler.statement = undefined;
  await until(() => changes.length > 1);
  await pool.query("select 1");
  assert.deepEqual(changes, [false, true]);
});

test("is unavailable once the login is refused and no connection is open any more", async (t) => {
  const pooler = await startPooler(t);
  const changes: boolean[] = [];
  const pool = openPool(pooler.url, { onAvailability: (isAvailable) => void changes.push(isAvailable) });
  t.onTestFinished(() => pool.end());
  await pool.query("select 1");
  pooler.login = "password authentication failed";
  const both = await Promise.allSettled([pool.query("select 1"), pool.query("select 1")]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  await until(() => pooler.refusals >= 2);
  assert.deepEqual(changes, []);

  pooler.statement = "server conn crashed?";
  await failure(pool.query("select 1"));
  pooler.statement = undefined;
  await until(async () => {
    assert.equal(isUnavailable(await failure(pool.query("select 1"))), true);
    return changes.length > 0;
  });
  pooler.login = undefined;
  await until(() => changes.length > 1);
  await pool.query("select 1");
  assert.deepEqual(changes, [false, true]);
});

test("is unavailable once the login is refused, also while many statements try to connect", async (t) => {
  const pooler = await startPooler(t);
  const changes: boolean[] = [];
  const pool = openPool(pooler.url, { max: 2, onAvailability: (isAvailable) => void changes.push(isAvailable) });
  t.onTestFinished(() => pool.end());
  await pool.query("select 1");
  Object.assign(pooler, { code: "28P01", login: "password authentication failed", statement: "terminated" });
  await failure(pool.query("select 1"));
  const ask = async () => {
    for (const end = Date.now() + 1_000; Date.now() < end; await setImmediate()) await failure(pool.query("select 1"));
  };
  await Promise.all(Array.from({ length: 20 }, ask));
  assert.deepEqual(changes, [false]);
});

test("ends a start whose login is refused, also after the server was away", async (t) => {
  const pooler = await startPooler(t);
  Object.assign(pooler, { code: "57P03", login: "the database system is starting up" });
  const pool = openPool(pooler.url);
  t.onTestFinished(() => pool.end());
  assert.equal(isUnavailable(await failure(checkServer(pool))), true);
  await until(() => pooler.refusals >= 3);
  Object.assign(pooler, { code: "28P01", login: 'password authentication failed for user "user"' });
  let error: unknown;
  await until(async () => {
    error = await failure(checkServer(pool));
    return !isUnavailable(error);
  });
  assert.match(String(error), /refuses this service: password authentication failed/);
});

test("ends a start whose user or database a pooler refuses, and waits for a pooler that is full", async (t) => {
  const pooler = await startPooler(t);
  const pool = openPool(pooler.url);
  t.onTestFinished(() => pool.end());
  for (const message of ["password authentication failed", "no such database: db", "no such user: user"]) {
    pooler.login = message;
    const refused = await failure(checkServer(pool));
    assert.equal(isUnavailable(refused), false);
    assert.match(String(refused), new RegExp(`refuses this service: ${message}. Correct DATABASE_URL`));
  }
  pooler.login = "no more connections allowed (max_client_conn)";
  assert.equal(isUnavailable(await failure(checkServer(pool))), true);
});

test("limits the number of waiting statements", async (t) => {
  const { url } = await testDatabase(t);
  // The others wait for the connection until the last one has it, on any machine.
  const pool = openPool(url, { max: 1, connectMs: 60_000, timeoutMs: 60_000 });
  t.onTestFinished(() => pool.end());
  const results = await Promise.allSettled(Array.from({ length: 1_100 }, () => pool.query("select 1")));
  const refused = results.filter((result) => result.status === "rejected");
  assert.ok(refused.length >= 90 && refused.length <= 100, String(refused.length));
  assert.ok(refused.every(({ reason }) => reason instanceof Failure && reason.kind === "overloaded"));
});

test("does not report a defect as unavailable", async (t) => {
  const { pool } = await testDatabase(t);
  const error = await failure(pool.query("select nonsense"));
  assert.equal(isUnavailable(error), false);
  assert.equal(isUnavailable(new TypeError("x is not a function")), false);
  assert.equal(isUnavailable(new Failure("not_found")), false);
  assert.equal(isUnavailable(undefined), false);
});

test("reads sslmode as libpq does", async (t) => {
  const ca = await pemFile(t);
  const off = { connectionString: URL, ssl: false };
  for (const query of ["", "?sslmode=disable", "?sslmode=allow", "?ssl=false", `?sslrootcert=${ca}`])
    assert.deepEqual(tlsOf(URL + query), off, query);
  for (const query of [
    "?sslmode=require",
    "?sslmode=prefer",
    "?sslmode=no-verify",
    "?uselibpqcompat=true&sslmode=require",
  ]) {
    assert.deepEqual(tlsOf(URL + query), { connectionString: URL, ssl: { rejectUnauthorized: false } }, query);
  }
  for (const query of [
    "?sslmode=verify-full",
    "?ssl=true",
    "?sslmode=verify-full&sslrootcert=system",
    "?sslmode=require&sslrootcert=system",
  ]) {
    assert.deepEqual(tlsOf(URL + query), { connectionString: URL, ssl: {} }, query);
  }
  assert.deepEqual(tlsOf(`${URL}?sslmode=verify-full&sslrootcert=${ca}`).ssl, { ca: "PEM" });
  for (const mode of ["require", "verify-ca"]) {
    const { ssl } = tlsOf(`${URL}?sslmode=${mode}&sslrootcert=${ca}`);
    assert.ok(typeof ssl === "object" && ssl.ca === "PEM" && ssl.rejectUnauthorized === undefined);
    assert.equal(ssl.checkServerIdentity?.("other.example", {} as never), undefined);
  }
  assert.deepEqual(tlsOf(`${URL}?sslmode=require&sslcert=${ca}&sslkey=${ca}&sslnegotiation=direct&connect_timeout=5`), {
    connectionString: `${URL}?connect_timeout=5`,
    ssl: { cert: "PEM", key: "PEM", rejectUnauthorized: false },
    sslnegotiation: "direct",
  });
  assert.throws(() => tlsOf(`${URL}?sslmode=verify-ca`), /sslmode=verify-ca, which needs the file sslrootcert/);
  assert.throws(() => tlsOf(`${URL}?sslmode=on`), /sslmode=on/);
  assert.throws(
    () => tlsOf(`${URL}?sslmode=require&sslrootcert=/nowhere.pem`),
    /sslrootcert=\/nowhere\.pem, which cannot be read/,
  );
});

test("starts TLS when the URL requires it, and does not show the password of an invalid URL", async (t) => {
  const first = Promise.withResolvers<Buffer>();
  const server = createServer((socket) =>
    socket.once("data", (bytes: Buffer) => {
      first.resolve(bytes);
      socket.end("N");
    }),
  );
  t.onTestFinished(() => void server.close());
  const pool = openPool(`postgres://u:p@127.0.0.1:${await listen(server)}/db?sslmode=require`);
  await assert.rejects(pool.query("select 1"), /does not support SSL/);
  assert.equal((await first.promise).toString("hex"), "0000000804d2162f", "the first bytes are an SSLRequest");
  await pool.end();
  assert.throws(
    () => openPool("postgres://user:se#cr/et@host:port/db"),
    (error: Error) => !/se#cr/.test(error.message) && /%23/.test(error.message) && !error.cause,
  );
});

test("is unavailable while the server ends connections when TLS begins, also for a start", async (t) => {
  const answers: ((socket: Socket) => void)[] = [
    (socket) => socket.write("S", () => socket.once("data", () => socket.destroy())),
    (socket) => socket.end("E"),
  ];
  for (const answer of answers) {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => answer(socket));
    });
    t.onTestFinished(() => void server.close());
    const pool = openPool(`postgres://u:p@127.0.0.1:${await listen(server)}/db?sslmode=require`);
    assert.equal(isUnavailable(await failure(checkServer(pool))), true, String(answer));
    await pool.end();
  }
});

/** Starts a server that answers as PgBouncer does: it gives all of its errors the code 08P01. */
async function startPooler(t: Lifetime) {
  const frame = (type: string, ...parts: (Buffer | string)[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
    const length = Buffer.alloc(4);
    length.writeInt32BE(body.length + 4);
    return Buffer.concat([Buffer.from(type), length, body]);
  };
  const ready = frame("Z", "I");
  const pooler = {
    url: "",
    /** Why logins and statements are refused, and the code of that; undefined: they are not. */
    code: "08P01",
    login: undefined as string | undefined,
    statement: undefined as string | undefined,
    refusals: 0,
    statements: [] as string[],
  };
  const refuse = (socket: Socket, message: string) => {
    pooler.refusals++;
    socket.end(frame("E", `SFATAL\0VFATAL\0C${pooler.code}\0M${message}\0\0`));
  };
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      if (pooler.login) return refuse(socket, pooler.login);
      socket.write(Buffer.concat([frame("R", Buffer.alloc(4)), ready]));
      socket.on("data", (bytes) => {
        if (bytes.toString("latin1", 0, 1) !== "Q") return;
        pooler.statements.push(bytes.toString("utf8", 5, bytes.length - 1));
        if (pooler.statement) refuse(socket, pooler.statement);
        else socket.write(Buffer.concat([frame("C", "SELECT 0\0"), ready]));
      });
    });
  });
  t.onTestFinished(() => void server.close());
  pooler.url = `postgres://user:secret@127.0.0.1:${await listen(server)}/db`;
  return pooler;
}

async function failure(result: Promise<unknown>): Promise<unknown> {
  return result.then(
    () => assert.fail("it succeeded"),
    (error: unknown) => error,
  );
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function pemFile(t: Lifetime): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-pem-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "ca.pem");
  await writeFile(path, "PEM");
  return path;
}
