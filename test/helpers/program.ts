import { resolve } from "node:path";
import { ask, RUN_VARIABLE } from "./run.ts";

const SOURCES = resolve(import.meta.dirname, "../../src/process/start.ts");

/** Environment of a service that a test changes or measures: it runs the sources. */
export const FROM_SOURCES: Readonly<Record<string, string>> = { CHORUS_TEST_START: SOURCES };

/**
 * The program that starts a service with this environment: the service in a few files (tools/bundle.ts), which starts
 * in half the processor time; or its sources, for which `FROM_SOURCES` asks.
 */
export async function programOf(env: Readonly<Record<string, string>> = {}): Promise<string> {
  if (env.CHORUS_TEST_START) return env.CHORUS_TEST_START;
  // Programs that are no test start services, too.
  return process.env[RUN_VARIABLE] ? ask("service") : SOURCES;
}
