import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { bodyBudgetBytes, connectionLimits, readResources, resourceWarnings } from "../../src/config/resources.ts";
import { CHILD_ENV } from "../helpers/environment.ts";

const MB = 1024 * 1024;
const MODULE = resolve(import.meta.dirname, "../../src/config/resources.ts");

test("reads the limit on open files that the process was started with", async () => {
  const script = `import { readResources } from ${JSON.stringify(MODULE)}; console.log(readResources().openFiles)`;
  const { stdout } = await promisify(execFile)(
    "sh",
    ["-c", 'ulimit -n 1000 && exec "$0" --input-type=module -e "$1"', process.execPath, script],
    { env: CHILD_ENV },
  );
  assert.equal(stdout.trim(), "1000");
});

test("reads a memory size that is finite", () => {
  const { memoryBytes } = readResources();
  assert.ok(memoryBytes > 64 * MB && memoryBytes < 2 ** 50, `${memoryBytes}`);
});

test("all connections fit into the limit on open files, with a reserve", () => {
  for (const openFiles of [512, 1_000, 1_024, 4_096, 65_536, 1_048_576]) {
    const limits = connectionLimits({ openFiles, memoryBytes: 2 ** 40 });
    const sum = limits.public + limits.internal + limits.vendors;
    assert.ok(sum <= openFiles - 192, `${openFiles}: ${sum}`);
    assert.ok(sum > openFiles - 204, `${openFiles}: ${sum}`);
  }
});

test("little memory, too, limits connections; no limit at all leaves memory as the only one", () => {
  const small = connectionLimits({ openFiles: Number.POSITIVE_INFINITY, memoryBytes: 512 * MB });
  assert.deepEqual(small, { public: 768, internal: 256, vendors: 1_024 });
});

test("keeps some connections of each kind under a limit that is too low", () => {
  assert.deepEqual(connectionLimits({ openFiles: 64, memoryBytes: 2 ** 40 }), {
    public: 16,
    internal: 16,
    vendors: 16,
  });
});

test("the body budget follows the memory between its bounds", () => {
  const budget = (memoryBytes: number) => bodyBudgetBytes({ openFiles: 1_024, memoryBytes }) / MB;
  assert.deepEqual(
    [256, 1_024, 8_192].map((mb) => budget(mb * MB)),
    [64, 128, 256],
  );
});

test("warns only about a low limit on open files, and says how to raise it", () => {
  const [warning = ""] = resourceWarnings({ openFiles: 1_000, memoryBytes: 2 ** 40 });
  assert.match(warning, /only 1000 files.* 303 connections .* 404 of vendors.*LimitNOFILE=65536/);
  assert.deepEqual(resourceWarnings({ openFiles: 65_536, memoryBytes: 2 ** 40 }), []);
});
