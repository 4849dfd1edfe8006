import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseTiers, type WorkspaceTier } from "./config/tiers.ts";

export type Vendor = "openai" | "anthropic" | "google" | "openai-compatible" | "offline";
export type Tier = "fast" | "strong";

/** One model of the catalogue. */
export interface ModelEntry {
  /** Name inside the catalogue, unique; never reaches a caller. */
  name: string;
  vendor: Vendor;
  /** The vendor's own identifier of the model. */
  model: string;
  tier: Tier;
  /** Address of the vendor's API, without a trailing slash. Undefined: the vendor's own. */
  baseUrl?: string;
  apiKey?: string;
  /** USD per million tokens. */
  price?: { input: number; output: number; cached: number };
  /** Size of the context window in tokens. */
  contextTokens?: number;
  /** Whether the model sees images. Default false. */
  images: boolean;
  /** Whether the vendor takes a JSON Schema in strict mode for this model. Default true, for openai-compatible false. */
  jsonSchema: boolean;
}

/** Patience with one model, in milliseconds. */
export interface ModelTimeouts {
  connectMs: number;
  firstTokenMs: number;
  betweenChunksMs: number;
}

export interface Config {
  public: { host: string; port: number };
  rpc: { host: string; port: number };
  /** Connection string of the operator's Postgres; undefined starts the embedded one. */
  databaseUrl: string | undefined;
  dataDir: string;
  bootstrapApiKey: string | undefined;
  operatorToken: string | undefined;
  models: ModelEntry[];
  timeouts: ModelTimeouts;
  /** Micro-credits per token (which is credits per million tokens). */
  rates: { input: number; cached: number; output: number };
  /** Tiers of workspaces, in the order in which they rise. */
  tiers: readonly WorkspaceTier[];
  /** Longest time for an answer by level, in milliseconds. */
  deadlines: { low: number; medium: number; high: number };
  /** Time that running requests get to finish after SIGTERM, in milliseconds. */
  drainMs: number;
  /** Age from which the records of single requests and use by minute are dropped, in days. */
  retentionDays: number;
  /** Bytes of request bodies held at one time over all requests. */
  bodyBudgetBytes: number;
  /** Wait before the headers of a stream go out without an event, and between keep-alive comments, in milliseconds. */
  stream: { headersMs: number; keepAliveMs: number; stallMs: number };
  console: {
    /** Folder of its built pages. */
    folder: string;
    /** Number of proxies in front of the public listener whose `X-Forwarded-*` headers are believed. */
    proxies: number;
  };
  logLevel: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** A variable or file of the configuration that cannot be used; the message names it. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/**
 * Current models of each vendor, as its AI SDK package lists them (@ai-sdk/openai 4.0.118, anthropic 4.0.105, google 4.0.121):
 * the smaller current one as `fast`, the larger as `strong`.
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

const MODEL_MEMBERS: ReadonlySet<string> = new Set([
  "name",
  "vendor",
  "model",
  "tier",
  "base_url",
  "api_key_env",
  "price",
  "context_tokens",
  "images",
  "json_schema",
]);

const LOG_LEVELS: readonly string[] = ["trace", "debug", "info", "warn", "error", "silent"];

/**
 * Reads the configuration from environment variables and the catalogue file that they name. Everything is checked here, once.
 * @throws ConfigError naming the variable, what was expected and what to do.
 */
export function envToConfig(env: Env): Config {
  return {
    public: { host: env.HOST || "127.0.0.1", port: integer(env, "PORT", 8080, 0, 65535) },
    rpc: { host: env.RPC_HOST || "127.0.0.1", port: integer(env, "RPC_PORT", 8081, 0, 65535) },
    databaseUrl: databaseUrl(env),
    dataDir: resolve(env.DATA_DIR || ".chorus"),
    bootstrapApiKey: env.BOOTSTRAP_API_KEY || undefined,
    operatorToken: env.OPERATOR_TOKEN || undefined,
    models: models(env),
    timeouts: milliseconds(env, "CHORUS_MODEL_TIMEOUTS_MS", {
      connectMs: 5_000,
      firstTokenMs: 60_000,
      betweenChunksMs: 30_000,
    }),
    rates: figures(env, "CHORUS_RATES", { input: 100, cached: 10, output: 400 }, 0, 1_000_000_000),
    tiers: tiers(env),
    deadlines: milliseconds(env, "CHORUS_DEADLINES_MS", { low: 30_000, medium: 60_000, high: 180_000 }),
    drainMs: integer(env, "CHORUS_DRAIN_MS", 20_000, 0, 3_600_000),
    retentionDays: integer(env, "CHORUS_RETENTION_DAYS", 400, 7, 36_500),
    bodyBudgetBytes: integer(
      env,
      "CHORUS_BODY_BUDGET_BYTES",
      256 * 1024 * 1024,
      64 * 1024 * 1024,
      Number.MAX_SAFE_INTEGER,
    ),
    stream: milliseconds(env, "CHORUS_STREAM_MS", { headersMs: 2_000, keepAliveMs: 15_000, stallMs: 30_000 }),
    console: {
      folder: resolve(import.meta.dirname, "../console/dist"),
      proxies: integer(env, "CHORUS_TRUSTED_PROXIES", 0, 0, 10),
    },
    logLevel: logLevel(env),
  };
}

function integer(env: Env, name: string, fallback: number, min: number, max: number): number {
  const text = env[name];
  if (!text) return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new ConfigError(
      `${name} must be a whole number from ${min} to ${max}, but is "${text}". Correct it or unset it.`,
    );
  }
  return value;
}

/** Spans of time. Node's timers reach 24 days, and fire at once beyond. */
function milliseconds<T extends Record<string, number>>(env: Env, name: string, defaults: T): T {
  return figures(env, name, defaults, 1, 2 ** 31 - 1);
}

/** Reads a JSON object of numbers; names that are left out keep their default. */
function figures<T extends Record<string, number>>(env: Env, name: string, defaults: T, min: number, max: number): T {
  const text = env[name];
  if (!text) return defaults;
  const expected = `${name} must be a JSON object with numbers, such as ${JSON.stringify(defaults)}`;
  const given = object(parse(text, expected), expected);
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaults, key)) throw new ConfigError(`${expected}; it has no "${key}".`);
    if (typeof value !== "number" || !(value >= min && value <= max)) {
      throw new ConfigError(`${expected}; "${key}" must be from ${min} to ${max}.`);
    }
  }
  return { ...defaults, ...given };
}

function logLevel(env: Env): string {
  const level = env.LOG_LEVEL || "info";
  if (!LOG_LEVELS.includes(level)) throw new ConfigError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(", ")}.`);
  return level;
}

function databaseUrl(env: Env): string | undefined {
  const text = env.DATABASE_URL;
  if (!text) return undefined;
  if (!/^postgres(ql)?:\/\//.test(text)) {
    throw new ConfigError(
      "DATABASE_URL must begin with postgres:// or postgresql://. Correct it, or unset it to use the embedded Postgres.",
    );
  }
  return text;
}

function tiers(env: Env): readonly WorkspaceTier[] {
  try {
    return parseTiers(env.CHORUS_TIERS);
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error));
  }
}

function models(env: Env): ModelEntry[] {
  const path = env.CHORUS_MODELS || "chorus.models.json";
  if (env.CHORUS_MODELS || existsSync(path)) return catalogue(env, path);
  const entries = DEFAULT_MODELS.flatMap(({ key, vendor, base, fast, strong }) => {
    const apiKey = env[key];
    if (!apiKey) return [];
    const shared = { vendor, apiKey, images: true, jsonSchema: true, ...baseUrl(env[base], base) };
    return [
      { ...shared, name: `${vendor}-fast`, model: fast, tier: "fast" as const },
      { ...shared, name: `${vendor}-strong`, model: strong, tier: "strong" as const },
    ];
  });
  return entries.length > 0 ? entries : [...OFFLINE_MODELS];
}

function catalogue(env: Env, path: string): ModelEntry[] {
  const where = `The catalogue ${path} (CHORUS_MODELS)`;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    throw new ConfigError(`${where} cannot be read. Correct CHORUS_MODELS, or unset it.`);
  }
  const list = object(parse(text, where), where).models;
  if (!Array.isArray(list) || list.length === 0)
    throw new ConfigError(`${where} must have a list "models" with at least one model.`);
  const entries = list.map((item, i) =>
    modelEntry(env, object(item, `${where}: models[${i}]`), `${where}: models[${i}]`),
  );
  const names = new Set<string>();
  for (const { name } of entries) {
    if (names.has(name)) throw new ConfigError(`${where} has two models named "${name}". Names must differ.`);
    names.add(name);
  }
  return entries;
}

function modelEntry(env: Env, item: Record<string, unknown>, where: string): ModelEntry {
  const string = (key: string): string | undefined => {
    const value = item[key];
    if (value !== undefined && (typeof value !== "string" || value === ""))
      throw new ConfigError(`${where}.${key} must be a string.`);
    return value as string | undefined;
  };
  const oneOf = <T extends string>(key: string, allowed: readonly T[]): T => {
    const value = string(key);
    if (!allowed.includes(value as T)) throw new ConfigError(`${where}.${key} must be one of ${allowed.join(", ")}.`);
    return value as T;
  };
  const unknown = Object.keys(item).find((key) => !MODEL_MEMBERS.has(key));
  if (unknown !== undefined) throw new ConfigError(`${where} has a member "${unknown}", which means nothing here.`);
  const vendor = oneOf("vendor", ["openai", "anthropic", "google", "openai-compatible", "offline"] as const);
  const tier = oneOf("tier", ["fast", "strong"] as const);
  const name = string("name");
  const model = string("model") ?? (vendor === "offline" ? `offline-${tier}` : undefined);
  if (!name || !model) throw new ConfigError(`${where} needs "name" and "model".`);
  const known = DEFAULT_MODELS.find((row) => row.vendor === vendor);
  const keyEnv = string("api_key_env");
  if (keyEnv && !env[keyEnv])
    throw new ConfigError(`${where}.api_key_env names ${keyEnv}, which is not set. Set it, or leave the model out.`);
  const apiKey = env[keyEnv ?? known?.key ?? ""];
  if (known && !apiKey)
    throw new ConfigError(`${where} needs an API key: set ${known.key}, or name another variable in "api_key_env".`);
  const url = baseUrl(string("base_url") ?? env[known?.base ?? ""], `${where}.base_url`);
  if (vendor === "openai-compatible" && !url.baseUrl)
    throw new ConfigError(`${where} needs "base_url", such as http://127.0.0.1:11434/v1.`);
  const price = item.price === undefined ? undefined : prices(item.price, `${where}.price`);
  const context = item.context_tokens;
  if (context !== undefined && !(Number.isInteger(context) && (context as number) > 0)) {
    throw new ConfigError(`${where}.context_tokens must be a whole number above 0.`);
  }
  return {
    name,
    vendor,
    model,
    tier,
    ...url,
    ...(apiKey ? { apiKey } : {}),
    ...(price ? { price } : {}),
    ...(context === undefined ? {} : { contextTokens: context as number }),
    images: flag(item, "images", false, where),
    jsonSchema: flag(item, "json_schema", vendor !== "openai-compatible", where),
  };
}

function prices(value: unknown, where: string): { input: number; output: number; cached: number } {
  const given = object(value, where);
  const read = (key: string, fallback?: number): number => {
    const price = given[key] ?? fallback;
    if (typeof price !== "number" || !(price >= 0))
      throw new ConfigError(`${where}.${key} must be USD per million tokens, from 0.`);
    return price;
  };
  const input = read("input");
  return { input, output: read("output"), cached: read("cached", input) };
}

function flag(item: Record<string, unknown>, key: string, fallback: boolean, where: string): boolean {
  const value = item[key] ?? fallback;
  if (typeof value !== "boolean") throw new ConfigError(`${where}.${key} must be true or false.`);
  return value;
}

function baseUrl(text: string | undefined, where: string): { baseUrl?: string } {
  if (!text) return {};
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new ConfigError(`${where} must be an address such as https://host/v1, but is "${text}".`);
  }
  return { baseUrl: text.replace(/\/+$/, "") };
}

function parse(text: string, expected: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(`${expected}; it is no JSON.`);
  }
}

function object(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ConfigError(`${where} must be a JSON object.`);
  return value as Record<string, unknown>;
}
