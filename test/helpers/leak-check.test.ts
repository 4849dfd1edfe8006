import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { test } from "vitest";
import { CHILD_ENV } from "./environment.ts";

const VITEST = resolve(import.meta.dirname, "../../node_modules/vitest/vitest.mjs");

test("fails only the file that leaves resources open, and names their kinds and counts", async () => {
  const child = spawn(process.execPath, [VITEST, "run", "--config", "test/helpers/leaky/vitest.config.ts"], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: { ...CHILD_ENV, CHORUS_TEST_LEAK_MS: "3000" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const output = stripVTControlCharacters(stdout + stderr);
  assert.equal(code, 1, output);
  // A timer of vitest that ends while the file runs hides one of the three.
  assert.match(output, /The file left these resources open: 1 TCPServerWrap, [2-4] Timeout\./);
  assert.match(output, /Test Files +1 failed \| 1 passed/);
  assert.match(output, /Tests +3 passed/);
});
