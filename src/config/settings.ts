import { existsSync } from "node:fs";
import type { ModelEntry } from "../models/port/entry.ts";
import type { Env } from "./config-error.ts";
import { readWithFiles } from "./file-variables.ts";
import { DEFAULT_CATALOGUE, readSources } from "./models.ts";
import type { SearchConfig } from "./search.ts";
import { parseTiers, type WorkspaceTier } from "./tiers.ts";
import { figures } from "./values.ts";

/** The part of the configuration that a running service can replace. */
export interface Settings {
  /** Path of the catalogue file; undefined for the built-in catalogue. */
  catalogue: string | undefined;
  models: ModelEntry[];
  /** Undefined: web search is not available. */
  search: SearchConfig | undefined;
  /** Micro-credits per token, which equals credits per million tokens. */
  rates: { input: number; cached: number; output: number };
  /** Tiers of workspaces, lowest first. */
  tiers: readonly WorkspaceTier[];
}

/**
 * Reads the settings from environment variables and the catalogue file.
 * @param workers number of processes that share the calls of each model
 * @param files gets the paths of the catalogue and of the file with measured accuracies
 * @throws ConfigError naming the variable or the file and its member, what was expected and what to do
 */
export function readSettings(env: Env, workers: number, files = new Set<string>()): Settings {
  const { catalogue, models, search } = readSources(env, files);
  return {
    catalogue,
    models: models.map((entry) => shareOf(entry, workers)),
    search,
    rates: figures(env, "CHORUS_RATES", { input: 100, cached: 10, output: 400 }, 0, 1_000_000_000),
    tiers: parseTiers(env.CHORUS_TIERS),
  };
}

export interface SettingsReader {
  /** @throws ConfigError as `readSettings` */
  read(): Settings;
  /** Paths of the files that the last call of `read` used, also if it failed. */
  readonly files: ReadonlySet<string>;
}

/**
 * Creates a reader for the environment of a running service. A catalogue that has been read once must exist from then
 * on, also if CHORUS_MODELS does not name it: its absence must not change the models of a running service.
 */
export function createSettingsReader(given: Env, workers: number): SettingsReader {
  let pinned: Env = given;
  let files = new Set<string>();
  return {
    read() {
      files = new Set();
      const settings = readWithFiles(pinned, (env) => readSettings(env, workers, files), files);
      if (files.has(DEFAULT_CATALOGUE) && existsSync(DEFAULT_CATALOGUE)) {
        pinned = { ...given, CHORUS_MODELS: DEFAULT_CATALOGUE };
      }
      return settings;
    },
    get files() {
      return files;
    },
  };
}

/** The part of a model's calls that each worker may make. */
function shareOf(entry: ModelEntry, workers: number): ModelEntry {
  const { maxConcurrency } = entry;
  if (maxConcurrency === undefined) return entry;
  return { ...entry, maxConcurrency: Math.max(1, Math.floor(maxConcurrency / workers)) };
}
