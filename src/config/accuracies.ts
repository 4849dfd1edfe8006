import { ABILITIES, type Accuracies } from "../contract/terms.ts";
import { ConfigError, object, parse } from "./config-error.ts";
import { readText } from "./text-file.ts";

/**
 * Reads accuracies: a number for all abilities, or an object with numbers for some.
 * @throws ConfigError naming `where`
 */
export function accuraciesOf(value: unknown, where: string): number | Accuracies {
  if (typeof value === "number") return share(value, where);
  if (typeof value !== "object")
    throw new ConfigError(
      `${where} must be a number from 0 to 1, or an object with ${ABILITIES.join(", ")}. Correct it.`,
    );
  const read: Accuracies = {};
  for (const [key, each] of Object.entries(object(value, where))) {
    const ability = ABILITIES.find((one) => one === key);
    if (!ability)
      throw new ConfigError(`${where} has an unknown member "${key}". Remove it, or use ${ABILITIES.join(", ")}.`);
    read[ability] = share(each, `${where}.${key}`);
  }
  return read;
}

/**
 * Reads the accuracies that `chorus calibrate` has measured, by name of the model.
 * @returns an empty map for a file that does not exist yet
 * @throws ConfigError for a file that cannot be read or is not of this form
 */
export function readMeasured(path: string, catalogue: string): Map<string, Accuracies> {
  const where = `${path}, which ${catalogue} names as "accuracies",`;
  const text = textOf(path, where);
  if (text === undefined) return new Map();
  const { models } = object(parse(text, `${where} must be a JSON object`), where);
  const rows = Object.entries(object(models, `${where} models`));
  return new Map(
    rows.map(([name, abilities]) => {
      const measured = Object.entries(object(abilities, `${where} ${name}`)).map(([ability, figures]) => [
        ability,
        object(figures, `${where} ${name}.${ability}`).accuracy,
      ]);
      const read = accuraciesOf(Object.fromEntries(measured), `${where} ${name}`);
      return [name, typeof read === "number" ? {} : read];
    }),
  );
}

/** @returns undefined for a file that does not exist */
function textOf(path: string, where: string): string | undefined {
  try {
    return readText(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") return undefined;
    throw new ConfigError(`${where} cannot be read (${code}). Correct "accuracies", or the rights of the file.`);
  }
}

function share(value: unknown, where: string): number {
  if (typeof value === "number" && value >= 0 && value <= 1) return value;
  throw new ConfigError(`${where} must be a number from 0 to 1. Correct it.`);
}
