import { stat } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import type { Command } from "commander";
import { dataDirOf } from "../config/data-dir.ts";
import { operatorTokenFile, readDiscovery } from "../discovery/data-folder.ts";
import { type Profile, type Profiles, profilesFile, readProfiles } from "../discovery/profiles.ts";

/** An error that the user can correct; the message says how. */
export class CliError extends Error {
  override name = "CliError";
}

export interface GlobalOptions {
  rpcUrl?: string;
  profile?: string;
  json?: boolean;
}

export interface Secret {
  text: string;
  /** Where the secret comes from, for error messages. */
  source: string;
}

/** The service that a command talks to. */
export interface Target {
  /** Address of the internal listener. */
  readonly rpcUrl: string;
  /** Address of the public listener; undefined unless the service runs on this machine. */
  readonly restUrl: string | undefined;
  /** Operator or owner token. */
  readonly token: Secret | undefined;
  /** Identifies the service, also when it uses another port: its data folder, or its address. */
  readonly place: string;
  /** Why there is no token, for error messages. */
  readonly withoutToken: string;
}

/** Address of a service whose address is not known. */
const USUAL_URL = "http://127.0.0.1:8081";

const { env } = process;

/**
 * Finds the service: by the named profile, else by the environment, else by the data folder in the current folder, else
 * by the default profile. The token of a data folder or a profile is only for the service of that.
 * @throws CliError if the profile does not exist, the address is not valid or the folder is not to be trusted
 */
export async function findTarget(command: Command): Promise<Target> {
  const { rpcUrl: given, profile: name = env.CHORUS_PROFILE } = command.optsWithGlobals<GlobalOptions>();
  const here = dataDirOf(env);
  const isGiven = given || env.CHORUS_RPC_URL || env.DATA_DIR;
  const around = await readOwnFolder(here, !name && !isGiven);
  const profile = await readProfile(name, !name && !isGiven && around.rpcUrl === undefined);
  const { dataDir } = profile ?? { dataDir: here };
  const found = profile ? await (dataDir ? readDiscovery(dataDir) : {}) : around;
  const own = profile?.rpcUrl || found.rpcUrl || USUAL_URL;
  const rpcUrl = given || profile?.rpcUrl || (name ? "" : env.CHORUS_RPC_URL) || own;
  if (!/^https?:\/\/[^/]/.test(rpcUrl) || !URL.canParse(rpcUrl)) {
    throw new CliError(
      "The address of the service (--rpc-url or CHORUS_RPC_URL) must be like http://127.0.0.1:8081, but is " +
        `"${rpcUrl}".`,
    );
  }
  const tokenFile = operatorTokenFile(dataDir ?? here);
  const stored = [
    { text: profile?.token, source: `the profile "${profile?.name}"` },
    { text: found.operatorToken, source: tokenFile },
  ].filter((token): token is Secret => !!token.text);
  const ofProfile = isSameServer(own, rpcUrl) ? stored : [];
  const ofEnvironment = ["OPERATOR_TOKEN", "OWNER_TOKEN"].map((source) => ({ text: env[source], source }));
  const tokens = name ? [...ofProfile, ...ofEnvironment] : [...ofEnvironment, ...ofProfile];
  const isHere = found.rpcUrl !== undefined && isSameServer(found.rpcUrl, rpcUrl);
  return {
    rpcUrl,
    restUrl: isHere ? found.restUrl : undefined,
    token: tokens.find((token): token is Secret => !!token.text),
    place: isHere && dataDir ? dataDir : rpcUrl,
    withoutToken: stored[0]
      ? `The token from ${stored[0].source} is for the service at ${own}, and is sent to no other.`
      : `On the machine of the service, DATA_DIR must name its data folder (no token was taken from ${tokenFile}).`,
  };
}

/**
 * Reads the data folder around the command. One that nobody has named may come from somebody else, and would get the
 * tokens of the environment and the prompts: it counts only if it belongs to this user and names a service on this
 * machine. Its public address, which is printed before links that sign in, is left out if it is not on this machine.
 * @param isWanted whether the service of the folder is to be used; else a folder that does not count is as if empty
 * @throws CliError that says why the folder does not count
 */
async function readOwnFolder(folder: string, isWanted: boolean): ReturnType<typeof readDiscovery> {
  const found = await readDiscovery(folder);
  if (env.DATA_DIR || found.rpcUrl === undefined) return found;
  const { uid } = await stat(folder);
  const isOwn = process.getuid === undefined || uid === process.getuid();
  if (isOwn && isOfThisMachine(found.rpcUrl)) {
    const { restUrl, ...others } = found;
    return restUrl && isOfThisMachine(restUrl) ? found : others;
  }
  if (!isWanted) return {};
  const reason = isOwn ? `its address is not one of this machine: ${found.rpcUrl}` : "it belongs to another user";
  throw new CliError(
    `The service of ${folder} is not used, because the folder may come from somebody else: ${reason}. ` +
      "Set DATA_DIR to the folder if you trust it, or name another service.",
  );
}

function isOfThisMachine(address: string): boolean {
  const { hostname: host = "" } = URL.parse(address) ?? {};
  // First, because some systems do not let a process list the interfaces.
  if (isLoopback(host)) return true;
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map((of) => of.address));
  return [...own, hostname().toLowerCase()].includes(host.replace(/^\[|\]$/g, ""));
}

function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** Whether two addresses are those of one server: the loopback addresses of a port are. */
function isSameServer(one: string, other: string): boolean {
  return URL.canParse(one) && serverOf(one) === serverOf(other);
}

function serverOf(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${protocol}//${isLoopback(hostname) ? "loopback" : hostname}:${port}`;
}

/** Reads the profiles. @throws CliError that names a file that is not valid */
export function storedProfiles(): Promise<Profiles> {
  return readProfiles(env).catch((error: Error) => Promise.reject(new CliError(error.message)));
}

/** @returns undefined when no profile is named and there is no default, or it is not wanted */
async function readProfile(
  name: string | undefined,
  isDefault: boolean,
): Promise<(Profile & { name: string }) | undefined> {
  if (!name && !isDefault) return undefined;
  const stored = await storedProfiles();
  const wanted = name || stored.default;
  if (!wanted) return undefined;
  const profile = Object.hasOwn(stored.profiles, wanted) ? stored.profiles[wanted] : undefined;
  if (profile) return { ...profile, name: wanted };
  const known = Object.keys(stored.profiles).join(", ") || "none";
  throw new CliError(
    `There is no profile "${wanted}" in ${profilesFile(env)} (it has: ${known}). Add it: chorus profile add ${wanted}`,
  );
}
