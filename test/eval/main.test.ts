import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";

const RESULTS = new URL("../../eval/results.md", import.meta.url);

function run(...args: string[]) {
  const main = new URL("../../eval/main.ts", import.meta.url).pathname;
  return spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...args], { encoding: "utf8" });
}

test("prints its options", () => {
  const { status, stdout } = run("--help");
  assert.equal(status, 0);
  assert.match(stdout, /--write/);
});

test("measures a file with blank answers and writes results only when asked", () => {
  const folder = mkdtempSync(join(tmpdir(), "chorus-eval-"));
  const before = readFileSync(RESULTS, "utf8");
  try {
    const path = join(folder, "blank.jsonl");
    const rows = Array.from({ length: 12 }, (_, at) => {
      const said = (answer: string | null, score: number) => ({ answer, score });
      const models = { mini: said(" ", 0), small: said(at % 2 ? "" : "A", at % 2 ? 0 : 1), big: said(null, 1) };
      return JSON.stringify({ id: `${at}`, group: "g", prompt: `Question ${at}`, gold: "A", models });
    });
    writeFileSync(path, rows.join("\n"));
    const { status, stdout, stderr } = run(path);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /As served/);
    assert.equal(readFileSync(RESULTS, "utf8"), before);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
