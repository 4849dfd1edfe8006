import { execFile, type SpawnOptions } from "node:child_process";
import { stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** The user that runs the programs of the embedded Postgres, which refuses to run as root. */
export interface OsUser {
  /** Owner of the data folder; undefined: the user who runs the service. */
  owner: { uid: number; gid: number } | undefined;
  /** A note for the operator, if there is something to know. */
  note?: string;
  /** The command line and options that run `program` as that user. */
  command(program: string, args: readonly string[]): { file: string; args: string[]; options: SpawnOptions };
}

/** Environment of the server. It does not inherit that of the service, which contains the keys of vendors. */
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", TZ: "UTC" };

/**
 * Chooses the user that runs the server: the current one, unless it is root. Then the owner of the existing data, else
 * the user `postgres`, which is created if it is missing, else `nobody`. Where that user cannot enter the folders
 * above, for example in a clone under /root, the programs keep one capability to enter them (Linux).
 * @param dataDir folder that the user must be able to enter; `postgres/data` in it is the existing data, if any
 * @param programs folder of the programs
 * @throws Error that says which folder cannot be entered and what to do
 */
export async function osUser(dataDir: string, programs: string): Promise<OsUser> {
  if (!runsAsRoot())
    return { owner: undefined, command: (file, args) => ({ file, args: [...args], options: { env: ENVIRONMENT } }) };
  const owner =
    (await ownerOf(join(dataDir, "postgres", "data"))) ??
    (await existingUser("postgres")) ??
    (await createdUser("postgres")) ??
    (await existingUser("nobody"));
  if (!owner)
    throw new Error(
      "Postgres does not run as root, and no other user could be found. " +
        "Run Chorus as an ordinary user, or set DATABASE_URL.",
    );
  const closed = (await closedFolder(programs, owner)) ?? (await closedFolder(dataDir, owner));
  const prefix = closed ? await capabilityPrefix(closed, owner, `${programs}/postgres`) : undefined;
  if (!prefix)
    return { owner, command: (file, args) => ({ file, args: [...args], options: { ...owner, env: ENVIRONMENT } }) };
  const [file, ...first] = prefix;
  return {
    owner,
    note:
      `Postgres runs as uid ${owner.uid}, which may not enter ${closed}: ` +
      "it keeps a capability to enter folders without permission.",
    command: (program, args) => ({ file, args: [...first, program, ...args], options: { env: ENVIRONMENT } }),
  };
}

function runsAsRoot(): boolean {
  try {
    return userInfo().uid === 0;
  } catch {
    return false; // a user that is not in the list of users is not root
  }
}

async function ownerOf(path: string): Promise<OsUser["owner"]> {
  const found = await stat(path).catch(() => undefined);
  return found && found.uid !== 0 ? { uid: found.uid, gid: found.gid } : undefined;
}

async function existingUser(name: string): Promise<OsUser["owner"]> {
  try {
    const [uid, gid] = await Promise.all([execute("id", ["-u", name]), execute("id", ["-g", name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

async function createdUser(name: string): Promise<OsUser["owner"]> {
  await execute("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/bin/false", name]).catch(
    () => undefined,
  );
  return existingUser(name);
}

/** The first folder on the path from the root to `path` that `owner` may not enter. */
async function closedFolder(path: string, owner: { uid: number; gid: number }): Promise<string | undefined> {
  const parent = dirname(path);
  const above = parent === path ? undefined : await closedFolder(parent, owner);
  if (above) return above;
  const { mode, uid, gid } = await stat(path);
  const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001;
  return mode & bit ? undefined : path;
}

/**
 * Finds a command prefix that runs a program as `owner` with one capability to enter folders: the one for reading, else
 * the wider one that containers keep. Without the secure bit, access(2) would ignore the capability.
 */
async function capabilityPrefix(
  closed: string,
  owner: { uid: number; gid: number },
  program: string,
): Promise<[string, ...string[]]> {
  for (const capability of ["+dac_read_search", "+dac_override"]) {
    const prefix: [string, ...string[]] = [
      "setpriv",
      `--reuid=${owner.uid}`,
      `--regid=${owner.gid}`,
      "--clear-groups",
      `--inh-caps=${capability}`,
      `--ambient-caps=${capability}`,
      "--securebits=+no_setuid_fixup",
    ];
    const works = await execute(prefix[0], [...prefix.slice(1), program, "--version"], { env: ENVIRONMENT }).then(
      () => true,
      () => false,
    );
    if (works) return prefix;
  }
  throw new Error(
    `Postgres does not run as root, and the user it would run as (uid ${owner.uid}) may not enter ${closed}. ` +
      `Run Chorus as an ordinary user, move it and DATA_DIR out of ${closed}, ` +
      "allow entering it (chmod o+x), or set DATABASE_URL.",
  );
}
