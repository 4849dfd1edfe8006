import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorFacts, type Log } from "../log.ts";

/**
 * Creates the folder for settlements that wait while the database is unavailable: `journal` under `dataDir`, or a new
 * temporary folder if this process may not write there.
 */
export async function journalFolder(dataDir: string, log: Log): Promise<string> {
  const folder = join(dataDir, "journal");
  try {
    await mkdir(folder, { recursive: true });
    return folder;
  } catch (error) {
    log.warn(
      { cause: errorFacts(error) },
      "could not write to DATA_DIR; while the database is unavailable, settlements wait in a temporary folder",
    );
    return mkdtemp(join(tmpdir(), "chorus-journal-"));
  }
}
