import { stat } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { repeat } from "../concurrency/repeat.ts";
import { ConfigError } from "../config/config.ts";
import type { Settings, SettingsReader } from "../config/settings.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";

/**
 * Time between two looks at the files, in milliseconds. Looking also finds changes that the events of the operating
 * system do not report, such as those on network disks.
 */
const LOOK_MS = 1_000;

export type SettingName = keyof Settings;
const NAMES: readonly SettingName[] = ["models", "search", "rates", "tiers"];

export interface ReloadOptions {
  readonly reader: SettingsReader;
  readonly settings: Settings;
  /**
   * Puts checked settings into force: all, or none if it throws.
   * @param changed the settings that differ from those in force
   */
  apply(next: Settings, changed: readonly SettingName[]): Promise<void>;
  /** Records in the audit that a reload was refused. @param reason names the variable or file and what to do */
  refused(reason: string): Promise<void>;
  readonly log: Log;
}

/**
 * Reloads the settings when their files change. Files are read when they have been the same for a second, and what was
 * read counts only if none has changed meanwhile, so that old and new files never mix. Settings are checked before they
 * are put into force, all together. If one is not valid, nothing changes, and the log and the audit say which file and
 * member are wrong; the log also says when all are valid again. While the database is unavailable, the reload is tried
 * again.
 */
export function startReloading(options: ReloadOptions) {
  const { reader, log } = options;
  const reload = createReload(options);
  let requested = false;
  let isWaiting = false;

  async function attempt(read: () => Settings, reports: boolean): Promise<boolean> {
    try {
      await reload(read, reports);
      isWaiting = false;
    } catch (error) {
      if (!isWaiting) log.warn({ cause: errorFacts(error) }, "could not reload the settings yet; trying again");
      isWaiting = true;
    }
    return !isWaiting;
  }

  let reloaded: string | undefined;
  let seen: string | undefined;
  /** @returns whether the files that the last reading used are as they were at the last look */
  async function look(): Promise<boolean> {
    const before = seen;
    seen = await stampOf(reader.files);
    return seen === before;
  }
  const looking = repeat(async () => {
    const isSettled = await look();
    const reports = requested;
    if (!reports && (!isSettled || seen === reloaded)) return;
    const read = readNow(reader);
    // A file has changed, or no look has seen it before. It is read again at the next look.
    if (!(await look())) return;
    if (reports) requested = false;
    reloaded = (await attempt(read, reports)) ? seen : undefined;
  }, LOOK_MS);
  return {
    /** Reloads within a second, also if no file has changed, and logs the result. */
    request(): void {
      requested = true;
    },
    /** Resolves when no reload runs any more. */
    stop: looking.stop,
  };
}

/** Reads the settings now. @returns a function that returns them, or throws the error of the reading */
function readNow(reader: SettingsReader): () => Settings {
  try {
    const settings = reader.read();
    return () => settings;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** @returns a function that reloads once; it throws if the settings could not be put into force, and logs the rest */
function createReload({ settings, apply, refused, log }: ReloadOptions) {
  let current = settings;
  let wasRefused = false;
  return async (read: () => Settings, reports: boolean): Promise<void> => {
    let next: Settings;
    try {
      next = read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      wasRefused = true;
      log.error({ reason: error.message }, "refused to reload the settings; nothing has changed");
      await refused(error.message).catch((cause) => log.warn({ cause: errorFacts(cause) }, "could not record it"));
      return;
    }
    const changed = NAMES.filter((name) => !isDeepStrictEqual(next[name], current[name]));
    if (changed.length > 0) {
      await apply(next, changed);
      current = next;
    }
    if (changed.length > 0 || reports || wasRefused) log.info({ changed }, "reloaded the settings");
    wasRefused = false;
  };
}

/**
 * A text that differs whenever files differ: their identities, sizes and times of change. Links are followed, because
 * Kubernetes replaces files by replacing a link. A file that does not exist has a stamp, too.
 */
async function stampOf(paths: Iterable<string>): Promise<string> {
  const stamps = [...paths].map(async (path) => {
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    return [path, found?.ino, found?.size, found?.mtimeNs].join(" ");
  });
  return (await Promise.all(stamps)).join("\n");
}
