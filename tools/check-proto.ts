/**
 * Checks that `gen/` is what buf writes from `proto/`, and that no change in `proto/` breaks clients of the contract in
 * `proto/baseline.binpb`.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "chorus-proto-"));
const current = join(scratch, "current.binpb");

/** Runs a command. When it fails, prints its output and the advice, and the check goes on. */
function check(advice: string, command: string, args: string[]): void {
  try {
    execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  } catch (error) {
    const { stdout = "" } = error as { stdout?: string };
    process.stderr.write(`${stdout}\n${advice}\n`);
    process.exitCode = 1;
  }
}

try {
  check("buf cannot generate code from proto/.", "buf", ["generate", "--output", scratch]);
  check('gen/ does not match proto/. Run "npm run gen".', "git", [
    "diff",
    "--no-index",
    "--exit-code",
    "--stat",
    "gen",
    join(scratch, "gen"),
  ]);
  check("buf cannot build proto/.", "buf", ["build", "--path", "proto/chorus", "--output", current]);
  check(
    'The change breaks clients. Add a new field or method instead, or accept the break with "npm run baseline".',
    "buf",
    ["breaking", current, "--against", "proto/baseline.binpb", "--exclude-imports"],
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
