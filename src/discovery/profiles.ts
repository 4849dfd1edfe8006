import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { makeFolder } from "../files/folder.ts";
import { writePrivateFile } from "./data-folder.ts";

/** How the command line reaches a service. */
export interface Profile {
  /** Data folder of a service on this machine, which holds its address and the operator token. */
  readonly dataDir?: string;
  /** Address of the internal listener. */
  readonly rpcUrl?: string;
  /** Operator or owner token. */
  readonly token?: string;
}

export interface Profiles {
  /** Name of the profile that is used when none is named. */
  readonly default?: string;
  readonly profiles: Readonly<Record<string, Profile>>;
}

type Env = Readonly<Record<string, string | undefined>>;

/** A file in the configuration folder of this user (XDG Base Directory Specification). */
export function configFile(env: Env, name: string): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "chorus", name);
}

export function profilesFile(env: Env): string {
  return configFile(env, "profiles.json");
}

/** Reads the profiles; none when the file does not exist. @throws Error that names a file whose JSON is not valid */
export async function readProfiles(env: Env): Promise<Profiles> {
  return (await readConfig<Profiles>(profilesFile(env))) ?? { profiles: {} };
}

/** Replaces the profiles. Only this user can read the file. */
export function writeProfiles(env: Env, profiles: Profiles): Promise<void> {
  return writeConfig(profilesFile(env), profiles);
}

/** Adds or replaces a profile. The first one becomes the default. */
export async function addProfile(env: Env, name: string, profile: Profile): Promise<void> {
  const { default: first = name, profiles } = await readProfiles(env);
  await writeProfiles(env, { default: first, profiles: { ...profiles, [name]: profile } });
}

/**
 * Reads a JSON object that `writeConfig` wrote; undefined when there is no file.
 * @throws Error that names a file that holds no JSON object
 */
export async function readConfig<T extends object>(file: string): Promise<T | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as T;
  } catch {
    // Reported below.
  }
  throw new Error(`${file} is not a JSON object. Correct or delete it.`);
}

/** Writes a JSON object to a file that only this user can read. @throws Error of the file system */
export async function writeConfig(file: string, value: object): Promise<void> {
  await makeFolder(dirname(file), 0o700);
  await writePrivateFile(file, JSON.stringify(value, null, 2));
}
