import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Accuracies } from "../contract/terms.ts";
import type { ModelEntry, Vendor } from "../models/port/entry.ts";
import { accuraciesOf, readMeasured } from "./accuracies.ts";
import { ConfigError, checkMembers, type Env, object, parse, textMember } from "./config-error.ts";
import { parseSearch, type SearchConfig } from "./search.ts";
import { readText } from "./text-file.ts";
import { checkAddress, headerKey } from "./values.ts";

/** The catalogue file that is used if it exists and CHORUS_MODELS is not set. */
export const DEFAULT_CATALOGUE = "chorus.models.json";

/**
 * Current models of each vendor: a small one as `fast`, a large one as `strong`. Update them when a vendor retires one.
 */
const DEFAULT_MODELS: ReadonlyArray<{ key: string; vendor: Vendor; base: string; fast: string; strong: string }> = [
  { key: "OPENAI_API_KEY", vendor: "openai", base: "OPENAI_BASE_URL", fast: "gpt-6-luna", strong: "gpt-6.1-sol" },
  {
    key: "ANTHROPIC_API_KEY",
    vendor: "anthropic",
    base: "ANTHROPIC_BASE_URL",
    fast: "claude-haiku-5-5",
    strong: "claude-opus-5-5",
  },
  {
    key: "GEMINI_API_KEY",
    vendor: "google",
    base: "GEMINI_BASE_URL",
    fast: "gemini-3.8-flash",
    strong: "gemini-pro-latest",
  },
];

const OFFLINE_MODELS: readonly ModelEntry[] = (["fast", "strong"] as const).map((tier) => ({
  name: `offline-${tier}`,
  vendor: "offline",
  model: `offline-${tier}`,
  tier,
  images: false,
  jsonSchema: true,
}));

const MODEL_MEMBERS: ReadonlySet<string> = new Set(
  (
    "name vendor api model version tier base_url api_key_env price accuracy context_tokens max_output_tokens " +
    "max_concurrency images json_schema thinks"
  ).split(" "),
);

const CATALOGUE_MEMBERS: ReadonlySet<string> = new Set(["models", "search", "accuracies"]);
/** Highest price: JSON can write numbers that are read as infinite. */
const MAX_PRICE = 1_000_000_000;
const PRICE_MEMBERS: ReadonlySet<string> = new Set(["input", "output", "cached"]);

/** The models of the catalogue, and the web search if one is configured. */
export interface Sources {
  /** Path of the catalogue file; undefined for the built-in catalogue. */
  catalogue: string | undefined;
  models: ModelEntry[];
  search: SearchConfig | undefined;
  /** Path of the file with measured accuracies that the catalogue names. */
  accuracies?: string;
}

/**
 * Reads the catalogue file that CHORUS_MODELS names. Without a file, uses the models of the vendors whose API keys are
 * set; without keys, the offline models.
 * @param files gets the paths of the files that are read, also of those that do not exist
 * @throws ConfigError naming the file and the member, or the variable, what was expected and what to do
 */
export function readSources(env: Env, files = new Set<string>()): Sources {
  const path = env.CHORUS_MODELS || DEFAULT_CATALOGUE;
  files.add(path);
  if (env.CHORUS_MODELS || existsSync(path)) return catalogue(env, path, files);
  const search = parseSearch(undefined, env, "The environment");
  return { catalogue: undefined, models: defaultModels(env), search };
}

function defaultModels(env: Env): ModelEntry[] {
  const entries = DEFAULT_MODELS.flatMap(({ key, vendor, base, fast, strong }) => {
    const given = keyOf(env, key);
    if (!given.apiKey) return [];
    const shared = { vendor, ...given, images: true, jsonSchema: true, ...baseUrl(env[base], base) };
    return [
      { ...shared, name: `${vendor}-fast`, model: fast, tier: "fast" as const },
      { ...shared, name: `${vendor}-strong`, model: strong, tier: "strong" as const },
    ];
  });
  return entries.length > 0 ? entries : [...OFFLINE_MODELS];
}

function catalogue(env: Env, path: string, files: Set<string>): Sources {
  const where = `The catalogue ${path} (CHORUS_MODELS)`;
  let text: string;
  try {
    text = readText(path);
  } catch {
    throw new ConfigError(`${where} cannot be read. Correct CHORUS_MODELS or unset it.`);
  }
  const given = object(parse(text, `${where} must be a JSON object`), where);
  checkMembers(given, CATALOGUE_MEMBERS, where);
  const { models: list, search, accuracies } = given;
  if (!Array.isArray(list) || list.length === 0)
    throw new ConfigError(`${where} must have a list "models" with at least one model. Add it.`);
  const entries = list.map((item, i) =>
    modelEntry(env, object(item, `${where}: models[${i}]`), `${where}: models[${i}]`),
  );
  const names = new Set<string>();
  for (const { name } of entries) {
    if (names.has(name)) throw new ConfigError(`${where} has two models named "${name}". Rename one of them.`);
    names.add(name);
  }
  const measured = measuredPath(accuracies, path, where);
  if (measured !== undefined) files.add(measured);
  return {
    catalogue: path,
    models: measured === undefined ? entries : withMeasured(entries, readMeasured(measured, where)),
    search: parseSearch(search, env, `${where}: search`),
    ...(measured === undefined ? {} : { accuracies: measured }),
  };
}

/** The path is relative to the catalogue. */
function measuredPath(file: unknown, catalogue: string, where: string): string | undefined {
  if (file === undefined) return undefined;
  if (typeof file !== "string" || file === "")
    throw new ConfigError(`${where}: accuracies must be the path of a file. Correct it or remove it.`);
  return resolve(dirname(catalogue), file);
}

/** The entries with the measured accuracies of the abilities for which they state none. */
function withMeasured(entries: readonly ModelEntry[], measured: ReadonlyMap<string, Accuracies>): ModelEntry[] {
  return entries.map((entry) => {
    const own = measured.get(entry.name);
    if (!own || typeof entry.accuracy === "number") return entry;
    return { ...entry, accuracy: { ...own, ...entry.accuracy } };
  });
}

function modelEntry(env: Env, item: Record<string, unknown>, where: string): ModelEntry {
  const string = (key: string) => textMember(item, key, where);
  const oneOf = <T extends string>(key: string, allowed: readonly T[]): T => {
    const value = string(key);
    if (!allowed.includes(value as T))
      throw new ConfigError(`${where}.${key} must be one of ${allowed.join(", ")}. Correct it.`);
    return value as T;
  };
  checkMembers(item, MODEL_MEMBERS, where);
  const vendor = oneOf("vendor", ["openai", "anthropic", "google", "openai-compatible", "offline"] as const);
  const api = item.api === undefined ? undefined : oneOf("api", ["chat", "responses"] as const);
  if (api !== undefined && vendor !== "openai" && vendor !== "openai-compatible")
    throw new ConfigError(`${where}.api is for the vendors openai and openai-compatible only. Remove it.`);
  const tier = oneOf("tier", ["fast", "strong"] as const);
  const name = string("name");
  const model = string("model") ?? (vendor === "offline" ? `offline-${tier}` : undefined);
  const version = string("version");
  if (!name || !model) throw new ConfigError(`${where} must have "name" and "model". Add them.`);
  const known = DEFAULT_MODELS.find((row) => row.vendor === vendor);
  const keyEnv = string("api_key_env");
  if (keyEnv && !env[keyEnv])
    throw new ConfigError(
      `${where}.api_key_env names ${keyEnv}, which is not set. Set it or ${keyEnv}_FILE, or remove the model.`,
    );
  const apiKeyEnv = keyEnv ?? known?.key ?? "";
  const key = keyOf(env, apiKeyEnv);
  if (known && !key.apiKey)
    throw new ConfigError(
      `${where} needs an API key. Set ${known.key} or ${known.key}_FILE, or name another variable in "api_key_env".`,
    );
  const url = baseUrl(string("base_url") ?? env[known?.base ?? ""], `${where}.base_url`);
  if (vendor === "openai-compatible" && !url.baseUrl)
    throw new ConfigError(`${where} must have "base_url", such as http://127.0.0.1:11434/v1. Add it.`);
  const price = item.price === undefined ? undefined : prices(item.price, `${where}.price`);
  const contextTokens = count(item, "context_tokens", where);
  const maxOutputTokens = count(item, "max_output_tokens", where);
  const maxConcurrency = count(item, "max_concurrency", where);
  const accuracy = item.accuracy === undefined ? undefined : accuraciesOf(item.accuracy, `${where}.accuracy`);
  return {
    name,
    vendor,
    ...(api === "responses" ? { api } : {}),
    model,
    tier,
    ...(version === undefined ? {} : { version }),
    ...url,
    ...key,
    ...(price ? { price } : {}),
    ...(accuracy === undefined ? {} : { accuracy }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    images: flag(item, "images", false, where),
    jsonSchema: flag(item, "json_schema", vendor !== "openai-compatible", where),
    ...(flag(item, "thinks", false, where) ? { thinks: true } : {}),
  };
}

/** Reads the key of a vendor, and where it comes from. @throws ConfigError naming the variable */
function keyOf(env: Env, name: string): Pick<ModelEntry, "apiKey" | "apiKeyEnv" | "apiKeyFile"> {
  const apiKey = headerKey(env, name);
  if (!apiKey) return {};
  const apiKeyFile = env[`${name}_FILE`];
  return { apiKey, apiKeyEnv: name, ...(apiKeyFile ? { apiKeyFile } : {}) };
}

function prices(value: unknown, where: string): { input: number; output: number; cached: number } {
  const given = object(value, where);
  checkMembers(given, PRICE_MEMBERS, where);
  const read = (key: string, fallback?: number): number => {
    const price = given[key] ?? fallback;
    if (typeof price !== "number" || !(price >= 0 && price <= MAX_PRICE))
      throw new ConfigError(`${where}.${key} must be USD per million tokens, from 0 to ${MAX_PRICE}. Correct it.`);
    return price;
  };
  const input = read("input");
  return { input, output: read("output"), cached: read("cached", input) };
}

function count(item: Record<string, unknown>, key: string, where: string): number | undefined {
  const value = item[key];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value <= 0) {
    throw new ConfigError(`${where}.${key} must be a whole number above 0. Correct it.`);
  }
  return value;
}

function flag(item: Record<string, unknown>, key: string, fallback: boolean, where: string): boolean {
  const value = item[key] ?? fallback;
  if (typeof value !== "boolean") throw new ConfigError(`${where}.${key} must be true or false. Correct it.`);
  return value;
}

function baseUrl(text: string | undefined, where: string): { baseUrl?: string } {
  if (!text) return {};
  checkAddress(text, where, "https://host/v1");
  return { baseUrl: text.replace(/\/+$/, "") };
}
