import { ConfigError, type Env, expectedObject, parse } from "./config-error.ts";

/**
 * Reads a whole number.
 * @param or what else the value may be, for the message, such as `auto or `
 * @throws ConfigError naming the variable and the range
 */
export function integer(env: Env, name: string, fallback: number, min: number, max: number, or = ""): number {
  const text = env[name];
  if (!text) return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new ConfigError(
      `${name} must be ${or}a whole number from ${min} to ${max}, but is "${text}". Correct it or unset it.`,
    );
  }
  return value;
}

/** Reads a JSON object of durations. The maximum is that of Node's timers, which fire at once for anything longer. */
export function milliseconds<T extends Record<string, number>>(env: Env, name: string, defaults: T): T {
  return figures(env, name, defaults, 1, 2 ** 31 - 1);
}

/** Reads a JSON object of numbers. Members that are not given have their default. */
export function figures<T extends Record<string, number>>(
  env: Env,
  name: string,
  defaults: T,
  min: number,
  max: number,
): T {
  const text = env[name];
  if (!text) return defaults;
  const expected = `${name} must be a JSON object with numbers, such as ${JSON.stringify(defaults)}`;
  const given = expectedObject(parse(text, expected), expected);
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaults, key)) throw new ConfigError(`${expected}; there is no member "${key}". Remove it.`);
    if (typeof value !== "number" || !(value >= min && value <= max)) {
      throw new ConfigError(`${expected}; "${key}" must be from ${min} to ${max}. Correct it.`);
    }
  }
  return { ...defaults, ...given };
}

/**
 * Reads a key that is sent in a header, which allows no other characters.
 * @throws ConfigError naming the variable; it never quotes the key
 */
export function headerKey(env: Env, name: string): string | undefined {
  const key = env[name];
  if (key && !/^[\x21-\x7e]+$/.test(key)) {
    throw new ConfigError(
      `${name} must be printable ASCII without spaces and line breaks (CR of files from Windows, too). Set it again.`,
    );
  }
  return key || undefined;
}

/**
 * Checks an address to which paths are added, and whose further parts would not be sent.
 * @throws ConfigError naming `where`; it never quotes the address, which may contain a password
 */
export function checkAddress(text: string, where: string, example: string): void {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new ConfigError(
      `${where} must be an address such as ${example}, without a user name, password or query. Correct it.`,
    );
  }
}

/** Reads one of several words, of which the first is the default. */
export function oneOf<W extends string>(env: Env, name: string, words: readonly [W, ...W[]]): W {
  const given = env[name] || words[0];
  const word = words.find((one) => one === given);
  if (word === undefined) throw new ConfigError(`${name} must be one of ${words.join(", ")}. Correct it or unset it.`);
  return word;
}

/** Reads texts separated by commas, without white space around them and without empty ones. */
export function list(env: Env, name: string): string[] {
  const parts = (env[name] ?? "").split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "");
}

/** Reads host names, separated by commas, in lower case. A leading dot stands for all names below. */
export function hostNames(env: Env, name: string): string[] {
  const names = list(env, name).map((part) => part.toLowerCase());
  const wrong = names.find((part) => !/^\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(part));
  if (wrong !== undefined) {
    throw new ConfigError(
      `${name} must be host names separated by commas, such as "chorus.example.com,.svc.example.com", but has ` +
        `"${wrong}". Leave out schemes and ports.`,
    );
  }
  return names;
}
