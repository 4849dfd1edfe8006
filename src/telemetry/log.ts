import { type DestinationStream, type Logger, pino } from "pino";
import { createInternalErrors, type InternalErrors } from "./internal-errors.ts";
import { LogOutput } from "./log-output.ts";

export type Log = Logger;

export interface ProcessLog {
  readonly log: Log;
  readonly errors: InternalErrors;
  readonly output: LogOutput;
}

/**
 * Opens the structured log: one JSON line per record, in batches. Call `output.flush` before the process ends.
 * @param stream standard error; standard output has only the start-up lines
 * @param facts members of every line
 */
export function openLog(
  level: string,
  stream: { readonly fd: number },
  facts: Readonly<Record<string, unknown>> | null = null,
): ProcessLog {
  const output = new LogOutput(stream, {
    onError: (error) => errors.add("log", error),
    onDropped: (lines) => log.warn({ lines }, "log lines were dropped, because the reader of the log was too slow"),
  });
  const errors = createInternalErrors((where, error, count) =>
    log.error(
      { where, errors: count, cause: errorFacts(error) },
      "caught an internal error; requests are not affected",
    ),
  );
  const log: Log = createLog(level, output, errors, facts);
  return { log, errors, output };
}

/**
 * Creates a log. None of its methods throws.
 * @param errors counts log lines that could not be created or passed to `output`
 * @param facts members of every line
 */
export function createLog(
  level: string,
  output: DestinationStream = pino.destination(2),
  errors: InternalErrors = createInternalErrors(),
  facts: Readonly<Record<string, unknown>> | null = null,
): Log {
  return pino(
    {
      level,
      base: facts,
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: {
        logMethod(line, method) {
          errors.guard("log", () => method.apply(this, line));
        },
      },
    },
    output,
  );
}

/** Longest chain of causes that is logged. A chain may be a circle. */
const MAX_CAUSES = 5;

/**
 * The facts of an error that may be logged: name, code, status and stack. Messages are left out, because errors of
 * parsers and vendors quote prompts, answers and keys in them. It throws for no value.
 */
export function errorFacts(error: unknown): object {
  try {
    return factsOf(error, MAX_CAUSES);
  } catch {
    return { name: "unreadable error" };
  }
}

function factsOf(error: unknown, depth: number): object {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, stack = "", cause } = error;
  const { code, status, statusCode, causes } = error as unknown as Record<string, unknown>;
  // Skips the message at the start of the stack, because one of its lines may look like a stack frame.
  const start = stack.indexOf(message);
  const at = (start < 0 ? "" : stack.slice(start + message.length))
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .map((line) => line.trim());
  const inner = depth > 0 ? { cause, causes } : {};
  return {
    name,
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof (status ?? statusCode) === "number" ? { status: status ?? statusCode } : {}),
    ...(at.length > 0 ? { at } : {}),
    ...(inner.cause === undefined ? {} : { cause: factsOf(inner.cause, depth - 1) }),
    ...(Array.isArray(inner.causes)
      ? { causes: inner.causes.slice(0, MAX_CAUSES).map((one) => factsOf(one, depth - 1)) }
      : {}),
  };
}
