import { ConfigError } from "../config/config-error.ts";
import { readDatabaseUrl } from "../config/database-url.ts";
import { readWithFiles } from "../config/file-variables.ts";
import { CliError } from "./target.ts";

/** The address of the database, from DATABASE_URL or DATABASE_URL_FILE, as the service reads it. @throws CliError */
export function databaseUrl(): string | undefined {
  try {
    return readWithFiles(process.env, (env) => readDatabaseUrl(env, "DATABASE_URL"));
  } catch (error) {
    throw error instanceof ConfigError ? new CliError(error.message) : error;
  }
}
