/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/** An invalid variable or file of the configuration. The message names it, what was expected and what to do. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/** Parses JSON. @throws ConfigError with the sentence `expected`; it never quotes `text`, which may contain secrets */
export function parse(text: string, expected: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(`${expected}; it is not valid JSON. Correct it.`);
  }
}

/** @throws ConfigError naming `where` if the value is not a JSON object */
export function object(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ConfigError(`${where} must be a JSON object. Correct it.`);
  return value as Record<string, unknown>;
}
