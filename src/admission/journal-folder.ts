import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFolder } from "../files/make-folder.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";

/**
 * Creates the folder for settlements that wait while the database is unavailable: `journal` under `dataDir`, or a new
 * temporary folder if this process may not write there.
 */
export async function journalFolder(dataDir: string, log: Log): Promise<string> {
  const folder = join(dataDir, "journal");
  try {
    await makeFolder(folder);
    const probe = join(folder, `probe-${randomUUID()}`);
    await writeFile(probe, "");
    await rm(probe, { force: true });
    return folder;
  } catch (error) {
    const temporary = await mkdtemp(join(tmpdir(), "chorus-journal-"));
    log.warn(
      { folder, temporary, cause: errorFacts(error) },
      "could not write to DATA_DIR; while the database is unavailable, settlements wait in a temporary folder",
    );
    return temporary;
  }
}
