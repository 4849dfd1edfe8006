import { resolve } from "node:path";
import { ask, RUN_VARIABLE } from "./run.ts";

const SOURCES = resolve(import.meta.dirname, "../../src/process/start.ts");

/** Environment of a service that a test changes or measures: it runs the sources. */
export const FROM_SOURCES: Readonly<Record<string, string>> = { CHORUS_TEST_START: SOURCES };

/** Environment of a service in a process of its own, which a test crashes, suspends or measures. */
export const OWN_PROCESS: Readonly<Record<string, string>> = { CHORUS_TEST_PROCESS: "own" };

/** Whether a service with this environment can run beside others in one process (service-host.ts). */
export function canShareProcess(env: Readonly<Record<string, string>> = {}): boolean {
  const ofProcess = Object.keys(env).some((name) => /^(CHORUS_TEST_|CHORUS_WORKERS$|NODE_|OTEL_|UV_)/.test(name));
  return process.env[RUN_VARIABLE] !== undefined && !ofProcess;
}

/**
 * The program that starts a service with this environment: the service in a few files (tools/bundle.ts), which starts
 * in half the processor time; or its sources, for which `FROM_SOURCES` asks.
 */
export async function programOf(env: Readonly<Record<string, string>> = {}): Promise<string> {
  if (env.CHORUS_TEST_START) return env.CHORUS_TEST_START;
  // Programs that are no test start services, too.
  return process.env[RUN_VARIABLE] ? ask("service") : SOURCES;
}
