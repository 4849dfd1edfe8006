import { type Logger, pino } from "pino";

export type Log = Logger;

/** The structured log, one JSON line a record, on standard error so that standard output stays free for the start-up lines. */
export function createLog(level: string): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: false }),
  );
}

/**
 * What a log may say of an error: its kind, status and place. Messages are left out, because errors of parsers and vendors quote prompts,
 * answers and keys in them.
 */
export function errorFacts(error: unknown): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, cause } = error;
  const { code, statusCode, causes } = error as { code?: unknown; statusCode?: unknown; causes?: unknown };
  const at = error.stack
    ?.split("\n")
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .map((line) => line.trim());
  return {
    name,
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof statusCode === "number" ? { status: statusCode } : {}),
    ...(at ? { at } : {}),
    ...(cause === undefined ? {} : { cause: errorFacts(cause) }),
    ...(Array.isArray(causes) ? { causes: causes.slice(0, 5).map(errorFacts) } : {}),
  };
}
