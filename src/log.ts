import { type Logger, pino } from "pino";

export type Log = Logger;

/**
 * Creates the structured log: one JSON line per record, on standard error. Standard output has only the start-up
 * lines.
 */
export function createLog(level: string): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: false }),
  );
}

/**
 * The facts of an error that may be logged: name, code, status and stack. Messages are left out, because errors of
 * parsers and vendors quote prompts, answers and keys in them.
 */
export function errorFacts(error: unknown): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, stack = "", cause } = error;
  const { code, statusCode, causes } = error as { code?: unknown; statusCode?: unknown; causes?: unknown };
  // Skips the message at the start of the stack, because one of its lines may look like a stack frame.
  const start = stack.indexOf(message);
  const at = (start < 0 ? "" : stack.slice(start + message.length))
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .map((line) => line.trim());
  return {
    name,
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof statusCode === "number" ? { status: statusCode } : {}),
    ...(at.length > 0 ? { at } : {}),
    ...(cause === undefined ? {} : { cause: errorFacts(cause) }),
    ...(Array.isArray(causes) ? { causes: causes.slice(0, 5).map(errorFacts) } : {}),
  };
}
