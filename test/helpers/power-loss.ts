import { appendFileSync, existsSync } from "node:fs";
import { type FileHandle, open, readdir, readFile, stat, truncate, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CHILD_ENV } from "./environment.ts";

/**
 * A disk that loses power. A test loads this file into the service's process with `--import`; there each sync of a file
 * or folder notes what it has put on the disk, and waits while the disk is held. `losePower` then leaves of the journal
 * what was noted.
 */
const dataDir = process.env.CHORUS_TEST_POWER_LOSS;

/** What a sync has put on the disk: the first bytes of a file, or the names in a folder. */
interface Noted {
  /** Identifies the file or folder. */
  inode: number;
  size?: number;
  names?: string[];
  /** Whether the sync has ended. */
  isDone: boolean;
}

/** The environment of a service whose disk can lose power. */
export function powerLossEnv(folder: string): Record<string, string> {
  return {
    NODE_OPTIONS: `${CHILD_ENV.NODE_OPTIONS} --import=${import.meta.url}`,
    CHORUS_TEST_POWER_LOSS: folder,
  };
}

const notesOf = (folder: string): string => join(folder, "synced.jsonl");

/** While this file exists, no sync of a folder, or of a file, ends. */
export function holdOf(folder: string, of: "folder" | "file"): string {
  return join(folder, `${of}-held`);
}

/** The syncs of the service so far, the first one first. */
export async function syncsOf(folder: string): Promise<Noted[]> {
  const text = await readFile(notesOf(folder), "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Noted]));
}

/** Takes from the journal what no sync has put on the disk. Call it when the service was killed. */
export async function losePower(folder: string): Promise<void> {
  const journal = join(folder, "journal");
  const synced = (await syncsOf(folder)).filter(({ isDone }) => isDone);
  const last = async (path: string) => {
    const { ino } = await stat(path);
    return synced.findLast(({ inode }) => inode === ino);
  };
  const names = (await last(journal))?.names ?? [];
  for (const name of await readdir(journal)) {
    const path = join(journal, name);
    if (names.includes(name)) await truncate(path, (await last(path))?.size ?? 0);
    else await unlink(path);
  }
}

async function stateOf(handle: FileHandle, folder: string): Promise<Omit<Noted, "isDone">> {
  const found = await handle.stat();
  if (!found.isDirectory()) return { inode: found.ino, size: found.size };
  const journal = join(folder, "journal");
  const { ino } = await stat(journal);
  return { inode: found.ino, names: ino === found.ino ? await readdir(journal) : [] };
}

if (dataDir !== undefined) {
  const handle = await open(process.execPath, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  for (const name of ["sync", "datasync"] as const) {
    const flush = prototype[name];
    prototype[name] = async function (this: FileHandle) {
      const state = await stateOf(this, dataDir);
      appendFileSync(notesOf(dataDir), `${JSON.stringify({ ...state, isDone: false })}\n`);
      while (existsSync(holdOf(dataDir, state.names ? "folder" : "file"))) await sleep(2);
      await flush.call(this);
      appendFileSync(notesOf(dataDir), `${JSON.stringify({ ...state, isDone: true })}\n`);
    };
  }
}
