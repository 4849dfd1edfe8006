/** A variable or file of the configuration that cannot be used; the message names it. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/** Reads JSON. @throws ConfigError with `expected`, nothing of the text in it. */
export function parse(text: string, expected: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(`${expected}; it is no JSON.`);
  }
}

/** @throws ConfigError naming `where`. */
export function object(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ConfigError(`${where} must be a JSON object.`);
  return value as Record<string, unknown>;
}
