/**
 * Checks that `gen/` is what buf writes from `proto/`, and that `proto/` breaks nothing that the last release (a tag `v*`) promised.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "chorus-proto-"));

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

try {
  run("buf", "generate", "--output", scratch);
  run("git", "diff", "--no-index", "--exit-code", "--stat", "gen", join(scratch, "gen"));
  const tag = run("git", "tag", "--list", "v*", "--sort=-version:refname").split("\n")[0];
  if (tag) {
    const archive = join(scratch, "release.tar");
    run("git", "archive", "--output", archive, tag, "proto", "buf.yaml");
    run("tar", "-xf", archive, "-C", scratch);
    // A junction, because Windows allows other links to administrators only.
    symlinkSync(join(root, "node_modules"), join(scratch, "node_modules"), "junction");
    run("buf", "breaking", "--against", scratch);
  }
} catch (error) {
  const { stdout } = error as { stdout?: string };
  process.stderr.write(
    `${stdout ?? ""}\nThe contract check failed. Run "npm run gen" if gen/ differs; a change that breaks callers needs a new version.\n`,
  );
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
