import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { CHILD_ENV } from "./environment.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/main.ts");

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the command line in a child process with CHILD_ENV and `env` as environment and `input` as standard input. */
export async function runCli(
  args: string[],
  env: Record<string, string> = {},
  input = "",
  main = MAIN,
): Promise<CliResult> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...CHILD_ENV, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  // A process that does not read its input may have ended already.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code, stdout, stderr };
}
