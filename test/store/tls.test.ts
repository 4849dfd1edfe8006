import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, chown, cp, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { checkServer } from "../../src/store/check-server.ts";
import { startEmbedded } from "../../src/store/embedded/embedded.ts";
import { openPool } from "../../src/store/pool.ts";

const execute = promisify(execFile);
const missing = await execute("openssl", ["version"]).then(
  () => undefined,
  () => "needs the program openssl",
);

test("checks the server certificate as each sslmode requires", async (t) => {
  t.skip(missing !== undefined, missing);
  const folder = await mkdtemp(join(tmpdir(), "chorus-tls-"));
  await chmod(folder, 0o711);
  const certificate = join(folder, "server.crt");
  const files = ["-keyout", join(folder, "server.key"), "-out", certificate];
  const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  await execute("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...files, ...name]);

  const server = await startEmbedded(folder, () => undefined);
  t.onTestFinished(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const data = join(folder, "postgres/data");
  const { uid, gid } = await stat(data);
  for (const file of ["server.crt", "server.key"]) {
    await cp(join(folder, file), join(data, file));
    await chown(join(data, file), uid, gid);
    await chmod(join(data, file), 0o600);
  }

  const connect = async (parameters: string, host = "127.0.0.1"): Promise<boolean> => {
    const pool = openPool(`${server.url.replace("127.0.0.1", host)}?${parameters}`, { max: 1 });
    try {
      const [row] = await pool.query<{ ssl: boolean }>("select ssl from pg_stat_ssl where pid = pg_backend_pid()");
      return row?.ssl ?? assert.fail();
    } finally {
      await pool.end();
    }
  };
  await assert.rejects(connect("sslmode=require"), /does not support SSL/, "the server does not support TLS yet");
  const admin = openPool(server.url, { max: 1 });
  await admin.query("alter system set ssl = on");
  await admin.query("select pg_reload_conf()");
  await admin.end();

  assert.equal(await connect("sslmode=disable"), false);
  assert.equal(await connect("sslmode=require"), true);
  await assert.rejects(connect(`sslmode=verify-full`, "localhost"), /self-signed/);
  const unchecked = openPool(`${server.url.replace("127.0.0.1", "localhost")}?sslmode=verify-full`, { max: 1 });
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
