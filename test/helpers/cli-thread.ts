import { Console } from "node:console";
import { globalAgent } from "node:http";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { parentPort } from "node:worker_threads";
import type { CliCall, CliResult } from "./cli.ts";
import { CHILD_ENV } from "./environment.ts";

/**
 * Runs the command line once for each message, with the environment and the streams of the message, as a process would.
 * The modules of the command line stay loaded: loading them takes 0.4 s of processor time.
 */

const MAIN = new URL("../../src/cli/main.ts", import.meta.url);
const own = { listeners: new Set(process.eventNames()), runs: 0 };

parentPort?.on("message", async (call: CliCall) => parentPort?.postMessage(await run(call)));

async function run({ args, env, input }: CliCall): Promise<CliResult> {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, CHILD_ENV, env);
  process.argv = [process.execPath, MAIN.pathname, ...args];
  process.exitCode = undefined;
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const stdin = Readable.from(input === "" ? [] : [Buffer.from(input)]);
  for (const [name, value] of Object.entries({ stdin, stdout, stderr }))
    Object.defineProperty(process, name, { value, configurable: true });
  globalThis.console = new Console(stdout, stderr);
  const texts = Promise.all([text(stdout), text(stderr)]);
  own.runs += 1;
  try {
    // Evaluates only this module again: it builds the commands and runs the one that `args` names.
    await import(`${MAIN.href}?run=${own.runs}`);
  } catch (error) {
    stderr.write(inspect(error));
    process.exitCode = 1;
  }
  // What ends with a process.
  globalAgent.destroy();
  for (const event of process.eventNames()) if (!own.listeners.has(event)) process.removeAllListeners(event);
  stdout.end();
  stderr.end();
  const [out, err] = await texts;
  return { code: Number(process.exitCode ?? 0), stdout: out, stderr: err };
}
