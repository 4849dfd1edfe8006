import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";

const execute = promisify(execFile);
const TOOL = resolve(import.meta.dirname, "../../tools/check-sizes.ts");

/** Runs the check on a new git work tree with the given files. @returns its exit code and output lines */
async function check(files: Record<string, string>): Promise<{ code: number; lines: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-sizes-"));
  try {
    await execute("git", ["init", "--quiet"], { cwd: folder });
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    const { stderr } = await execute(process.execPath, [TOOL, folder]);
    return { code: 0, lines: stderr.split("\n").filter(Boolean) };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, lines: stderr.split("\n").filter(Boolean) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A function of this many lines, after two lines of other text. */
function functionOf(lines: number): string {
  return `// é 𝒳\n\nexport const run = () => {\n${"  run;\n".repeat(lines - 2)}};\n`;
}

test("accepts a function of 70 lines, a line of 120 columns, and a line of TypeScript of 120 bytes", async () => {
  const files = {
    "src/run.ts": functionOf(70),
    "src/line.ts": `// ${"é".repeat(58)}.\r\n`,
    "docs/line.md": `${"é".repeat(120)}\r\n`,
  };
  assert.deepEqual(await check(files), { code: 0, lines: [] });
});

test("reports a function of 71 lines with its file and line", async () => {
  for (const file of ["src/deep/run.ts", "console/src/run.tsx"]) {
    const { code, lines } = await check({ [file]: functionOf(71) });
    assert.equal(code, 1);
    assert.deepEqual(lines, [`${file}:3: the function has 71 lines; at most 70 are allowed.`]);
  }
});

test("measures functions of the product only", async () => {
  const files = { "test/run.test.ts": functionOf(200), "tools/run.ts": functionOf(200) };
  assert.deepEqual(await check(files), { code: 0, lines: [] });
});

test("reports a line of 121 columns in code, documentation and SQL", async () => {
  const long = "x".repeat(121);
  const bytes = `// ${"é".repeat(59)}`;
  const { code, lines } = await check({ "src/a.ts": `\n${bytes}\n`, "docs/b.md": long, "src/c.sql": long });
  assert.equal(code, 1);
  assert.deepEqual(lines.sort(), [
    "docs/b.md:1: the line has 121 columns; at most 120 are allowed.",
    "src/a.ts:2: the line has 121 columns; at most 120 are allowed.",
    "src/c.sql:1: the line has 121 columns; at most 120 are allowed.",
  ]);
});

test("accepts long table rows and links in Markdown", async () => {
  const long = "x".repeat(121);
  const text = `| ${long} |\n- https://example.com/${long}\n[a]: https://example.com/${long}\n`;
  assert.deepEqual(await check({ "docs/a.md": text }), { code: 0, lines: [] });
});

test("skips ignored and generated files", async () => {
  const long = "x".repeat(121);
  const files = { ".gitignore": "dist\n", "dist/a.js": long, "gen/b.ts": long, "package-lock.json": long };
  assert.deepEqual(await check(files), { code: 0, lines: [] });
});

test("reports a file with a syntax error and goes on", async () => {
  const { code, lines } = await check({ "src/a.ts": "const = 1;\n", "src/b.ts": functionOf(71) });
  assert.equal(code, 1);
  assert.match(lines[0] ?? "", /^src\/a\.ts:1: cannot be parsed: /);
  assert.match(lines[1] ?? "", /^src\/b\.ts:3: the function has 71 lines/);
});

test("skips a tracked file that was deleted", async () => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-sizes-"));
  try {
    await execute("git", ["init", "--quiet"], { cwd: folder });
    await writeFile(join(folder, "a.ts"), "x".repeat(121));
    await execute("git", ["add", "a.ts"], { cwd: folder });
    await rm(join(folder, "a.ts"));
    await execute(process.execPath, [TOOL, folder]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
