import { randomUUID } from "node:crypto";
import { appendFile, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../log.ts";

/** A request that has ended and could not be settled in the database yet. */
export interface Entry<Row extends object = object> {
  workspaceId: string;
  row: Row;
}

/** What waits for the database, on the local disk, so that a restart loses none of it. */
export interface Journal<Row extends object> {
  /** Resolves when the entries are on the disk. @throws Error of the file system; then nothing waits that did not before. */
  append(entries: readonly Entry<Row>[]): Promise<void>;
  /** What waits, the oldest first. */
  pending(): readonly Entry<Row>[];
  /** Forgets entries that have arrived. */
  drop(entries: readonly Entry<Row>[]): Promise<void>;
  /** Puts an entry that the database will never take into the file `refused`, for people. */
  refuse(entry: Entry<Row>): Promise<void>;
  /** What waits stays on the disk. */
  close(): Promise<void>;
}

const FILE = /\.jsonl$/;

/**
 * Opens the journal under `folder`, and takes over what other processes left there. A process that still lives notices that its file is
 * gone, and writes another; what then stands in both is settled twice, which changes nothing.
 * A file is made at the first entry and removed when none waits any more, so that in good times nothing is written here.
 */
export async function openJournal<Row extends object>(folder: string, log: Log): Promise<Journal<Row>> {
  await mkdir(folder, { recursive: true });
  const waiting = new Set<Entry<Row>>();
  /** Files that hold what waits; the last is written to while `file` is open. */
  const paths: string[] = [];
  let file: FileHandle | undefined;
  let work: Promise<unknown> = Promise.resolve();

  for (const name of await readdir(folder)) {
    if (!FILE.test(name)) continue;
    const path = join(folder, `${randomUUID()}.jsonl`);
    try {
      await rename(join(folder, name), path);
      const { entries, faulty } = parse<Row>(await readFile(path, "utf8"));
      for (const entry of entries) waiting.add(entry);
      if (faulty > 0) log.error({ path, faulty }, "lines of the journal cannot be read; they stay in the file");
      else paths.push(path);
    } catch (error) {
      // Another process that starts at the same time has taken it.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }

  /** One after the other, so that no line is torn and no file removed while something is written to it. */
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = work.then(run);
    work = result.catch(() => undefined);
    return result;
  }

  async function write(entries: Iterable<Entry<Row>>): Promise<void> {
    if (!file) {
      const path = join(folder, `${randomUUID()}.jsonl`);
      file = await open(path, "ax", 0o600);
      paths.push(path);
      await flush(folder);
    }
    await file.appendFile([...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    await file.datasync();
  }

  async function leaveFile(): Promise<void> {
    await file?.close();
    file = undefined;
  }

  return {
    append: (entries) =>
      inTurn(async () => {
        try {
          await write(entries);
          // Whoever took the file over did so either before, and the name is gone, or after, and has read this.
          if (!(await exists(paths.at(-1) ?? ""))) {
            await leaveFile();
            await write([...waiting, ...entries]);
          }
        } catch (error) {
          // Half a line may have been written, so nothing may follow it.
          await leaveFile();
          throw error;
        }
        for (const entry of entries) waiting.add(entry);
      }),
    pending: () => [...waiting],
    drop: (entries) =>
      inTurn(async () => {
        for (const entry of entries) waiting.delete(entry);
        if (waiting.size > 0) return;
        await leaveFile();
        for (const path of paths.splice(0)) await rm(path, { force: true });
      }),
    refuse: (entry) =>
      inTurn(() => appendFile(join(folder, "refused"), `${JSON.stringify(entry)}\n`, { mode: 0o600, flush: true })),
    close: () => inTurn(leaveFile),
  };
}

/** The last line may be cut off by a crash; then its append was never confirmed. */
function parse<Row extends object>(text: string): { entries: Entry<Row>[]; faulty: number } {
  const lines = text.split("\n");
  lines.pop();
  let faulty = 0;
  const entries = lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as Entry<Row>];
    } catch {
      faulty += 1;
      return [];
    }
  });
  return { entries, faulty };
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Makes a new name in a folder outlive a power failure. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  await handle.sync();
  await handle.close();
}
