import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { CHILD_ENV } from "./environment.ts";
import { ask } from "./run.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/main.ts");

/** A command. */
export interface CliCall {
  args: readonly string[];
  /** The environment, in addition to CHILD_ENV. */
  env: Record<string, string>;
  /** Standard input. */
  input: string;
}

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs the command line with CHILD_ENV and `env` as environment and `input` as standard input, in a thread that has it
 * loaded. A test of the process, such as of a signal, uses `spawnCli`.
 */
export async function runCli(args: string[], env: Record<string, string> = {}, input = ""): Promise<CliResult> {
  const call: CliCall = { args, env, input };
  return JSON.parse(await ask("cli", JSON.stringify(call)));
}

/** Runs the command line, or its launcher at `main`, in a process of its own. */
export async function spawnCli(
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
