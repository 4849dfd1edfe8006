import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { platform } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** What names a cluster: `data` is the folder that postmaster.pid is in. */
interface DataFolder {
  readonly data: string;
}

/**
 * State from postmaster.pid and the list of processes. `changing`: starting or stopping. The port can be that of a dead
 * server.
 */
export interface ServerState {
  status: "ready" | "changing" | "absent";
  port: number | undefined;
}

/**
 * Looks for a running server. Checks that the command line contains the data folder, because process ids are reused.
 */
export async function serverState(cluster: DataFolder): Promise<ServerState> {
  const { pid, port, status } = await pidFile(cluster);
  const command = pid === undefined ? "" : await commandOf(pid);
  if (!command.includes(cluster.data)) return { status: "absent", port };
  return { status: status === "ready" ? "ready" : "changing", port };
}

/** Time in which a postmaster.pid must stay the same before it is removed, in milliseconds. */
const UNCHANGED_MS = 500;

/**
 * Removes postmaster.pid when its process is no Postgres: after a restart of the machine, another process can have the
 * id. Waits before, because another service may replace the file of a server that has just died. A server whose file is
 * removed would block all others until it notices that, up to a minute later.
 */
export async function clearPidFile(cluster: DataFolder): Promise<void> {
  const { pid } = await pidFile(cluster);
  if (pid === undefined) return;
  const command = await commandOf(pid);
  if (command.includes(cluster.data)) return;
  const path = join(cluster.data, "postmaster.pid");
  if (/(^|\/)postgres\b/.test(command.split(" ", 1)[0] ?? "")) {
    throw new Error(
      `${path} names process ${pid}, a Postgres that serves another folder. ` +
        "If no other Chorus uses this folder, remove the file.",
    );
  }
  await sleep(UNCHANGED_MS);
  if ((await pidFile(cluster)).pid === pid) await rm(path, { force: true });
}

export async function pidFile(cluster: DataFolder): Promise<{ pid?: number; port?: number; status?: string }> {
  const text = await readFile(join(cluster.data, "postmaster.pid"), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const [pid, , , port, , , , status] = text.split("\n");
  return {
    ...(pid ? { pid: Number(pid) } : {}),
    ...(port ? { port: Number(port) } : {}),
    ...(status ? { status: status.trim() } : {}),
  };
}

/** Command line of a process; empty when there is none. */
export async function commandOf(pid: number): Promise<string> {
  if (platform() === "linux") {
    return readFile(`/proc/${pid}/cmdline`, "utf8").then(
      (text) => text.replaceAll("\0", " "),
      () => "",
    );
  }
  return execute("ps", ["-ww", "-o", "command=", "-p", String(pid)]).then(
    ({ stdout }) => stdout,
    () => "",
  );
}
