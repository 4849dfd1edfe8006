import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";

/** Something that was done and could not be written to the database yet. */
export interface Entry {
  workspaceId: string;
  row: object;
}

/** Settlements that wait for the database, on the local disk, so that a restart loses none. */
export interface Journal {
  /** Resolves when the entries are on the disk. */
  append(entries: Entry[]): Promise<void>;
  /** Everything that waits, the oldest first. */
  pending(): readonly Entry[];
  /** Forgets the oldest `count` entries, which have arrived. */
  drop(count: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the journal under `folder`, and takes over what earlier processes left there. Settling twice changes nothing, so it does not matter
 * when two processes take over the same file.
 */
export async function openJournal(folder: string): Promise<Journal> {
  await mkdir(folder, { recursive: true });
  const waiting: Entry[] = [];
  const left = (await readdir(folder)).filter((name) => name.endsWith(".jsonl")).map((name) => join(folder, name));
  for (const path of left) waiting.push(...parse(await readFile(path, "utf8").catch(() => "")));
  const path = join(folder, `${randomUUID()}.jsonl`);
  let file: FileHandle | undefined;

  async function write(entries: readonly Entry[]): Promise<void> {
    file ??= await open(path, "a", 0o600);
    await file.appendFile(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    await file.datasync();
  }

  if (waiting.length > 0) await write(waiting);
  for (const old of left) await rm(old, { force: true });

  return {
    async append(entries) {
      await write(entries);
      waiting.push(...entries);
    },
    pending: () => waiting,
    async drop(count) {
      waiting.splice(0, count);
      // What has arrived stays in the file until all has; settling it again would change nothing.
      if (waiting.length === 0) await file?.truncate(0);
    },
    async close() {
      await file?.close();
      if (waiting.length === 0) await rm(path, { force: true });
    },
  };
}

/** The last line may be cut off by a crash; then its append was never confirmed. */
function parse(text: string): Entry[] {
  return text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [JSON.parse(line) as Entry];
    } catch {
      return [];
    }
  });
}
