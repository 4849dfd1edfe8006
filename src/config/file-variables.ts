import { ConfigError, type Env } from "./config-error.ts";
import { readText } from "./text-file.ts";

/** Variables that are used before files are read, or that the libraries of OpenTelemetry read themselves. */
const WITHOUT_FILE = /^(CHORUS_WORKERS$|OTEL_(BSP|EXPORTER_OTLP|SDK|TRACES)_)/;

/**
 * Reads from an environment whose values may be in files: where `NAME_FILE` is set, `NAME` is the content of that file,
 * without white space at its end. Files are read when `read` uses their variables, so a secret that has changed is
 * found at the next call.
 * @param files gets the paths of the files that were used
 * @throws ConfigError of `read`, with the name of the file if its content is at fault; also when a variable is used
 *   whose file cannot be read or is empty, or that is set in both ways, and for a file of a variable that takes none.
 *   The message never quotes the value.
 */
export function readWithFiles<T>(given: Env, read: (env: Env) => T, files = new Set<string>()): T {
  const env: Record<string, string | undefined> = { ...given };
  const used = new Map<string, string>();
  for (const [variable, path] of Object.entries(given)) {
    const name = variable.endsWith("_FILE") ? variable.slice(0, -"_FILE".length) : "";
    if (name === "" || !path) continue;
    if (WITHOUT_FILE.test(name)) {
      throw new ConfigError(`${name} cannot come from a file. Unset ${variable}, and set ${name} instead.`);
    }
    Object.defineProperty(env, name, {
      get() {
        if (given[name]) throw new ConfigError(`Both ${name} and ${variable} are set. Unset one of them.`);
        files.add(path);
        const content = contentOf(path, variable);
        used.set(name, path);
        return content;
      },
    });
  }
  try {
    return read(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const name = /^[A-Z0-9_]+/.exec(error.message)?.[0] ?? "";
    const path = used.get(name);
    if (path === undefined) throw error;
    throw new ConfigError(`${error.message} Its value comes from ${path} (${name}_FILE).`);
  }
}

function contentOf(path: string, variable: string): string {
  let text: string;
  try {
    text = readText(path).trimEnd();
  } catch {
    throw new ConfigError(`${variable} names ${path}, which cannot be read. Correct ${variable} or unset it.`);
  }
  if (text === "") throw new ConfigError(`${variable} names ${path}, which is empty. Write the value into it.`);
  return text;
}
