import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";

/** Opens files until the limit, and then calls a vendor. */
const PROGRAM = `
import { openSync } from "node:fs";
import { createHttpClient } from "./http.ts";
const client = createHttpClient({ connectMs: 1000 });
const { signal } = new AbortController();
const vendor = { origin: "http://127.0.0.1:1", path: "/" };
const post = () => client.post({ ...vendor, headers: {}, body: "", signal, streamed: false });
const failure = async () => {
  const { kind, refusal, retryable, blamesModel, isCongestion } = await post().catch((error) => error);
  return { kind, refusal, retryable, blamesModel, isCongestion };
};
const closed = await failure();
try {
  for (;;) openSync("/dev/null");
} catch {}
console.log(JSON.stringify([closed, await failure()]));
process.exit();
`;

test.skipIf(process.platform === "win32")(
  "does not blame a vendor when the process has no more descriptors",
  async () => {
    const { stdout } = await promisify(execFile)(
      "sh",
      ["-c", 'ulimit -n 256 && exec "$0" --input-type=module -e "$1"', process.execPath, PROGRAM],
      { cwd: resolve(import.meta.dirname, "../../src/models"), env: CHILD_ENV },
    );
    assert.deepEqual(JSON.parse(stdout), [
      { retryable: true, blamesModel: true, isCongestion: true },
      { kind: "not_asked", refusal: "descriptors", retryable: false, blamesModel: false, isCongestion: false },
    ]);
  },
);
