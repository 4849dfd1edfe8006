import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";

const SETUP = resolve(import.meta.dirname, "../../tools/setup.cjs");
const FILES = [
  ...["console/index.html", "console/operator.html", "console/public/a", "console/src/a/b.ts", "docs/a.md"],
  ...["gen/a.ts", "src/contract/a.ts", "tools/reference/a.ts", "node_modules/vite/a", "console/dist/index.html"],
];

test("builds the pages before a start if one of their sources has changed since", async ({ onTestFinished }) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-setup-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const write = async (path: string, text = "") => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  };
  for (const path of FILES) await write(path);
  for (const path of ["package-lock.json", "node_modules/.installed-lock.json"]) await write(path, "{}");
  await write(
    "package.json",
    JSON.stringify({ scripts: { build: "node -e 'require(`fs`).writeFileSync(`built`, ``)'" } }),
  );
  const later = (path: string, seconds: number) => {
    const time = Date.now() / 1_000 + seconds;
    return utimes(join(folder, path), time, time);
  };
  const isBuiltBy = async (...args: string[]) => {
    await rm(join(folder, "built"), { force: true });
    await promisify(execFile)(process.execPath, [SETUP, ...args], { cwd: folder, env: CHILD_ENV });
    return existsSync(join(folder, "built"));
  };
  await later("console/dist/index.html", 60);
  assert.equal(await isBuiltBy("pages"), false);
  await later("console/src/a/b.ts", 120);
  assert.equal(await isBuiltBy(), false, "other commands do not wait for it");
  assert.equal(await isBuiltBy("pages"), true);
  await later("console/dist/index.html", 180);
  assert.equal(await isBuiltBy("pages"), false);
  await rm(join(folder, "node_modules/vite"), { recursive: true });
  await later("docs/a.md", 240);
  assert.equal(await isBuiltBy("pages"), false, "without the development packages");
});
