import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { makeFolder } from "../../src/files/folder.ts";
import { openCluster } from "../../src/store/embedded/cluster.ts";

test("makes missing folders, and accepts one that exists", async ({ onTestFinished }) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-folder-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const deep = join(folder, "a", "b", "c");
  await Promise.all([makeFolder(deep, 0o711), makeFolder(deep, 0o711)]);
  await makeFolder(deep);
  assert.equal((await stat(deep)).mode & 0o777, 0o711);
});

test.runIf(process.platform === "linux")("refuses a data folder that cannot be made, and names DATA_DIR", async () => {
  await assert.rejects(makeFolder("/proc/none/deeper"), { code: "ENOENT" });
  await assert.rejects(
    openCluster("/proc/none", () => undefined),
    /^Error: DATA_DIR cannot be used: ENOENT at \/proc\/none\./,
  );
});
