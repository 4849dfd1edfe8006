import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { whenAvailable } from "../../src/store/await-database.ts";
import { overloaded } from "../../src/store/pool.ts";
import { createLog } from "../../src/telemetry/log.ts";

test("a wait that ends while it pauses throws the reason of the signal", async () => {
  const reason = new Error("enough");
  const waiting = new AbortController();
  const away = async (): Promise<never> => {
    setTimeout(() => waiting.abort(reason), 20);
    throw overloaded(new Error("away"));
  };
  const options = { url: "postgres://host/database", log: createLog("silent"), signal: waiting.signal };
  await assert.rejects(whenAvailable(away, options), (error) => error === reason);
});

test("says why the database refuses new connections", async () => {
  const lines: string[] = [];
  const log = createLog("warn", { write: (line) => void lines.push(line) });
  const refused = async (): Promise<never> => {
    throw overloaded(new Error("self-signed certificate"));
  };
  const signal = AbortSignal.timeout(50);
  await assert.rejects(whenAvailable(refused, { url: "postgres://host/database", log, signal }));
  assert.equal(JSON.parse(lines[0] ?? "").reason, "self-signed certificate");
});

test("waits on while the file of a certificate is missing", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-pem-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const authority = join(folder, "ca.pem");
  await writeFile(authority, "PEM");
  const url = `postgres://host/database?sslmode=verify-full&sslrootcert=${authority}`;
  let tries = 0;
  const run = async () => {
    tries += 1;
    if (tries > 1) return "there";
    await rm(authority);
    throw overloaded(new Error("away"));
  };
  const { signal } = new AbortController();
  assert.equal(await whenAvailable(run, { url, log: createLog("silent"), signal }), "there");
});
