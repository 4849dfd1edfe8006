import { ConfigError, type Env } from "./config-error.ts";

/**
 * Reads the address of a Postgres. Nothing else may reach the driver: it takes any text for a path or the name of a
 * database, which the log names.
 * @param otherwise what else to do than to correct the value
 * @returns undefined if the variable is unset
 * @throws ConfigError, which does not quote the value, because it may contain a password
 */
export function readDatabaseUrl(env: Env, name: string, otherwise?: string): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  if (!/^postgres(ql)?:\/\//.test(text)) {
    const what = otherwise === undefined ? "Correct it" : `Correct it or ${otherwise}`;
    throw new ConfigError(`${name} must start with postgres:// or postgresql://. ${what}.`);
  }
  return text;
}
