import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { ask } from "./run.ts";

/** Puts a new database that no server has opened into a data folder, with the owner that its server needs. */
export async function copyCluster(dataDir: string): Promise<void> {
  await promisify(execFile)("cp", ["-a", join(await ask("cluster"), "postgres"), dataDir]);
}
