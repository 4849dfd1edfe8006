import { randomUUID } from "node:crypto";
import { appendFile, mkdtemp, readdir, rename, rm, rmdir, stat, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFolder } from "../files/folder.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import {
  createWriter,
  type DamagedLine,
  type Entry,
  EXTENSION,
  keepEntries,
  newPath,
  readEntries,
} from "./journal-file.ts";
import { countSetAside } from "./set-aside.ts";

export type Journal<Row extends object> = Awaited<ReturnType<typeof openJournal<Row>>>;

/** Most numbers of damaged lines in one record of the log. */
const MAX_LINES = 20;

/**
 * Opens the journal in `folder`: settlements that wait for the database, on the local disk, so that a restart loses
 * none of them. Takes over the files that other processes left there. A process that still runs notices that its file
 * is gone and writes a new one. An entry is then in two files and is settled twice, which changes nothing. A file is
 * created with the first entry and removed when no entry waits any more, so that nothing is written while the database
 * is available. Damaged lines go to the file `damaged`, uncharged, and a file that cannot be read stays: neither stops
 * the start. Nor does a folder that cannot be made: entries are then refused.
 * @param isRow checks the shape of a row that another process has written; default: any object
 */
export async function openJournal<Row extends object>(
  folder: string,
  log: Log,
  isRow: (row: object) => row is Row = (row): row is Row => true,
) {
  const exists = await makeFolder(folder).then(
    () => true,
    () => false,
  );
  const left = exists ? await takeOver<Row>(folder, log, isRow) : [];
  const { setAside, look } = await countSetAside(folder);
  const { damaged, refused } = setAside();
  if (damaged + refused > 0)
    log.warn({ folder, damaged, refused }, "settlements were set aside in the files damaged and refused, uncharged");
  const waiting = new Set(left.flatMap(({ entries }) => entries));
  /** Files to remove once no entry waits. */
  const paths = left.map(({ path }) => path);
  const writer = createWriter(folder, paths);
  let last: Promise<unknown> = Promise.resolve();

  /** Runs one operation at a time, so that lines are not mixed and no file is removed while it is written. */
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = last.then(run);
    last = result.catch(() => undefined);
    return result;
  }

  async function append(entries: readonly Entry<Row>[]): Promise<void> {
    let path = await writer.write(entries);
    // Another process may have taken the file over. If it renamed the file before this write, the file is gone and all
    // entries are written to a new one, which the next process may take over; if after, it has read these entries.
    while (!(await stat(path).catch(() => undefined))) {
      await writer.close();
      path = await writer.write([...waiting, ...entries]);
    }
    for (const entry of entries) waiting.add(entry);
  }

  return {
    folder,
    /**
     * Resolves when the entries are on the disk.
     * @throws Error of the file system; then none of the entries is pending.
     */
    append: (entries: readonly Entry<Row>[]) => inTurn(() => append(entries)),
    /** Entries that wait, the oldest first. */
    pending: (): readonly Entry<Row>[] => [...waiting],
    /** Removes entries that have been settled. */
    drop: (entries: readonly Entry<Row>[]) =>
      inTurn(async () => {
        for (const entry of entries) waiting.delete(entry);
        if (waiting.size > 0) return;
        await writer.close();
        for (const path of paths.splice(0)) await rm(path, { force: true });
      }),
    /** Writes an entry that the database will never accept to the file `refused`, for an operator to look at. */
    refuse: (entry: Entry<Row>) =>
      inTurn(async () => {
        await appendFile(join(folder, "refused"), `${JSON.stringify(entry)}\n`, { mode: 0o600, flush: true });
        await look();
      }),
    /** Number of lines in the files `damaged` (no intact entry) and `refused`. Nothing is charged for them. */
    setAside,
    /** Closes the files. Pending entries stay on the disk. */
    close: () => inTurn(writer.close),
  };
}

/** Reads the files of other processes. Renames each file first, so that two processes never write to the same one. */
async function takeOver<Row extends object>(
  folder: string,
  log: Log,
  isRow: (row: object) => row is Row,
): Promise<{ path: string; entries: Entry<Row>[] }[]> {
  const taken: { path: string; entries: Entry<Row>[] }[] = [];
  for (const name of await readdir(folder)) {
    if (!name.endsWith(EXTENSION)) continue;
    const file = join(folder, name);
    const path = newPath(folder);
    try {
      await rename(file, path);
      const { entries, damaged } = await readEntries(path, isRow);
      if (damaged.length > 0) await keepDamaged(folder, file, damaged, log);
      // The next start would set the damaged lines aside again, and an operator would correct the credit twice.
      if (damaged.length > 0 || entries.length === 0) await keepEntries(path, entries).catch(() => undefined);
      taken.push({ path, entries });
    } catch (error) {
      await rename(path, file).catch(() => undefined);
      // Another process that starts at the same time has taken the file over.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") continue;
      log.error({ file, cause: errorFacts(error) }, "could not take over a file of the journal; it stays where it is");
    }
  }
  return taken;
}

async function keepDamaged(folder: string, file: string, damaged: readonly DamagedLine[], log: Log): Promise<void> {
  const path = join(folder, "damaged");
  const lines = damaged.flatMap(({ bytes }) => [bytes, Buffer.from("\n")]);
  await appendFile(path, Buffer.concat(lines), { mode: 0o600, flush: true });
  log.error(
    { file, lines: damaged.slice(0, MAX_LINES).map(({ line }) => line), damaged: damaged.length, set_aside_in: path },
    "set damaged lines of the journal aside; nothing is charged for them",
  );
}

/**
 * Creates the folder for settlements that wait while the database is unavailable: `journal` under `dataDir`, or a new
 * temporary folder if this process may not write there. If it may write nowhere, as in a container without a volume,
 * the folder cannot be written to.
 * @returns also `discard`, which removes a temporary folder that has no entries when this process ends
 */
export async function journalFolder(
  dataDir: string,
  log: Log,
): Promise<{ folder: string; discard: () => Promise<void> }> {
  const folder = join(dataDir, "journal");
  try {
    await makeFolder(folder);
    const probe = join(folder, `probe-${randomUUID()}`);
    await writeFile(probe, "");
    await unlink(probe);
    return { folder, discard: async () => undefined };
  } catch (error) {
    const temporary = await mkdtemp(join(tmpdir(), "chorus-journal-")).catch(() => undefined);
    const facts = { folder, ...(temporary === undefined ? {} : { temporary }), cause: errorFacts(error) };
    const message =
      temporary === undefined
        ? "could not write to DATA_DIR or a temporary folder; while the database is unavailable, answers fail"
        : "could not write to DATA_DIR; while the database is unavailable, settlements wait in a temporary folder";
    log.warn(facts, message);
    if (temporary === undefined) return { folder, discard: async () => undefined };
    // A folder with entries is not empty, and stays.
    return { folder: temporary, discard: () => rmdir(temporary).catch(() => undefined) };
  }
}
