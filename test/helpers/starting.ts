import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHILD_ENV } from "./environment.ts";
import type { Lifetime } from "./lifetime.ts";
import { programOf } from "./program.ts";
import { freePort } from "./server.ts";

const KEY = "test-key-0123456789abcdef";

/** A service that may not be ready, or never gets ready. */
export interface Starting {
  /** Status of a GET request with the bootstrap key; 0 while nothing listens. */
  status(path: string): Promise<number>;
  /** Standard output and log so far. */
  output(): string;
  /** Sends SIGHUP. */
  reload(): void;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
  readonly exit: Promise<number | null>;
}

/** Starts a service without waiting until it is ready, and ends it after the test. */
export async function startEarly(t: Lifetime, env: Record<string, string>): Promise<Starting> {
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-start-"));
  const port = await freePort();
  const child = spawn(process.execPath, [await programOf(env)], {
    cwd: dataDir,
    env: { ...CHILD_ENV, DATA_DIR: dataDir, PORT: `${port}`, RPC_PORT: "0", BOOTSTRAP_API_KEY: KEY, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const exit = once(child, "close").then(([code]) => code as number | null);
  t.onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
    await rm(dataDir, { recursive: true, force: true });
  });
  return {
    exit,
    output: () => output,
    async status(path) {
      const url = `http://127.0.0.1:${port}${path}`;
      const response = await fetch(url, { headers: { "X-API-Key": KEY } }).catch(() => undefined);
      await response?.body?.cancel();
      return response?.status ?? 0;
    },
    reload: () => void child.kill("SIGHUP"),
    stop() {
      child.kill("SIGTERM");
      return exit;
    },
  };
}
