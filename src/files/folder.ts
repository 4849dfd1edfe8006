import { mkdir, open, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Creates a folder and those above it, as far as they are missing. Node's own `recursive` never ends where a folder
 * cannot be made and the system says that the parent is missing, as under `/proc`.
 * @param mode of new folders
 * @throws Error of the system, such as EEXIST where the path is a file
 */
export async function makeFolder(path: string, mode?: number): Promise<void> {
  try {
    await mkdirOnce(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) throw error;
    await makeFolder(dirname(path), mode);
    await mkdirOnce(path, mode);
  }
}

/** Creates a folder unless it exists. */
async function mkdirOnce(path: string, mode?: number): Promise<void> {
  try {
    await mkdir(path, mode);
  } catch (error) {
    const isFolder = (error as NodeJS.ErrnoException).code === "EEXIST" && (await stat(path)).isDirectory();
    if (!isFolder) throw error;
  }
}

/** Syncs a folder, so that a new name in it survives a power failure. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  await handle.sync();
  await handle.close();
}
