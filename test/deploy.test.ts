import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "vitest";
import { envToConfig } from "../src/config/config.ts";

const ROOT = resolve(import.meta.dirname, "..");
const DEPLOY = join(ROOT, "deploy");

/** The files of deploy/, by name. */
const files = new Map(
  readdirSync(DEPLOY, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), "utf8")] as const),
);

test("sets only variables that exist", () => {
  const docs = readFileSync(join(ROOT, "docs/configuration.md"), "utf8");
  const others = /^(NODE_ENV|POSTGRES_\w+|AF_\w+|NAME_FILE)$/;
  let seen = 0;
  for (const [file, text] of files) {
    for (const [name] of text.matchAll(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/g)) {
      if (others.test(name)) continue;
      assert.ok(docs.includes(`\`${name.replace(/_FILE$/, "")}\``), `${file}: ${name}`);
      seen++;
    }
  }
  assert.ok(seen > 10);
});

test("starts programs that the package has", async () => {
  const programs = [...files].flatMap(([, text]) => [...text.matchAll(/\bsrc\/[\w/]+\.js\b/g)].map(([path]) => path));
  assert.deepEqual(new Set(programs), new Set(["src/process/start.js", "src/cli/main.js"]));
  for (const path of programs) await assert.doesNotReject(stat(join(ROOT, path.replace(/js$/, "ts"))));
});

test("every command that starts the service keeps the code of Node in large pages", () => {
  for (const [path, command] of [
    ["package.json", /"start": .*/],
    ["tools/package.ts", /start: `.*/],
    ["src/cli/chorus.cjs", /isStart \?.*/g],
    ["deploy/Dockerfile", /ENTRYPOINT .*/],
    ["deploy/chorus.service", /ExecStart=.*/],
  ] as const) {
    const lines = readFileSync(join(ROOT, path), "utf8").match(command) ?? [];
    assert.match(lines.join("\n"), /--use-largepages=silent/, path);
  }
});

test("has a catalogue and rates that are valid", () => {
  const folder = join(DEPLOY, "helm");
  const { models, rates } = envToConfig({
    CHORUS_MODELS: join(folder, "models.json"),
    CHORUS_RATES_FILE: join(folder, "rates.json"),
    OPENAI_API_KEY: "a",
  });
  assert.equal(models.length, 2);
  assert.deepEqual(rates, envToConfig({}).rates);
});
