import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, chown, cp, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { test } from "vitest";
import { checkServer } from "../../src/store/check-server.ts";
import { startEmbedded } from "../../src/store/embedded/embedded.ts";
import { isUnavailable, openPool } from "../../src/store/pool.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const execute = promisify(execFile);
const missing = await execute("openssl", ["version"]).then(
  () => undefined,
  () => "needs the program openssl",
);

/** Starts a server with TLS, whose certificate is its own authority. */
async function startServer(t: Lifetime) {
  const folder = await mkdtemp(join(tmpdir(), "chorus-tls-"));
  await chmod(folder, 0o711);
  const server = await startEmbedded(folder, () => undefined);
  t.onTestFinished(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const data = join(folder, "postgres/data");
  const { uid, gid } = await stat(data);
  /** Gives the server a new certificate. @returns its path */
  const renew = async (name: string): Promise<string> => {
    const path = (kind: string) => join(folder, `${name}.${kind}`);
    const files = ["-keyout", path("key"), "-out", path("crt")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    await execute("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...files, ...subject]);
    for (const kind of ["crt", "key"]) {
      const installed = join(data, `server.${kind}`);
      await cp(path(kind), installed);
      await chown(installed, uid, gid);
      await chmod(installed, 0o600);
    }
    return path("crt");
  };
  const admin = openPool(server.url, { max: 1 });
  t.onTestFinished(() => admin.end());
  return { url: server.url, folder, renew, admin };
}

test("checks the server certificate as each sslmode requires", async (t) => {
  t.skip(missing !== undefined, missing);
  const { url, renew, admin } = await startServer(t);
  const certificate = await renew("server");

  const connect = async (parameters: string, host = "127.0.0.1"): Promise<boolean> => {
    const pool = openPool(`${url.replace("127.0.0.1", host)}?${parameters}`, { max: 1 });
    try {
      const [row] = await pool.query<{ ssl: boolean }>("select ssl from pg_stat_ssl where pid = pg_backend_pid()");
      return row?.ssl ?? assert.fail();
    } finally {
      await pool.end();
    }
  };
  await assert.rejects(connect("sslmode=require"), /does not support SSL/, "the server does not support TLS yet");
  await admin.query("alter system set ssl = on");
  await admin.query("select pg_reload_conf()");

  assert.equal(await connect("sslmode=disable"), false);
  assert.equal(await connect("sslmode=require"), true);
  await assert.rejects(connect(`sslmode=verify-full`, "localhost"), /self-signed/);
  const unchecked = openPool(`${url.replace("127.0.0.1", "localhost")}?sslmode=verify-full`, { max: 1 });
  await assert.rejects(checkServer(unchecked), /The certificate .* in DATABASE_URL: sslrootcert=/);
  await unchecked.end();
  assert.equal(await connect(`sslmode=verify-ca&sslrootcert=${certificate}`), true);
  assert.equal(await connect(`sslmode=require&sslrootcert=${certificate}`), true);
  await assert.rejects(connect(`sslmode=verify-full&sslrootcert=${certificate}`), /does not match certificate/);
  assert.equal(await connect(`sslmode=verify-full&sslrootcert=${certificate}`, "localhost"), true);
  assert.equal(
    await connect(`sslmode=verify-full&sslnegotiation=direct&sslrootcert=${certificate}`, "localhost"),
    true,
  );
});

test("is unavailable while the server has a certificate of another authority, until that is in the file", async (t) => {
  t.skip(missing !== undefined, missing);
  const { url, folder, renew, admin } = await startServer(t);
  const authority = join(folder, "authority.pem");
  await cp(await renew("first"), authority);
  await admin.query("alter system set ssl = on");
  await admin.query("select pg_reload_conf()");
  const address = `${url.replace("127.0.0.1", "localhost")}?sslmode=verify-full&sslrootcert=${authority}`;
  const changes: boolean[] = [];
  const pool = openPool(address, { onAvailability: (isAvailable) => void changes.push(isAvailable) });
  t.onTestFinished(() => pool.end());
  const answer = () => pool.query("select 1").catch((error: unknown) => error);
  await until(async () => Array.isArray(await answer()));

  const renewed = await renew("second");
  await admin.query("select pg_reload_conf()");
  // The connection that is open goes on.
  await until(async () => (await Promise.all([answer(), answer()])).some(isUnavailable));
  await sleep(500);
  assert.ok(Array.isArray(await answer()));
  assert.deepEqual(changes, []);
  await until(async () => {
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()");
    await answer();
    return changes.length > 0;
  });
  assert.equal(isUnavailable(await answer()), true);
  // A program that writes the file may empty it first.
  await writeFile(authority, "");
  assert.equal(isUnavailable(await answer()), true);
  await cp(renewed, authority);
  await until(() => changes.length > 1);
  await pool.query("select 1");
  assert.deepEqual(changes, [false, true]);
});
