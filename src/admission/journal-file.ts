import { randomUUID } from "node:crypto";
import { type FileHandle, open, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import { syncFolder } from "../files/folder.ts";

/** A request that has ended and could not be settled in the database yet. */
export interface Entry<Row extends object = object> {
  workspaceId: string;
  row: Row;
}

/** A line that is no intact entry. */
export interface DamagedLine {
  /** Number of the line, from 1. */
  readonly line: number;
  readonly bytes: Buffer;
}

const LINE_FEED = 10;

/** The end of the name of a file with entries. */
export const EXTENSION = ".jsonl";

export function newPath(folder: string): string {
  return join(folder, `${randomUUID()}${EXTENSION}`);
}

interface OpenFile {
  readonly path: string;
  readonly handle: FileHandle;
  /** Bytes that are confirmed. */
  size: number;
}

/** Appends entries to the newest file of a process. @param paths receives the path of each new file */
export function createWriter(folder: string, paths: string[]) {
  let file: OpenFile | undefined;

  async function openNew(): Promise<OpenFile> {
    const path = newPath(folder);
    file = { path, handle: await open(path, "ax", 0o600), size: 0 };
    paths.push(path);
    await syncFolder(folder);
    return file;
  }

  async function close(): Promise<void> {
    const closing = file;
    file = undefined;
    await closing?.handle.close();
  }

  /** Removes what a failed write has left, so that the next process does not charge for it. */
  async function undo({ path, handle, size }: OpenFile): Promise<void> {
    await handle.truncate(size).catch(() => undefined);
    await close().catch(() => undefined);
    if (size > 0) return;
    paths.pop();
    await unlink(path).catch(() => undefined);
  }

  return {
    /**
     * Resolves when the entries are on the disk. Opens a new file when there is none.
     * @returns the path of the file
     * @throws Error of the file system; then none of the entries is in the file
     */
    async write(entries: Iterable<Entry>): Promise<string> {
      const lines = Buffer.from([...entries].map(lineOf).join(""));
      try {
        const open = file ?? (await openNew());
        await open.handle.appendFile(lines);
        await open.handle.datasync();
        open.size += lines.length;
        return open.path;
      } catch (error) {
        if (file) await undo(file);
        throw error;
      }
    },
    close,
  };
}

/**
 * Reads a file of entries. Leaves out a last line without a line break: a crash cut it off, so its append was never
 * confirmed. Splits bytes, because a file can be larger than the longest string.
 * @param isRow checks the shape of a row
 * @throws Error of the file system
 */
export async function readEntries<Row extends object>(
  path: string,
  isRow: (row: object) => row is Row,
): Promise<{ entries: Entry<Row>[]; damaged: DamagedLine[] }> {
  const bytes = await readFile(path);
  const entries: Entry<Row>[] = [];
  const damaged: DamagedLine[] = [];
  let line = 1;
  for (let start = 0, end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start), line++) {
    const text = bytes.subarray(start, end);
    const entry = entryOf(text.toString("utf8"), isRow);
    if (entry) entries.push(entry);
    else damaged.push({ line, bytes: text });
    start = end + 1;
  }
  return { entries, damaged };
}

/**
 * Replaces a file by one with these entries only, and removes it if there are none.
 * @throws Error of the file system; then the file is as it was
 */
export async function keepEntries(path: string, entries: readonly Entry[]): Promise<void> {
  if (entries.length === 0) return unlink(path);
  const temporary = `${path}.new`;
  try {
    await writeFile(temporary, entries.map(lineOf), { mode: 0o600, flush: true });
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A line: the CRC-32 of the JSON text as eight hexadecimal digits, a space, the JSON text. */
function lineOf(entry: Entry): string {
  const json = JSON.stringify(entry);
  return `${checksumOf(json)} ${json}\n`;
}

function entryOf<Row extends object>(line: string, isRow: (row: object) => row is Row): Entry<Row> | undefined {
  const json = line.slice(9);
  if (line.slice(0, 9) !== `${checksumOf(json)} `) return undefined;
  const { workspaceId, row } = JSON.parse(json) as Partial<Entry>;
  if (typeof workspaceId !== "string" || typeof row !== "object" || row === null || !isRow(row)) return undefined;
  return { workspaceId, row };
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
