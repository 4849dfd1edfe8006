import assert from "node:assert/strict";
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
