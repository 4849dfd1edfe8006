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
  if (!isObject(value)) throw new ConfigError(`${where} must be a JSON object. Correct it.`);
  return value;
}

/** @throws ConfigError naming `where` if the object has another member */
export function checkMembers(given: object, known: ReadonlySet<string>, where: string): void {
  const unknown = Object.keys(given).find((name) => !known.has(name));
  if (unknown !== undefined)
    throw new ConfigError(`${where} has an unknown member "${unknown}". Remove it, or use ${[...known].join(", ")}.`);
}

/** The text of a member; undefined without one. @throws ConfigError naming `where` and the member */
export function textMember(given: Record<string, unknown>, name: string, where: string): string | undefined {
  const value = given[name];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw new ConfigError(`${where}.${name} must be a string. Correct it.`);
}

/** @throws ConfigError with the sentence `expected` and the name of the value if it is not a JSON object */
export function expectedObject(value: unknown, expected: string, name = "it"): Record<string, unknown> {
  if (!isObject(value)) throw new ConfigError(`${expected}; ${name} is no object. Correct it.`);
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
