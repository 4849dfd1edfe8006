import assert from "node:assert/strict";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { startService } from "../helpers/service.ts";

test("the service is ready within 15 s on an empty folder, and within 10 s on the next start", async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-start-"));
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true, maxRetries: 10 }));
  await chmod(dataDir, 0o711);
  const seconds: number[] = [];
  for (let i = 0; i < 2; i++) {
    const began = performance.now();
    const service = await startService(t, { databaseUrl: "", dataDir });
    seconds.push((performance.now() - began) / 1_000);
    assert.equal(await service.stop(), 0);
  }
  const [first = 0, next = 0] = seconds;
  await t.annotate(`first start: ${first.toFixed(1)} s; next start: ${next.toFixed(1)} s`);
  assert.ok(first < 15, `${first} s`);
  assert.ok(next < 10, `${next} s`);
});
