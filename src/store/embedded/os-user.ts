import { execFile, type SpawnOptions } from "node:child_process";
import { stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** How the programs of the embedded Postgres are run, which refuses to run as root. */
export interface OsUser {
  /** Owner of the data folder; undefined: the user who runs the service. */
  owner: { uid: number; gid: number } | undefined;
  /** What an operator should know about it, if anything. */
  note?: string;
  /** The command line and options that run `program` as that user. */
  command(program: string, args: readonly string[]): { file: string; args: string[]; options: SpawnOptions };
}

/** Nothing of the service's own environment, which holds vendor keys, reaches the server, which outlives the service. */
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", TZ: "UTC" };

/**
 * Decides who runs the server. An ordinary user does it as himself. Root hands it to the owner of the existing data, else to the user
 * `postgres`, which is created where it is missing, else to `nobody`.
 * Where such a user cannot pass the folders above (a clone under /root, say), the programs keep one capability for passing them (Linux).
 * @param dataDir folder that the user must be able to enter; its part `postgres/data` is the data, if there is any yet
 * @param programs folder of the programs
 * @throws Error saying which folder is closed and what to do.
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
      "Postgres does not run as root, and no other user could be found. Run Chorus as an ordinary user, or set DATABASE_URL.",
    );
  const closed = (await closedFolder(programs, owner)) ?? (await closedFolder(dataDir, owner));
  const prefix = closed ? await passing(closed, owner, `${programs}/postgres`) : undefined;
  if (!prefix)
    return { owner, command: (file, args) => ({ file, args: [...args], options: { ...owner, env: ENVIRONMENT } }) };
  const [file, ...first] = prefix;
  return {
    owner,
    note: `Postgres runs as uid ${owner.uid}, which may not enter ${closed}: it keeps a capability to pass closed folders.`,
    command: (program, args) => ({ file, args: [...first, program, ...args], options: { env: ENVIRONMENT } }),
  };
}

function runsAsRoot(): boolean {
  try {
    return userInfo().uid === 0;
  } catch {
    return false; // a user without an entry in the list of users is not root
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

/** The first folder on the way to `path`, from the root, that `owner` may not pass. */
async function closedFolder(path: string, owner: { uid: number; gid: number }): Promise<string | undefined> {
  const parent = dirname(path);
  const above = parent === path ? undefined : await closedFolder(parent, owner);
  if (above) return above;
  const { mode, uid, gid } = await stat(path);
  const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001;
  return mode & bit ? undefined : path;
}

/**
 * A command prefix that runs a program as `owner` with the right to pass closed folders and no other: reading alone where the system
 * has it, else the wider one that containers keep. Without the secure bit, access(2) would leave the right out of account.
 */
async function passing(
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
      `Run Chorus as an ordinary user, move it and DATA_DIR out of ${closed}, allow entering it (chmod o+x), or set DATABASE_URL.`,
  );
}
