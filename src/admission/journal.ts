import { randomUUID } from "node:crypto";
import { appendFile, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../log.ts";

/** A request that has ended and could not be settled in the database yet. */
export interface Entry<Row extends object = object> {
  workspaceId: string;
  row: Row;
}

/** Settlements that wait for the database, on the local disk, so that a restart loses none of them. */
export interface Journal<Row extends object> {
  /**
   * Resolves when the entries are on the disk.
   * @throws Error of the file system; then none of the entries is pending.
   */
  append(entries: readonly Entry<Row>[]): Promise<void>;
  /** Entries that wait, the oldest first. */
  pending(): readonly Entry<Row>[];
  /** Removes entries that have been settled. */
  drop(entries: readonly Entry<Row>[]): Promise<void>;
  /** Writes an entry that the database will never accept to the file `refused`, for an operator to look at. */
  refuse(entry: Entry<Row>): Promise<void>;
  /** Closes the files. Pending entries stay on the disk. */
  close(): Promise<void>;
}

/**
 * Opens the journal in `folder` and takes over the files that other processes left there. A process that still runs
 * notices that its file is gone and writes a new one. An entry is then in two files and is settled twice, which changes
 * nothing. A file is created with the first entry and removed when no entry waits any more, so that nothing is written
 * while the database is available.
 */
export async function openJournal<Row extends object>(folder: string, log: Log): Promise<Journal<Row>> {
  await mkdir(folder, { recursive: true });
  const { entries: left, paths } = await takeOver<Row>(folder, log);
  const waiting = new Set(left);
  const writer = createWriter(folder, paths);
  let last: Promise<unknown> = Promise.resolve();

  /** Runs one operation at a time, so that lines are not mixed and no file is removed while it is written. */
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = last.then(run);
    last = result.catch(() => undefined);
    return result;
  }

  async function append(entries: readonly Entry<Row>[]): Promise<void> {
    try {
      await writer.write(entries);
      // Another process may have taken the file over. If it renamed the file before this write, the file is gone and
      // all entries are written to a new one; if after, the other process has read these entries.
      if (!(await exists(paths.at(-1) ?? ""))) {
        await writer.close();
        await writer.write([...waiting, ...entries]);
      }
    } catch (error) {
      // The file may end with half a line, so the next write begins a new file.
      await writer.close();
      throw error;
    }
    for (const entry of entries) waiting.add(entry);
  }

  return {
    append: (entries) => inTurn(() => append(entries)),
    pending: () => [...waiting],
    drop: (entries) =>
      inTurn(async () => {
        for (const entry of entries) waiting.delete(entry);
        if (waiting.size > 0) return;
        await writer.close();
        for (const path of paths.splice(0)) await rm(path, { force: true });
      }),
    refuse: (entry) =>
      inTurn(() => appendFile(join(folder, "refused"), `${JSON.stringify(entry)}\n`, { mode: 0o600, flush: true })),
    close: () => inTurn(writer.close),
  };
}

/**
 * Reads the files of other processes. Renames each file first, so that two processes never write to the same journal.
 * @returns the entries, and the paths of the files to remove once all entries are settled; a file with lines that
 *   cannot be read is not among them
 */
async function takeOver<Row extends object>(
  folder: string,
  log: Log,
): Promise<{ entries: Entry<Row>[]; paths: string[] }> {
  const all: Entry<Row>[] = [];
  const paths: string[] = [];
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".jsonl")) continue;
    const path = newPath(folder);
    try {
      await rename(join(folder, name), path);
      const { entries, faulty } = parse<Row>(await readFile(path, "utf8"));
      all.push(...entries);
      if (faulty > 0) log.error({ path, faulty }, "could not read some lines of the journal; they stay in the file");
      else paths.push(path);
    } catch (error) {
      // Another process that starts at the same time has taken the file over.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  return { entries: all, paths };
}

interface Writer {
  /** Appends entries to the current file; opens a new one when there is none. */
  write(entries: Iterable<Entry>): Promise<void>;
  close(): Promise<void>;
}

/** @param paths receives the path of each new file */
function createWriter(folder: string, paths: string[]): Writer {
  let file: FileHandle | undefined;
  return {
    async write(entries) {
      if (!file) {
        const path = newPath(folder);
        file = await open(path, "ax", 0o600);
        paths.push(path);
        await flush(folder);
      }
      await file.appendFile([...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
      await file.datasync();
    },
    async close() {
      await file?.close();
      file = undefined;
    },
  };
}

function newPath(folder: string): string {
  return join(folder, `${randomUUID()}.jsonl`);
}

/** Leaves out a last line without a line break: a crash cut it off, so its append was never confirmed. */
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

/** Syncs a folder, so that a new file in it survives a power failure. */
async function flush(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  await handle.sync();
  await handle.close();
}
