import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { FROM_SOURCES } from "../helpers/program.ts";
import { startOwnService } from "../helpers/service.ts";
import { LOADED, RECORDING } from "./loaded-modules.ts";

test("the service is ready within 15 s on an empty folder, and within 10 s on the next start", async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-start-"));
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true, maxRetries: 10 }));
  await chmod(dataDir, 0o711);
  const seconds: number[] = [];
  for (let i = 0; i < 2; i++) {
    const began = performance.now();
    const service = await startOwnService(t, { databaseUrl: "", dataDir, env: FROM_SOURCES });
    seconds.push((performance.now() - began) / 1_000);
    assert.equal(await service.stop(), 0);
  }
  const [first = 0, next = 0] = seconds;
  await t.annotate(`first start: ${first.toFixed(1)} s; next start: ${next.toFixed(1)} s`);
  assert.ok(first < 15, `${first} s`);
  assert.ok(next < 10, `${next} s`);
});

/** Most files that a start loads. */
const MOST_FILES = 816;
/** Packages for what most services never do. */
const LATER = new RegExp(
  "/node_modules/" +
    "(file-type|mammoth|unpdf|htmlparser2|yauzl|openid-client|nodemailer|gpt-tokenizer|@opentelemetry/sdk|@eslint)",
);

test("a start loads no more modules than before, and none that only some services need", async (t) => {
  const service = await startOwnService(t, { env: RECORDING });
  assert.equal(await service.stop(), 0);
  const loaded = (await readFile(join(service.dataDir, LOADED), "utf8")).split("\n");
  const files = loaded.filter((url) => url.startsWith("file:"));
  await t.annotate(`${files.length} files, and ${loaded.length - files.length} modules of Node`);
  assert.ok(files.length > 300 && files.length <= MOST_FILES, `${files.length} files`);
  assert.deepEqual(
    files.filter((url) => LATER.test(url)),
    [],
  );
});
